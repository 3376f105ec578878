# ruff: noqa: UP006, UP035, UP045  (the interpreter of a node may be old)
"""The roll call of a job that may hang: where its ranks stand, and which of them keep the rest waiting.

    python3 -I -c TEXT JOB_FOLDER RANKS NODES IDLE_S < ANSWERS

The answers are those of ``rank_stands.py`` on each node. The script of a job runs it before it is ended by
``--idle-timeout``: it prints the roll call and writes it to ``stacks.json`` in the job's folder. ``hpclaunch
stacks`` calls its functions. It runs on any Python from 3.6 on.
"""

import json
import os
import re
import sys
from collections import Counter
from contextlib import suppress
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from hpclaunch.remote.look import GPU_VARIABLES, HELPERS, MARK, RANKS_OF, WORKER_LAUNCHERS
from hpclaunch.remote.words import WORDS

FILE, VERDICT = "stacks.json", "hang"
"""Names in the job's folder of the whole roll call, and of its finding alone, which goes into the record."""
_SHELLS = re.compile(r"(ba|da|z|k|tc|c)?sh|env|timeout|numactl|taskset|apptainer|singularity|starter(-suid)?")
"""Programs around a rank's own; one of them is the rank where it has no other process."""
_OF_RAY = re.compile(r"ray::(IDLE|\w+Agent)|\S+ (-u )?\S*/(ray start |(site|dist)-packages/ray/)")
"""Ray's own processes, which do no task of the program (2.60)."""
_LIBRARY = re.compile("|".join(WORDS["libraries"]))
_MESSAGES = re.compile(WORDS["messages"])
"""Libraries whose functions are named by the collective that they wait for."""
_CALLED = re.compile(r"(\w+)\.(\w+)\(")
_AWAITS = re.compile("|".join(WORDS["awaits"]))
"""Code in which a rank waits for processes that it has started."""
_OF_RANKS = re.compile(r"\w*comm\w*|dist|distributed|hvd", re.IGNORECASE)
_BLOCKED = {call: said for said, calls in WORDS["blocked"].items() for call in calls.split()}
"""System calls that say more than the Python function around them."""
OVER = "waits while Python ends, as mpi4py does in MPI_Finalize"
_RAISED = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\w.*)\Z", re.MULTILINE)
Report = Dict[str, Any]
Nodes = List[Tuple[str, List[Dict[str, Any]]]]
"""Nodes and their processes, as ``rank_stands.py`` has them."""
Ranks = Dict[int, Tuple[str, List[Dict[str, Any]]]]
"""Rank -> its node and its processes."""


def whole_answers(text: str) -> Iterator[Tuple[str, str]]:
    """Yield each node whose answer is complete, with its JSON text; other output is passed over."""
    pieces: Dict[str, Dict[int, str]] = {}
    counts: Dict[str, int] = {}
    for line in text.splitlines():
        match = re.search(MARK + r"(\S+) (\d+)/(\d+) (.*)", line)
        if match:
            pieces.setdefault(match.group(1), {})[int(match.group(2))] = match.group(4)
            counts[match.group(1)] = int(match.group(3))
    for host, found in pieces.items():
        if len(found) == counts[host]:
            yield host, "".join(found[number] for number in sorted(found))


def nodes_in(text: str) -> Nodes:
    """Return (node, its processes) of each answer that is complete."""
    found = []
    for host, whole in whole_answers(text):
        with suppress(ValueError, KeyError, TypeError):
            found.append((host, list(json.loads(whole)["processes"])))
    return found


def program_of(process: Dict[str, Any]) -> str:
    """Return the name of a process's program."""
    return os.path.basename(process["program"][0]) if process.get("program") else ""


def is_of_ray(process: Dict[str, Any]) -> bool:
    """Tell whether a process is one of Ray's own."""
    return _OF_RAY.match(" ".join(process.get("program") or ()) + " ") is not None


