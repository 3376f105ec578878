"""What the start of a rank costs, as whole processes: Python's start-up file, and keeping the end of stderr.

    python benchmarks/rank_startup.py [--runs 200] [--python PYTHON]

Python alone is started without its start-up file, with --stacks, and with --profile: the goal is below 2 ms
more. A whole rank is the shell of a local job's script that becomes Python, without and with the copy of its
stderr: the goal is at most a tenth more. All kinds are started in turn, so that a busy machine slows all of
them alike. Printed are the median of each kind, and the median of its differences in the same round to the
first of its block.
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


def taken_by(words: tuple[str, ...], environment: dict[str, str]) -> Taken:
    """Start the program once."""
    start = time.perf_counter()
    child = os.posix_spawn(words[0], words, environment)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"{words[0]}: exit status {status}")
    return Taken(wall, usage.ru_utime + usage.ru_stime)


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
    for name, there in STARTUP_FILES.items():
        shutil.copy(resource_dir("remote") / name, folder / there)
    (folder / "__pycache__").touch()
    (folder / "stderr").mkdir()
    (folder / "binding").mkdir()
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
        "--stacks": Kind(alone, {**found, **stacks}),
        "--profile, with stacks": Kind(alone, {**found, **stacks, **profile}),
    }, {
        "rank, stderr not kept": Kind(rank, {**in_job, "HPCLAUNCH_RANK_STDERR": "off"}),
        "rank, stderr kept": Kind(rank, in_job),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        blocks = kinds_in(Path(folder), options.python)
        times: dict[str, list[Taken]] = {kind: [] for block in blocks for kind in block}
        for number in range(options.runs + 1):
            for kind, (words, environment) in (pair for block in blocks for pair in block.items()):
                taken = taken_by(words, environment)
                if number:  # the first round compiles the files
                    times[kind].append(taken)
    print(f"{'':24} {'CPU':>9} {'more':>9} {'wall':>9} {'more':>9}   ms, medians of {options.runs}")
    for block in blocks:
        first = times[next(iter(block))]
        for kind in block:
            print(f"{kind:24}", *(columns(times[kind], first, at) for at in (1, 0)))


def columns(found: list[Taken], first: list[Taken], at: int) -> str:
    """Return the median of a kind's times, and that of its differences, in ms."""
    more = statistics.median(mine[at] - base[at] for mine, base in zip(found, first, strict=True))
    return f"{statistics.median(one[at] for one in found) * 1e3:9.2f} {more * 1e3:+9.2f}"


if __name__ == "__main__":
    main()
