"""What the start of a rank costs, as whole processes: Python's start-up file, and keeping its last words.

    python benchmarks/rank_startup.py [--runs 200] [--python PYTHON] [--at-once 1]

Python alone is started without its start-up file, with it as the ranks of a job have it, as it were if
nothing had compiled it, and with --profile: the goal is below 2 ms more, and one file opened. A whole rank
is the shell of a local job's script that becomes Python, without and with the copies of its stderr and of
its stdout, which must be no terminal: the goal is at most a tenth more for each. All kinds are started in
turn, so that a busy machine slows all of them alike; --at-once: so many of a kind side by side, as the ranks
of a node start. Printed are the median of each kind, and the median of its differences in the same round to
the first of its block; then how often one start opens, lists or asks for files, by strace.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from hpclaunch.package_data import resource_dir
from hpclaunch.plan.startup_plan import STACKS_SIGNAL, STARTUP_FILES


class Taken(NamedTuple):
    """Of a program that does nothing, in seconds."""

    wall: float
    cpu: float
    """In the program and in the kernel for it: what other processes on the machine change little."""


class Kind(NamedTuple):
    """A way to start the program."""

    words: tuple[str, ...]
    environment: dict[str, str]


def taken_by(words: tuple[str, ...], environment: dict[str, str], at_once: int) -> Taken:
    """Start the program so many times side by side; return the mean of them."""
    start = time.perf_counter()
    children = [os.posix_spawn(words[0], words, environment) for _ in range(at_once)]
    cpu = 0.0
    for child in children:
        _, status, usage = os.wait4(child, 0)
        cpu += usage.ru_utime + usage.ru_stime
        if status:
            raise SystemExit(f"{words[0]}: exit status {status}")
    return Taken(time.perf_counter() - start, cpu / at_once)


def calls_of(kind: Kind, folder: Path) -> tuple[int, int, int]:
    """Return how many files below the folder a start opens, how many folders it lists, how often it asks."""
    log = folder / "strace"
    subprocess.run(
        ["strace", "-f", "-o", log, "-e", "trace=file", *kind.words], env=kind.environment, check=True
    )
    lines = [line for line in log.read_text().splitlines() if f'"{folder}' in line]
    opens = [line for line in lines if "open" in line]
    lists = sum("O_DIRECTORY" in line for line in opens)
    return len(opens) - lists, lists, len(lines) - len(opens)


def rank_shell(folder: Path) -> str:
    """Return the shell of a rank as a local job has it: its lines of the script, and what the files add."""
    words = (sys.executable, "-m", "hpclaunch", "submit", "--site", "local", "--dry-run", "--save")
    saved = subprocess.run([*words, folder / "job", "--", "true"], capture_output=True, text=True, check=True)
    lines = saved.stdout.split("<<'HPCLAUNCH_RANK' || :\n")[1].split("HPCLAUNCH_RANK\n")[0]
    environment = {**os.environ, "HPCLAUNCH_FILES": str(folder / "job" / "files")}
    prints = '. "$HPCLAUNCH_FILES/job_start.sh"; printf %s "$rank_end"'
    started = subprocess.run(
        ["bash", "-c", prints],
        env={**environment, "HPCLAUNCH_JOB_FOLDER": str(folder / "started")},
        capture_output=True,
        text=True,
        check=True,
    )
    return lines + started.stdout


def kinds_in(folder: Path, python: str) -> tuple[dict[str, Kind], dict[str, Kind]]:
    """Return the kinds of both blocks; their files go into the folder."""
    fresh = folder / "fresh"
    for place in (folder, fresh):
        place.mkdir(exist_ok=True)
        for name, there in STARTUP_FILES.items():
            shutil.copy(resource_dir("remote") / name, place / there)
    subprocess.run([python, "-IS", "-m", "compileall", "-ql", folder], check=True)  # as startup.sh does
    (fresh / "__pycache__").touch()  # where each start writes a compiled copy, this one cannot
    both = folder / "both"
    for place in (folder / "stderr", folder / "binding", both / "stderr", both / "binding", both / "stdout"):
        place.mkdir(parents=True)
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HPCLAUNCH"))
    }
    alone = (python, "-c", "pass")
    found = {**plain, "PYTHONPATH": str(folder)}
    stacks = {"HPCLAUNCH_STACKS": str(STACKS_SIGNAL)}
    profile = {"HPCLAUNCH_PROFILE": "10:3", "HPCLAUNCH_PROFILE_FOLDER": str(folder)}
    rank = ("/bin/bash", "-c", rank_shell(folder), "rank", *alone)
    in_job = {**plain, "HPCLAUNCH_JOB_FOLDER": str(folder), "HPCLAUNCH_RANK": "0"}
    return {
        "Python without the file": Kind(alone, plain),
        "with it": Kind(alone, {**found, **stacks}),
        "with it, not compiled": Kind(alone, {**found, **stacks, "PYTHONPATH": str(fresh)}),
        "with --profile": Kind(alone, {**found, **stacks, **profile}),
    }, {
        "rank, no output kept": Kind(rank, {**in_job, "HPCLAUNCH_LAST_WORDS": "off"}),
        "rank, stderr kept": Kind(rank, in_job),
        "rank, stdout too": Kind(rank, {**in_job, "HPCLAUNCH_JOB_FOLDER": str(both)}),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        blocks = kinds_in(Path(folder), options.python)
        calls = {name: calls_of(kind, Path(folder)) for name, kind in blocks[0].items()}
        times: dict[str, list[Taken]] = {kind: [] for block in blocks for kind in block}
        for number in range(options.runs + 1):
            for kind, (words, environment) in (pair for block in blocks for pair in block.items()):
                taken = taken_by(words, environment, options.at_once)
                if number:  # the first round reads the files from the disk
                    times[kind].append(taken)
    print(f"{'':24} {'CPU':>9} {'more':>9} {'wall':>9} {'more':>9}   ms, medians of {options.runs}")
    for block in blocks:
        first = times[next(iter(block))]
        for kind in block:
            print(f"{kind:24}", *(columns(times[kind], first, at) for at in (1, 0)))
    for kind, (opens, lists, asks) in calls.items():
        print(f"{kind:24} {opens} opened, {lists} listed, {asks} other calls about the start-up files")


def columns(found: list[Taken], first: list[Taken], at: int) -> str:
    """Return the median of a kind's times, and that of its differences, in ms."""
    more = statistics.median(mine[at] - base[at] for mine, base in zip(found, first, strict=True))
    return f"{statistics.median(one[at] for one in found) * 1e3:9.2f} {more * 1e3:+9.2f}"


if __name__ == "__main__":
    main()
