# ruff: noqa: UP006, UP035, UP045  (the interpreter of a node may be old)
"""Where the processes of a running job stand on this node: Python's stacks, system calls, states.

    python3 -I -c TEXT JOB_VARIABLE JOB_ID SIGNAL

TEXT is that of ``words.json``, ``look.py`` and this file. The signal requests Python's stacks and is sent
only to a process whose SigCgt in /proc/PID/status says that it catches it, and that holds open the file which
``rank_startup.py`` made for them; any other process would die of it, and is read in /proc only. All ranks are
looked at twice, some seconds apart. It changes nothing else, writes no file and ends in bounded time, also
where a file of /proc does not answer. It runs on any Python from 3.6 on.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from hpclaunch.remote.look import (
    MOST_PROCESSES,
    answer,
    chosen,
    described,
    environment_of,
    field,
    opened,
    own_processes,
    read,
    target,
)
from hpclaunch.remote.words import WORDS

_OWN_FILE = re.compile("/(?!dev/|proc/|sys/|memfd:|usr/|lib|tmp/ompi)")
"""Of the files that a process has open: no device, and none in memory or of the system."""
_FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')
_SPY_FRAME = re.compile(r"    (.*) \((.*?)(?::(\d+))?\)")
_WATCHED = re.compile(r"/proc/(\d+)$")
STACKS, RECORDER, COLLECTIVE = "hpclaunch-stacks", "hpclaunch-recorder", "hpclaunch-collective"
"""Names of the files in memory, as the links in /proc/PID/fd begin behind /dev/shm."""
_BY_PATH = {name: at for at, names in enumerate(WORDS["by path"]) for name in names}
_CALLS = " ".join(WORDS["calls"].get(os.uname().machine, [])).split()
_CALLS_HERE = dict(zip(_CALLS[::2], _CALLS[1::2]))  # noqa: B905  (3.6)
"""Numbers of system calls -> name, of this machine (asm/unistd_64.h, asm-generic/unistd.h)."""

Process = Dict[str, Any]
_IN_TURN: Dict[int, threading.Lock] = {}
"""Number of a file for stacks -> a lock: processes that a rank has forked share its file."""


def at_once(tasks: Iterable[Callable[[], None]], seconds: float) -> None:
    """Run all tasks, each in a thread, and wait until they have ended or the time is over.

    A file of /proc may not answer, as where a process hangs with a lock that the kernel needs to read it.
    """
    threads = [threading.Thread(target=task, daemon=True) for task in tasks]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def parents() -> Dict[str, str]:
    """Return process -> its parent, of all that can be seen."""
    found = {}
    for pid in os.listdir("/proc"):
        numbers = read("/proc/" + pid + "/stat").rpartition(")")[2].split() if pid.isdigit() else []
        if len(numbers) > 1 and numbers[0] not in "ZX":
            found[pid] = numbers[1]
    return found


def members(variable: str, job: str) -> Dict[str, Dict[str, str]]:
    """Return process -> variables: of the job's processes, and of those that they started.

    A program may clear its environment: it has the variables of the shell that watches its binding, whose
    working folder is that of the process in /proc, else of the nearest process above it.
    """
    above, mine = parents(), set(own_processes())
    environs: Dict[str, Dict[str, str]] = {}

    def look_at(pid: str) -> None:
        environs[pid] = environment_of(pid)

    at_once([partial(look_at, pid) for pid in above if pid not in mine], WORDS["scan_s"])
    environs = dict(environs)
    found = {pid: each for pid, each in environs.items() if chosen(pid, each, variable, job)}
    for pid in list(found):
        watched = _WATCHED.match(target("/proc/" + pid + "/cwd"))
        if watched:
            own = found.pop(pid)
            if watched.group(1) in above and not environs.get(watched.group(1)):
                found[watched.group(1)] = own
    foreign = {pid for pid, each in environs.items() if each and pid not in found}
    for pid in sorted(set(above) - set(found) - foreign - mine, key=int):
        up = above[pid]
        while up in above and up not in found and up not in foreign and up not in mine:
            up = above[up]
        if up in found:
            found[pid] = dict(found[up])
    return dict(list(found.items())[:MOST_PROCESSES])


def system_call(pid: str) -> Tuple[str, str]:
    """Return the system call that the main thread is in and the file that it is about, as far as we may see.

    The kernel shows it to those who may trace the process (man proc_pid_syscall).
    """
    words = read("/proc/" + pid + "/syscall").split()
    if len(words) < 3 or not words[0].isdigit():
        return "", ""
    name = _CALLS_HERE.get(words[0], "")
    if name in WORDS["by file"]:
        return name, target("/proc/" + pid + "/fd/" + str(int(words[1], 16)))
    if name in _BY_PATH:
        path = text_at(pid, int(words[1 + _BY_PATH[name]], 16))
        return name, os.path.join(target("/proc/" + pid + "/cwd"), path) if path else ""
    return name, ""


def text_at(pid: str, address: int) -> str:
    """Return the text at an address of a process: the path that a system call got."""
    try:
        with open("/proc/" + pid + "/mem", "rb", 0) as memory:
            memory.seek(address)
            data = memory.read(4096) or b""
    except (OSError, ValueError, OverflowError):
        return ""
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def in_memory(pid: str, name: str) -> Optional[str]:
    """Return the path, below /proc, of a file in memory that ``rank_startup.py`` has opened."""
    start = "/dev/shm/" + name + "."  # noqa: S108
    files = (
        file for file, path in opened(pid).items() if path.startswith(start) and path.endswith(" (deleted)")
    )
    return next(("/proc/" + pid + "/fd/" + file for file in files), None)


def catches(pid: str, signal: int) -> bool:
    """Tell whether a process catches the signal and does not block it (man proc_pid_status)."""
    status = read("/proc/" + pid + "/status")
    caught, blocked = (int(field(status, name) or "0", 16) for name in ("SigCgt", "SigBlk"))
    return bool(caught & ~blocked & 1 << signal - 1) and not field(status, "State").startswith(("T", "t"))


def is_over(pid: str, signal: int) -> bool:
    """Tell whether a program has ended and its Python is ending.

    Python then no longer catches the signal for its stacks, whose file is still open: it turns faulthandler
    off before it calls the functions of Py_AtExit, among them mpi4py's (tried: CPython 3.11, mpi4py 4.1).
    """
    caught = field(read("/proc/" + pid + "/status"), "SigCgt")
    return bool(caught) and not int(caught, 16) & 1 << signal - 1 and in_memory(pid, STACKS) is not None


def dumped(pid: str, signal: int) -> Optional[str]:
    """Return Python's stacks, written now; None where the process would not take the signal or gave none."""
    path = in_memory(pid, STACKS)
    if path is None:
        return None
    try:
        with _IN_TURN.setdefault(os.stat(path).st_ino, threading.Lock()):
            os.truncate(path, 0)
            if not catches(pid, signal):
                return None
            os.kill(int(pid), signal)
            return settled(path, 0) or None
    except OSError:
        return None


