"""What Python's start-up file costs a rank, as whole processes: with --stacks, --profile, and without it.

    python benchmarks/rank_startup.py [--runs 200] [--python PYTHON]

All kinds are started in turn, so that a busy machine slows all of them alike. Printed are the median of each
kind, and the median of its differences to a start without the file in the same round. The goal is below 2 ms.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
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


def taken_by(python: str, environment: dict[str, str]) -> Taken:
    """Start the program once."""
    start = time.perf_counter()
    child = os.posix_spawn(python, [python, "-c", "pass"], environment)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"{python}: exit status {status}")
    return Taken(wall, usage.ru_utime + usage.ru_stime)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HPCLAUNCH"))
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, there in STARTUP_FILES.items():
            shutil.copy(resource_dir("remote") / name, Path(folder) / there)
        found = {**plain, "PYTHONPATH": folder}
        stacks = {"HPCLAUNCH_STACKS": str(STACKS_SIGNAL)}
        profile = {"HPCLAUNCH_PROFILE": "10:3", "HPCLAUNCH_PROFILE_FOLDER": folder}
        kinds = {
            "without the file": plain,
            "--stacks": {**found, **stacks},
            "--profile, with stacks": {**found, **stacks, **profile},
        }
        times: dict[str, list[Taken]] = {kind: [] for kind in kinds}
        for number in range(options.runs + 1):
            for kind, environment in kinds.items():
                taken = taken_by(options.python, environment)
                if number:  # the first round compiles the files
                    times[kind].append(taken)
    first, *_ = times.values()
    print(f"{'':24} {'CPU':>9} {'more':>9} {'wall':>9} {'more':>9}   ms, medians of {options.runs}")
    for kind, found_times in times.items():
        print(f"{kind:24}", end="")
        for at in (1, 0):
            own = statistics.median(one[at] for one in found_times)
            more = statistics.median(
                mine[at] - base[at] for mine, base in zip(found_times, first, strict=True)
            )
            print(f" {own * 1e3:9.2f} {more * 1e3:+9.2f}", end="")
        print()


if __name__ == "__main__":
    main()