def ranks_in(nodes: Nodes) -> Ranks:
    """Return rank -> (node, its processes), by the surest variables; of several steps the largest."""
    for needed, rank_name, _, _ in RANKS_OF:
        steps: Dict[str, Ranks] = {}
        for host, processes in nodes:
            for process in processes:
                variables = process["variables"]
                rank = variables.get(rank_name, "")
                if (
                    needed not in variables
                    or not re.match(r"[0-9]{1,7}$", rank)
                    or HELPERS.match(program_of(process))
                ):
                    continue
                step = steps.setdefault(variables.get("SLURM_STEP_ID", ""), {})
                step.setdefault(int(rank), (host, []))[1].append(process)
        if steps:
            return max(steps.values(), key=len)
    return {}


def main_process(processes: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return the process that is the rank's own: one with Python's stacks, then the uppermost program."""
    parents = {one["pid"]: one["parent"] for one in processes}

    def depth(one: Dict[str, Any]) -> int:
        steps, pid = 0, one["pid"]
        while pid in parents and steps < 100:
            steps, pid = steps + 1, parents[pid]
        return steps

    def rank_of(one: Dict[str, Any]) -> Tuple[bool, bool, bool, int, int]:
        shell = _SHELLS.fullmatch(program_of(one)) is not None
        return (not is_of_ray(one), bool(stack_of(one)), not shell, -depth(one), -int(one["pid"]))

    return max(processes, key=rank_of)


def stack_of(process: Dict[str, Any], key: str = "first") -> List[List[Any]]:
    """Return the main thread's frames, the innermost first: file, line, function."""
    stacks = (process.get(key) or {}).get("stacks") or [[]]
    return [frame[:3] for frame in stacks[0]]


def lines_of(process: Dict[str, Any]) -> List[str]:
    """Return the source lines of the main thread's frames, as far as they are known."""
    stacks = (process.get("first") or {}).get("stacks") or [[]]
    return ["".join(frame[3:4]) for frame in stacks[0]]


def collective_in(name: str) -> Optional[str]:
    """Return the collective that a function is named after; ``synchronize`` is Horovod's wait for what it has
    begun, ``backward`` where DDP and FSDP sum gradients."""
    last = name.rpartition(".")[2].lower()
    return next((kind for kind, pattern in WORDS["kinds"] if re.match(pattern, last)), None)


def own_frame(stack: List[List[Any]]) -> int:
    """Return which frame is of the program itself: the innermost that is of no library."""
    own = [at for at, (path, *_) in enumerate(stack) if not _LIBRARY.search(path)]
    return min(own, key=lambda at: (not is_own(stack[at]), at), default=0)  # libraries compile <string>, too


def is_cut_import(stack: List[List[Any]]) -> bool:
    """Tell whether a stack, which faulthandler cuts at 100, has calls of an import, none of the program."""
    return not any(map(is_own, stack)) and any(name == "_find_and_load" for _, _, name in stack)


def called_from(stack: List[List[Any]], own: int) -> str:
    """Return the function that the program's own line called, without those around it."""
    inner = [name for _, _, name in stack[:own] if not re.search(WORDS["around"], name)]
    return "_find_and_load" if is_cut_import(stack) else (inner or [stack[max(0, own - 1)][2]])[-1]


def called(process: Dict[str, Any]) -> Optional[str]:
    """Return the collective that the main thread is in, by libraries' functions or the program's line."""
    stack, lines = stack_of(process), lines_of(process)
    own = own_frame(stack)
    for path, _, function in stack[: own + 1]:
        kind = collective_in(function) if _MESSAGES.search(path) else None
        if kind:
            return kind
    for line in lines[: own + 1][::-1]:
        for owner, name in _CALLED.findall(line):
            kind = collective_in(name)
            if kind and (kind in WORDS["certain"] or _OF_RANKS.fullmatch(owner)):
                return kind
    return None


def numbered(process: Dict[str, Any]) -> Optional[Tuple[str, int, bool]]:
    """Return (collective, its number, whether the rank is in it) of the newest, where they are numbered."""
    mark = (process.get("first") or {}).get("collective")
    if mark:
        return str(mark[1]), int(mark[0]), bool(mark[2])
    newest = [found[-1] for found in (process.get("recorder") or {}).values() if found]
    if not newest:
        return None
    pending = [each for each in newest if each[2] != "completed"]
    number, name, state = (pending or newest)[-1]
    return collective_in(str(name).replace("nccl:", "")) or str(name), int(number), state != "completed"


def place_of(process: Dict[str, Any]) -> Dict[str, Any]:
    """Return where a rank stands: ``what`` it is in, a collective's ``number``, ``path``, ``at``."""
    now, stack = process.get("first") or {}, stack_of(process)
    place: Dict[str, Any] = {"what": "", "number": None, "path": "", "at": "", "collective": False}
    if stack and not is_cut_import(stack):
        path, line, _ = stack[own_frame(stack)]
        place["at"] = f"{os.path.basename(path)}:{line}"
    counted, kind = numbered(process), called(process)
    call = _BLOCKED.get(now.get("call", ""))
    if now.get("over"):
        place["what"] = OVER
    elif now.get("state") in ("T", "t"):
        place["what"] = "stopped by a signal (state T)" if now["state"] == "T" else "stopped by a debugger"
    elif counted and counted[2]:
        place.update(what=counted[0], number=counted[1], collective=True)
    elif kind and not (call and now.get("path", "").startswith("/")):
        place.update(what=kind, collective=True)
    elif call:
        path = now.get("path", "")
        place.update(what=call, path=WORDS["unnamed"].get(path.partition(":")[0], path))
    else:
        place["what"] = otherwise(process)
    if now.get("state") == "D":
        waits = kernel_wait(now) or "waiting in {}".format(now.get("waits") or "the kernel")
        place["what"] = "{} ({}, state D)".format(place["what"] or "a system call", waits)
    return place


def kernel_wait(now: Dict[str, Any]) -> str:
    """Return what the kernel waits for, in words; empty where its function says nothing."""
    waits = now.get("waits", "")
    return next((words for pattern, words in WORDS["kernel waits"] if re.search(pattern, waits)), "")


def call_in(line: str) -> str:
    """Return the one method that a line calls, of several one that communicates: it has no frame where it is
    in C, as those of mpi4py and NumPy."""
    names = [name for _, name in _CALLED.findall(line)]
    communicate = [name for name in names if collective_in(name)]
    return (communicate or names)[0] if communicate or len(set(names)) == 1 else ""


def otherwise(process: Dict[str, Any]) -> str:
    """Return where a rank stands that is in no collective and no call about a file."""
    now, stack, lines = process.get("first") or {}, stack_of(process), lines_of(process)
    waits = kernel_wait(now)
    if is_of_ray(process):
        return "Ray, without a task"
    if stack:
        own = own_frame(stack)
        function = called_from(stack, own)
        if function.startswith("_find_and_load"):
            return "import"
        if own == 0 and (waits == "asleep" or "sleep(" in lines[0]):  # select() before Python 3.11
            return "sleep()"
        place, call = f"{function}()", "" if own else call_in(lines[0])
        place = WORDS["main"] if function == "<module>" else place
        return f"{call} in {place}" if call else place
    if waits or now.get("state") == "D":
        return "" if now.get("state") == "D" else waits
    if now.get("state") == "R":
        return "running (state R)"
    waits = now.get("call") or now.get("waits") or "the kernel"
    return f"waiting in {waits} (state {now.get('state') or '?'})"


def counts(look: Dict[str, Any]) -> Dict[str, int]:
    """Return the number of the newest collective of each process group, by torch's flight recorder."""
    return {group: int(found[-1][0]) for group, found in look["recorder"].items() if found}


def moved(process: Dict[str, Any]) -> Optional[bool]:
    """Tell whether a rank stood elsewhere at the second look; None: that cannot be said."""
    first, second = process.get("first") or {}, process.get("second") or {}
    if not second or is_of_ray(process):
        return None
    if first.get("over") and second.get("over"):
        return False
    if first.get("collective") and second.get("collective"):
        return bool(first["collective"] != second["collective"])
    if process.get("recorder") and second.get("recorder") and counts(process) != counts(second):
        return True
    if served(process):
        return True
    if first.get("stacks") and second.get("stacks"):
        asks_ray = "/ray/_private/" in stack_of(process)[0][0]  # once a second, whether its task is done
        return stack_of(process) != stack_of(process, "second") or (None if asks_ray else woken(process))
    same = all(first.get(name) == second.get(name) for name in ("state", "waits", "call", "path", "ticks"))
    return False if same else None


def gained(process: Dict[str, Any]) -> Tuple[int, int]:
    """Return how often the main thread was woken between two looks, and the CPU time of the process."""
    first, second = process.get("first") or {}, process.get("second") or {}
    wakes, ticks = (second.get(name, 0) - first.get(name, 0) for name in ("switches", "ticks"))
    return wakes, ticks


def woken(process: Dict[str, Any]) -> Optional[bool]:
    """Tell whether a rank that both looks find at the same place computed, or was woken, between them.

    None where it is in a library that looks again and again whether its message has come, as Horovod and MPI
    do, or whether its GPU is done, as CUDA does: it cannot be said from outside.
    """
    looks, (wakes, ticks) = (process["first"], process["second"]), gained(process)
    calls = {look.get("call", "") for look in looks}
    waits = looks_again(process)
    if waits and calls != {"futex"} and max(wakes, ticks) >= WORDS["wakes"]:
        return None
    if not waits and ticks >= WORDS["computes"] and computes(looks):
        return True
    return calls <= set(WORDS["sleeps"]) and wakes >= WORDS["wakes"]


def served(process: Dict[str, Any]) -> bool:
    """Tell whether what a thread awaits in state D, or in a call about a file, has come again and again: the
    kernel wakes it for little else (man proc_pid_stat)."""
    looks = (process["first"], process["second"])
    files = all(look.get("call") in _BLOCKED for look in looks)
    return (files or any(look.get("state") == "D" for look in looks)) and gained(process)[0] >= WORDS["wakes"]


def looks_again(process: Dict[str, Any]) -> bool:
    """Tell whether the main thread waits for a message or its GPU, which it may look for all the time."""
    lines = lines_of(process)
    message = collective_in(call_in("".join(lines[:1])))  # of an object of any name
    return called(process) is not None or message in ("receive", "send") or awaits_gpu(lines)


def awaits_gpu(lines: List[str]) -> bool:
    """Tell whether a thread waits for a GPU, which keeps its core busy (CUDA 13.0, on an H200)."""
    return any(re.search(WORDS["gpu_wait"], line) for line in lines[:2])


def computes(looks: Tuple[Dict[str, Any], Dict[str, Any]]) -> bool:
    """Tell whether the main thread runs, as in a loop that comes back to its line, or another own one."""
    others = (frame for stack in looks[0]["stacks"][1:] for frame in stack)
    return "R" in (looks[0].get("state"), looks[1].get("state")) or any(map(is_own, others))


def rank_report(rank: int, host: str, processes: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return where a rank stands, and who it is."""
    one = main_process(processes)
    others = [process for process in processes if process["pid"] != one["pid"]]
    blocked = [found for found in map(worker, others) if found["blocked"]]
    started = awaited(one, others)
    now, variables = one.get("first") or {}, one["variables"]
    gpu = next((variables[name] for name in GPU_VARIABLES if variables.get(name)), None)
    return {
        "rank": rank,
        "node": host,
        "gpu": gpu if gpu and gpu.count(",") == 0 else None,
        "pid": one["pid"],
        "program": one["program"],
        **{name: now.get(name) or "" for name in ("state", "waits", "call")},
        "by": now.get("by"),
        "moved": True if any(map(goes_on, started)) else moved(one),
        "suspect": False,
        "stack": frames((now.get("stacks") or [[]])[0]),
        "threads": [frames(stack) for stack in (now.get("stacks") or [])[1:]],
        "workers": blocked + [each for each in map(worker, started) if not each["blocked"]],
        "files": one.get("files") or [],
        "collectives": one.get("recorder") or {},
        "processes": len(processes),
        **place_of(one),
    }


def frames(stack: List[List[Any]]) -> List[Dict[str, Any]]:
    """Return a stack as the document has it."""
    return [dict(zip(("file", "line", "function", "text"), frame)) for frame in stack]  # noqa: B905  (3.6)


def own_part(process: Dict[str, Any]) -> List[List[Any]]:
    """Return the frames of a started process, without those of its parent that a fork leaves below them."""
    stack: List[List[Any]] = ((process.get("first") or {}).get("stacks") or [[]])[0]
    start = [
        at for at, (path, _, name, *_) in enumerate(stack) if name == "_bootstrap" and "multiproc" in path
    ]
    return stack[: start[0]] if start else stack


def worker(process: Dict[str, Any]) -> Dict[str, Any]:
    """Return where another process of a rank stands, such as one that loads data."""
    now, stack = process.get("first") or {}, own_part(process)
    place = place_of({**process, "first": {**now, "stacks": [stack]}})
    blocked = place["path"].startswith("/") or now.get("state") in ("D", "T")
    if not stack and not blocked:
        place["what"] = "runs " + " ".join(process["program"])[:80]
    return {"pid": process["pid"], **place, "blocked": blocked, "stack": frames(stack), "workers": []}


def awaited(one: Dict[str, Any], others: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the processes at work that a rank has started, if it waits for such: commands last."""
    stack, call = stack_of(one), (one.get("first") or {}).get("call")
    waits = any(_AWAITS.search(path) for path, _, _ in stack[: own_frame(stack)])
    if not waits and call not in ("wait4", "waitid"):
        return []
    above = {one["pid"], *(each["pid"] for each in others if each["parent"] == one["pid"])}
    found = [each for each in others if each["parent"] in above]
    return sorted(filter(at_work, found), key=lambda each: not own_part(each))


def at_work(process: Dict[str, Any]) -> bool:
    """Tell whether a started process is in the program's own code, or a command; others wait for work."""
    stack = own_part(process)
    return any(map(is_own, stack)) if stack else not _SHELLS.fullmatch(program_of(process))


def is_own(frame: List[Any]) -> bool:
    """Tell whether a frame is of the program itself."""
    return not _LIBRARY.search(frame[0]) and frame[0] != "<string>"


def goes_on(process: Dict[str, Any]) -> bool:
    """Tell whether a process that a rank waits for moves, computes, or is woken where it stands."""
    wakes, ticks = gained(process)
    return bool(moved(process) or wakes >= WORDS["wakes"] or ticks >= WORDS["computes"])


def words_of(report: Dict[str, Any]) -> str:
    """Return where a rank stands, in words."""
    text = report["what"]
    if report["collective"] or text == "import" or text.endswith(("()", WORDS["main"])):
        text = "in " + text
    if report["number"] is not None:
        text += " #{}".format(report["number"])
    if report["path"]:
        text += " of {}".format(report["path"])
    text = "{} ({})".format(text, report["at"]) if report["at"] else text
    for worker in report["workers"][:1]:
        text += ", its process {} {}".format(worker["pid"], words_of(worker))
    return text


def names_of(reports: List[Dict[str, Any]]) -> str:
    """Return some ranks with their node and GPU."""
    named = []
    for one in reports[: WORDS["named"]]:
        gpu = ", GPU {}".format(one["gpu"]) if one["gpu"] else ""
        named.append("{} ({}{})".format(one["rank"], one["node"], gpu))
    more = f" and {len(reports) - WORDS['named']} more" if len(reports) > WORDS["named"] else ""
    return "rank{} {}{}".format("s" if len(reports) > 1 else "", ", ".join(named), more)


def span(seconds: int) -> str:
    """Return a time in its largest units."""
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def grouped(reports: List[Dict[str, Any]]) -> List[List[Report]]:
    """Return the ranks that stand at the same place together, the largest group first.

    Of ranks in the same collective with the same number it does not matter where the program called it.
    """
    groups: Dict[Any, List[Dict[str, Any]]] = {}
    for one in reports:
        exact = one["what"], one["number"], one["path"], "" if one["number"] is not None else one["at"]
        groups.setdefault(exact, []).append(one)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]["rank"]))