def settled(path: str, offset: int, ending: str = "\n") -> str:
    """Return what a file has after ``offset`` once it has stopped growing; empty where nothing comes."""
    deadline, before = time.monotonic() + WORDS["dump_s"], ""
    while time.monotonic() < deadline:
        time.sleep(0.05)
        text = read(path, WORDS["file_bytes"])[offset:]
        if text and text == before and text.endswith(ending):
            return text
        before = text
    return before


def frames_of(text: str) -> List[List[Any]]:
    """Return the stacks in faulthandler's text, the main thread's first: frames of [file, line, function]."""
    threads: List[List[Any]] = []
    for line in text.splitlines():
        frame = _FRAME.fullmatch(line)
        if line.endswith("(most recent call first):"):
            threads.append([])
        elif frame and threads:
            number = int(frame.group(2)) if frame.group(2).isdigit() else 0
            threads[-1].append([frame.group(1), number, frame.group(3)])
    threads.reverse()  # faulthandler begins with the newest thread; the main one is the oldest
    return shortened(threads)


def shortened(threads: List[List[Any]]) -> List[List[Any]]:
    """Return the main thread's stack, and of some other threads the innermost calls."""
    return [thread[: WORDS["frames"][at > 0]] for at, thread in enumerate(threads[: WORDS["threads"]])]


def by_py_spy(pid: str) -> Optional[List[List[Any]]]:
    """Return the stacks of a Python that has no handler, where the node has py-spy; the process runs on."""
    program = shutil.which("py-spy")
    if program is None or not re.match("python|pypy", os.path.basename(target("/proc/" + pid + "/exe"))):
        return None
    words = [program, "dump", "--nonblocking", "--full-filenames", "--pid", pid]
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=WORDS["py_spy_s"], check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return spied(done.stdout.decode("utf-8", "replace")) or None


def spied(text: str) -> List[List[Any]]:
    """Return the stacks in the text of ``py-spy dump`` (0.4), the main thread's first."""
    threads: List[List[Any]] = []
    for line in text.splitlines():
        frame = _SPY_FRAME.fullmatch(line)
        if line.startswith("Thread "):
            threads.insert(0 if line.endswith('"MainThread"') else len(threads), [])
            at = 0 if line.endswith('"MainThread"') else -1
        elif frame and threads:
            threads[at].append([frame.group(2), int(frame.group(3) or 0), frame.group(1)])
    return shortened(threads)


def add_source(pid: str, stacks: List[List[Any]]) -> None:
    """Add to each frame the text of its line, as far as its file, maybe one of a container, can be read."""
    texts: Dict[str, List[str]] = {}
    for frame in (frame for stack in stacks for frame in stack):
        path, number = frame[:2]
        if path not in texts:
            texts[path] = read("/proc/" + pid + "/root" + path).splitlines() if path.endswith(".py") else []
        lines = texts[path]
        frame.append(lines[number - 1].strip()[:200] if 0 < number <= len(lines) else "")


