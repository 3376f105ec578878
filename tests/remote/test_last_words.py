"""The ends of each rank's stderr and stdout stay in files, and the program notices nothing of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpclaunch.lint.shellcheck import find_shellcheck
from hpclaunch.package_data import resource_dir

FILE = resource_dir("remote") / "last_words.sh"
# As the script of a job has it.
SHELL = (
    'hpclaunch_tasks=4; . "$1"; hpclaunch_keep_last_words "$2" "$3"; shift 3;'
    ' [ -z "${hpclaunch_copier:-}" ] || wait "$hpclaunch_copier"; exec -- "$@"'
)


def rank(folder: Path, *program: str) -> list[str]:
    (folder / "stderr").mkdir(exist_ok=True)
    return ["bash", "-c", SHELL, "rank", str(FILE), str(folder), "3", *program]


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def kept(folder: Path, stream: str = "stderr") -> bytes:
    files = (folder / stream / name for name in ("3.before", "3"))
    return b"".join(file.read_bytes() for file in files if file.exists())


def until(found: Callable[[], bool]) -> None:
    while not found():
        time.sleep(0.05)


def copiers(folder: Path) -> list[int]:
    """The processes that copy for this folder: tee, and the shell that has the folder in its command line."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", process, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"bash" and str(folder).encode() in words:
            found.append(int(process))
    return found


@pytest.mark.parametrize(
    ("ending", "code"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", -9), ("os.abort()", -6)]
)
def test_every_byte_reaches_the_launcher_and_the_file_and_the_end_is_the_programs(
    ending: str, code: int, tmp_path: Path
) -> None:
    words = b"".join(b"line %d\xff\n" % number for number in range(3000))
    program = f"import os, sys; sys.stderr.buffer.write({words!r}); sys.stderr.flush(); {ending}"
    done = subprocess.run(rank(tmp_path, *python(program)), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", words)
    until(lambda: kept(tmp_path) == words)


def test_both_streams_are_kept_apart_where_stdout_has_a_folder(tmp_path: Path) -> None:
    (tmp_path / "stdout").mkdir()
    done = subprocess.run(rank(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 7"), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    until(lambda: (kept(tmp_path), kept(tmp_path, "stdout")) == (b"err\n", b"out\n"))
    until(lambda: not copiers(tmp_path))


def test_a_terminal_stays_one(tmp_path: Path) -> None:
    """Open MPI gives its ranks one: programs write line by line there, and in pieces into a pipe."""
    (tmp_path / "stdout").mkdir()
    ours, theirs = os.openpty()
    process = subprocess.Popen(rank(tmp_path, "sh", "-c", "[ -t 1 ] && echo terminal"), stdout=theirs)
    assert process.wait() == 0
    assert os.read(ours, 100) == b"terminal\r\n"
    assert list((tmp_path / "stdout").iterdir()) == []


def test_nul_bytes_reach_the_launcher(tmp_path: Path) -> None:
    done = subprocess.run(rank(tmp_path, "printf", r"a\0b\n"), stdout=subprocess.PIPE)
    assert done.stdout == b"a\0b\n"
    text = subprocess.run(rank(tmp_path, "sh", "-c", r"printf '\0a\0b\n' >&2"), stderr=subprocess.PIPE).stderr
    assert text == b"\0a\0b\n"
    until(lambda: kept(tmp_path) == b"ab\n")


NOTICES = """
import os
fds = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in map(int, os.listdir("/proc/self/fd")) if fd != 3}
try:
    child = os.wait()
except ChildProcessError:
    child = None
print(sorted(fds) == [0, 1, 2, %d], child, os.getpid(), os.getpgrp(), "hpclaunch_copier" in os.environ)
"""


def test_the_program_has_no_child_and_no_file_more(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "the launcher's", os.O_CREAT | os.O_RDWR)
    command = rank(tmp_path, *python(NOTICES % fd))
    process = subprocess.Popen(command, pass_fds=[fd], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    answer = process.communicate()[0].decode()
    assert answer == f"True None {process.pid} {os.getpgrp()} False\n"


def test_a_silent_rank_leaves_no_file(tmp_path: Path) -> None:
    subprocess.run(rank(tmp_path, "echo", "on stdout"), check=True, capture_output=True)
    until(lambda: not copiers(tmp_path))
    assert list((tmp_path / "stderr").iterdir()) == []


@pytest.mark.parametrize("length", [70, 100_000])
def test_of_much_the_end_is_kept(length: int, tmp_path: Path) -> None:
    text = "".join(f"{number} {'x' * length}\n" for number in range(6_000_000 // length)).encode()
    (tmp_path / "text").write_bytes(text)
    done = subprocess.run(rank(tmp_path, "sh", "-c", f"cat '{tmp_path}/text' >&2"), stderr=subprocess.PIPE)
    assert done.stderr == text, "not as written"
    until(lambda: not copiers(tmp_path))
    found = kept(tmp_path)
    assert text.endswith(found), "not the end"
    assert 65536 <= len(found) <= 700 << 10


def test_what_launchers_send_to_a_rank_does_not_end_its_copy(tmp_path: Path) -> None:
    """TERM and KILL to the group of the rank, as mpiexec does it at an abort: the last words are there."""
    program = "trap 'echo the last words >&2; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        rank(tmp_path, "bash", "-c", program),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        for copier in copiers(tmp_path):
            os.kill(copier, number)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait() == 5
    words = process.communicate()[1]
    assert words.endswith(b"the last words\n")
    until(lambda: kept(tmp_path) == words)


def test_it_is_in_the_file_while_the_program_runs(tmp_path: Path) -> None:
    """So a node that loses all processes at once has left something."""
    command = rank(tmp_path, "sh", "-c", "echo step 1 >&2; exec sleep 600")
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    until(lambda: kept(tmp_path) == b"step 1\n")
    for each in (process.pid, *copiers(tmp_path)):
        os.kill(each, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert kept(tmp_path) == b"step 1\n"


def test_a_process_that_the_program_leaves_behind_delays_nothing(tmp_path: Path) -> None:
    program = "sleep 600 > /dev/null < /dev/null & echo $!; echo bye >&2; exit 4"
    process = subprocess.Popen(
        rank(tmp_path, "bash", "-c", program), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    left = int(process.stdout.readline())
    assert process.wait() == 4
    until(lambda: kept(tmp_path) == b"bye\n")
    os.kill(left, signal.SIGKILL)
    assert process.communicate() == (b"", b"bye\n")
    until(lambda: not copiers(tmp_path))


def test_it_can_be_switched_off_and_needs_its_folder(tmp_path: Path) -> None:
    command = rank(tmp_path, "sh", "-c", "echo words >&2")
    off = {**os.environ, "HPCLAUNCH_LAST_WORDS": "off"}
    assert subprocess.run(command, env=off, capture_output=True).stderr == b"words\n"
    (tmp_path / "stderr").rmdir()
    assert subprocess.run(command, capture_output=True).stderr == b"words\n"
    assert not (tmp_path / "stderr").exists()


def test_shellcheck_finds_nothing_in_it() -> None:
    done = subprocess.run([str(find_shellcheck()), str(FILE)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