def most_move(reports: List[Report]) -> bool:
    """Tell whether most ranks moved, of those of which it is known."""
    known = [one["moved"] for one in reports if one["moved"] is not None]
    return bool(sum(known) * 2 > len(known))


def at_rest(reports: List[Report]) -> List[Report]:
    """Return the ranks that do not move; where one does, those of which it is not known may wait for it."""
    moves = any(one["moved"] for one in reports)
    return [one for one in reports if not one["moved"] and (one["moved"] is False or not moves)]


def mark_suspects(groups: List[List[Report]]) -> str:
    """Mark the ranks that other ranks wait for, but none that moves; return the kind of the finding."""
    every = [one for group in groups for one in group]
    waiting = [one for one in every if one["collective"]]
    stopped = [one for one in every if one["state"] in ("T", "t")]
    outside = [one for one in every if not one["collective"] and one not in stopped] if waiting else []
    disk = [one for one in at_rest(every) if one["state"] == "D"] if not waiting else []
    if most_move(every):
        outside, disk, kind = [], [], "moving"
    elif len(waiting) == len(every):
        outside = differing(waiting)
        kind = "mismatch" if outside else "alike"
    else:
        still = at_rest(outside)
        kind = "slow" if outside and not still else kind_of_wait(still + disk)
        outside = still
    for one in stopped + outside + disk:
        one["suspect"] = True
    return "stopped" if stopped else kind