def own_collective(pid: str) -> Optional[List[Any]]:
    """Return what the bundled training notes: [number, name, whether it waits in it]."""
    path = in_memory(pid, COLLECTIVE)
    words = read(path, WORDS["file_bytes"]).split() if path else []
    if len(words) == 3 and words[0].isdigit():
        return [int(words[0]), words[1], words[2] == "in"]
    return None


def recorded(pid: str) -> Optional[Dict[str, List[List[Any]]]]:
    """Return the newest collectives that torch's flight recorder has of each process group, oldest first.

    Each is [number, name, state]. The process's own thread writes them; one that holds Python's lock cannot.
    """
    path = in_memory(pid, RECORDER)
    first = read(path, WORDS["file_bytes"]).partition("\n")[0] if path else ""
    words = first.split()
    names = field(read("/proc/" + pid + "/status"), "NSpid").split()
    if path is None or len(words) != 2 or not words[1].isdigit() or words[0] not in names:
        return None
    start = len(first) + 1
    try:
        os.truncate(path, start)
        request = os.open("/proc/" + pid + "/fd/" + words[1], os.O_WRONLY | os.O_NONBLOCK)
        os.write(request, b"1")
        os.close(request)
    except OSError:
        return None
    return newest(settled(path, start))


def newest(text: str, most: int = 16) -> Optional[Dict[str, List[List[Any]]]]:
    """Return the newest collectives in a flight recorder's dump, by process group."""
    try:
        entries = json.loads(text)["entries"]
    except (ValueError, KeyError, TypeError):
        return None
    groups: Dict[str, List[List[Any]]] = {}
    for entry in entries:
        if isinstance(entry, dict) and not entry.get("is_p2p") and "collective_seq_id" in entry:
            group = ":".join(map(str, entry.get("process_group") or ["?"]))
            name = str(entry.get("profiling_name")).partition(":")[2] or str(entry.get("profiling_name"))
            state = str(entry.get("state"))
            if entry.get("retired"):
                state = "completed"
            groups.setdefault(group, []).append([entry["collective_seq_id"], name, state])
    return {group: sorted(found)[-most:] for group, found in groups.items()}


def look(process: Process, key: str, signal: int) -> None:
    """Look at a process once; each part that is known is there at once."""
    pid = str(process["pid"])
    numbers = read("/proc/" + pid + "/stat").rpartition(")")[2].split()
    waits = read("/proc/" + pid + "/wchan").strip()
    call, path = system_call(pid)
    # Voluntary context switches of the main thread (man proc_pid_status).
    switches = field(read("/proc/" + pid + "/status"), "voluntary_ctxt_switches")
    now: Process = {
        "state": numbers[0] if numbers else "",
        "switches": int(switches) if switches.isdigit() else 0,
        "ticks": int(numbers[11]) + int(numbers[12]) if len(numbers) > 12 else 0,
        "waits": "" if waits == "0" else waits,
        "call": call,
        "path": path,
    }
    process[key] = now
    now["collective"] = own_collective(pid)
    now["over"] = is_over(pid, signal)
    text = dumped(pid, signal)
    stacks = frames_of(text) if text else by_py_spy(pid)
    if stacks:
        now["stacks"] = stacks if key == "first" else stacks[:1]
        now["by"] = "faulthandler" if text else "py-spy"


def look_again(process: Process, signal: int) -> None:
    """Look a second time: a rank that has gone on to another collective meanwhile does not hang."""
    look(process, "second", signal)
    if process.get("recorder"):
        process["second"]["recorder"] = recorded(str(process["pid"]))


def gather(variable: str, job: str, signal: int, found: List[Process]) -> None:
    """Put into ``found`` where the job's processes on this node stand, as it becomes known."""

    def begin(pid: str, environ: Dict[str, str]) -> None:
        process = described(pid, environ)
        if process is not None:
            process["program"] = process["program"] or [field(read("/proc/" + pid + "/status"), "Name")]
            process["files"] = sorted(set(filter(_OWN_FILE.match, opened(pid).values())))[: WORDS["files"]]
            found.append(process)
            look(process, "first", signal)
            process["recorder"] = recorded(pid)
            add_source(pid, process["first"].get("stacks") or [])

    started = time.monotonic()
    at_once([partial(begin, *each) for each in members(variable, job).items()], WORDS["look_s"])
    time.sleep(max(0.0, WORDS["gap_s"] - (time.monotonic() - started)))
    at_once([partial(look_again, one, signal) for one in list(found)], WORDS["look_s"])


def whole_by_now(found: List[Process]) -> List[Process]:
    """Return a copy; a thread that was given up may still add to the original."""
    while True:
        try:
            copied: List[Process] = json.loads(json.dumps(found))
            return copied
        except RuntimeError:  # it changed meanwhile
            time.sleep(0.01)


def main() -> None:
    """Print the answer; what does not answer by then is left out."""
    variable, job, signal = sys.argv[1:4]
    found: List[Process] = []
    at_once([partial(gather, variable, job, int(signal), found)], WORDS["all_s"])
    answer(whole_by_now(found))
    os._exit(0)  # threads may wait in the kernel for what never comes


if __name__ == "__main__":
    main()