def is_over(report: Report) -> bool:
    """Tell whether the program of a rank has ended, while its process has not."""
    return bool(report["what"].endswith(OVER))


def kind_of_wait(suspects: List[Report]) -> str:
    """Return what keeps ranks out of the collective that the other ranks are in."""
    if any(map(is_over, suspects)):
        return "over"
    if any(one["state"] == "D" for one in suspects):
        return "disk"
    if any(one["what"] == _BLOCKED.get(one["call"]) for one in suspects):
        return "blocked"
    if any(each["blocked"] for one in suspects for each in one["workers"]):
        return "blocked"
    return "behind" if suspects else "unclear"


def collective_of(report: Report) -> Tuple[str, Optional[int], str]:
    """Return which collective a rank is in: by its number, else by the place that calls it."""
    number = report["number"]
    return report["what"], number, report["at"] if number is None else ""


def differing(waiting: List[Report]) -> List[Report]:
    """Return the ranks that are in another collective than most; none where all are in the same.

    By the numbers of the flight recorder a rank that called another collective earlier is found, too.
    """
    early = first_difference(waiting)
    same = Counter(map(collective_of, waiting)).most_common(2)
    if early or len(same) < 2:
        return early
    (usual, count), (_, second) = same
    if count == second:
        return waiting if len(waiting) == 2 else []
    return [one for one in waiting if collective_of(one) != usual]


def first_difference(reports: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the ranks whose collective of a number is another than that of most ranks."""
    for group in sorted({group for one in reports for group in one["collectives"]}):
        called_by: Dict[int, Dict[int, str]] = {}
        for one in reports:
            for number, name, _ in one["collectives"].get(group, []):
                called_by.setdefault(number, {})[one["rank"]] = name
        for number in sorted(called_by):
            names = called_by[number]
            usual, count = Counter(names.values()).most_common(1)[0]
            if len(set(names.values())) > 1 and count * 2 > len(names):
                odd = [one for one in reports if names.get(one["rank"], usual) != usual]
                for one in odd:
                    kind = collective_in(names[one["rank"]]) or names[one["rank"]]
                    one.update(what=kind, number=number)
                return odd
    return []


def exception_of(words: str) -> str:
    """Return ``raised ...`` where a rank's stderr ends with the traceback of an exception, else nothing."""
    match = _RAISED.search(words.rstrip())
    return "raised " + match.group(1)[:200] if match else ""


def without_stacks(reports: List[Report]) -> List[str]:
    """Return how to have stacks, where no rank showed one."""
    if not reports or any(one["by"] or is_over(one) for one in reports):
        return []
    unread, other = WORDS["no stacks"]
    return [unread if any(re.match("python|pypy", program_of(one)) for one in reports) else other]


def roll_call(
    nodes: Nodes, ranks: int, nodes_wanted: int, idle_s: Optional[int], stderr: Callable[[int], str]
) -> Dict[str, Any]:
    """Return the roll call of a job; ``idle_s``: since its last output; ``stderr``: of a rank, the end."""
    found = ranks_in(nodes)
    reports = [rank_report(rank, *found[rank]) for rank in sorted(found)]
    missing = [rank for rank in range(ranks) if rank not in found]
    for one in list(filter(is_over, reports))[: WORDS["named"]]:
        one["what"] = ", and ".join(filter(None, (exception_of(stderr(one["rank"])), OVER)))
    groups = grouped(reports)
    kind = mark_suspects(groups)
    groups = grouped(reports)  # a mismatch renames a rank's collective
    notes = []
    if len(nodes) < nodes_wanted:
        notes.append(f"{len(nodes)} of {nodes_wanted} nodes have answered")
    elif missing and reports:
        kind = "missing"
        said = [(rank, exception_of(stderr(rank))) for rank in missing[: WORDS["named"]]]
        notes += [f"rank {rank} {error}" for rank, error in said if error]
    unknown = [one["stack"] for one in reports if one["moved"] is None]
    if any(awaits_gpu([frame.get("text", "") for frame in stack]) for stack in unknown):
        notes.append("waiting for a GPU looks the same whether its kernel ends or not")
    notes += without_stacks(reports)
    if not reports:
        kind = "none"
    finding = sentence(groups, kind, missing, ranks, idle_s, notes)
    return {
        "finding": finding,
        "kind": kind,
        "remedy": WORDS["remedies"].get(kind),
        "suspects": [one["rank"] for one in reports if one["suspect"]],
        "missing": missing,
        "ranks": ranks,
        "nodes_answered": len(nodes),
        "nodes": nodes_wanted,
        "idle_s": idle_s,
        "by_rank": reports,
        "other_processes": strangers(nodes, found),
    }


def strangers(nodes: Nodes, found: Ranks) -> List[Dict[str, Any]]:
    """Return processes of the job whose rank is not known, as of a program that cleared its environment."""
    known = {(host, one["pid"]) for host, processes in found.values() for one in processes}
    return [
        {
            "node": host,
            "pid": one["pid"],
            "program": one["program"],
            "state": (one.get("first") or {}).get("state", ""),
        }
        for host, processes in nodes
        for one in processes
        if (host, one["pid"]) not in known
        and not HELPERS.match(program_of(one))
        and not _SHELLS.fullmatch(program_of(one))
        and not is_of_ray(one)
        and not WORKER_LAUNCHERS.match(" ".join(one["program"][:4]))
        and program_of(one) != "sleep"  # by which the job's script waits between its looks
    ][:20]


def absent(missing: List[int]) -> List[str]:
    """Return in words which ranks have no process; empty: all have one."""
    some = ", ".join(map(str, missing[: WORDS["named"]])) + (", ..." if len(missing) > WORDS["named"] else "")
    return ["rank{} {} without a process".format("s" if len(missing) > 1 else "", some)] if missing else []


def sentence(
    groups: List[List[Report]],
    kind: str,
    missing: List[int],
    ranks: int,
    idle_s: Optional[int],
    notes: List[str],
) -> str:
    """Return the finding in one line: most ranks first, then those of the other ranks by name."""
    parts = []
    for at, group in enumerate(group for group in groups if group):
        suspect = any(one["suspect"] for one in group)
        moves = ", moving" if kind != "moving" and all(one["moved"] for one in group) else ""
        if (at == 0 or len(group) > WORDS["named"]) and not (suspect and len(group) < 3):
            parts.append(f"{len(group)} of {ranks} {words_of(group[0])}{moves}")
        else:
            parts.append(f"{names_of(group)} {words_of(group[0])}{moves}")
        if at == 7 and len(groups) > 8:
            parts.append(f"{len(groups) - 8} more places")
            break
    parts += absent(missing if groups else [])
    if not groups:
        parts.append("no rank of the job can be seen on its nodes")
    if kind in WORDS["meanings"]:
        parts.append(WORDS["meanings"][kind])
    if idle_s is not None:
        parts.append(f"no output since {span(idle_s)}")
    return "; ".join([*parts, *notes])


def shown_frames(stack: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the innermost calls, then those of the program itself."""
    most = WORDS["innermost"]
    return stack[:most] + [one for one in stack[most:] if not _LIBRARY.search(one["file"])]


def frame_line(frame: Dict[str, Any]) -> str:
    """Return a call of a stack as text, with the line of the source where it is known."""
    text = "    {}:{} in {}".format(frame["file"], frame["line"], frame["function"])
    return f"{text}: {frame['text']}" if frame.get("text") else text


def shown_ranks(call: Dict[str, Any]) -> List[Report]:
    """Return the ranks that other ranks wait for, else one of those with stacks, else all."""
    slow = call["kind"] == "slow"
    late = [one for one in call["by_rank"] if one["suspect"] or (slow and not one["collective"])]
    return late or call["by_rank"][: 1 if any(one["by"] for one in call["by_rank"]) else WORDS["named"]]


def text_lines(call: Dict[str, Any]) -> Iterator[str]:
    """Yield the roll call as text: the finding, the remedy, the stacks of the ranks that others wait for."""
    yield call["finding"]
    if call["remedy"]:
        yield "  {}".format(call["remedy"])
    for one in shown_ranks(call)[: WORDS["named"]]:
        gpu = ", GPU {}".format(one["gpu"]) if one["gpu"] else ""
        state = ", ".join(filter(None, (one["state"], one["call"] and one["call"] + "()", one["waits"])))
        words = " ".join(one["program"])
        yield f"rank {one['rank']} on {one['node']}{gpu}: pid {one['pid']}, state {state}: {words}"
        yield from map(frame_line, shown_frames(one["stack"]))
        for stack in [stack for stack in one["threads"] if any(is_own([frame["file"]]) for frame in stack)]:
            yield "  another thread of it:"
            yield from map(frame_line, shown_frames(stack))
        for each in one["workers"][:1]:
            yield "  its process {} {}:".format(each["pid"], words_of(each))
            yield from map(frame_line, shown_frames(each.get("stack") or []))
        if not one["stack"] and one["files"]:
            yield "    open: {}".format(" ".join(one["files"]))
    for one in call["other_processes"]:
        yield "a process whose rank is not known, on {}: pid {}, state {}: {}".format(
            one["node"], one["pid"], one["state"], " ".join(one["program"])
        )


def main() -> None:
    """Print the roll call and write it to the job's folder."""
    folder, ranks, nodes, idle_s = sys.argv[1], *map(int, sys.argv[2:5])

    def stderr(rank: int) -> str:
        with suppress(OSError), open(os.path.join(folder, "stderr", str(rank)), errors="replace") as file:
            return file.read()
        return ""

    call = roll_call(nodes_in(sys.stdin.read()), ranks, nodes, idle_s, stderr)
    for line in text_lines(call):
        print("hpclaunch: stacks: " + "".join(each if each.isprintable() else "?" for each in line))
    sys.stdout.flush()
    short = {name: call[name] for name in ("finding", "kind", "remedy")}
    short["suspects"] = call["suspects"][: WORDS["most_kept"]]
    for name, document in ((VERDICT, short), (FILE, call)):
        path = os.path.join(folder, name)
        with open(path + ".new", "w") as file:
            json.dump(document, file)
        os.rename(path + ".new", path)


if __name__ == "__main__":
    main()
