"""Trainings with a fault put in, and without one, repeated on two nodes of a real Slurm.

    python -m tests.long_faults [REPEATS [WORDS]]

WORDS choose the runs whose name has them. Prints a table: how often each fault was named rightly, by how much
the rank was late, and the load of the machine, which makes the noise. The timelines of wrong answers stay in
the folder that is printed with them. The exit status is 1 if one was wrong.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from hpclaunch.text_table import text_table
from tests.conftest import MPI_VARIABLES
from tests.testbed.cluster import Slurm
from tests.timeline.faults import FAULTS, Fault, diagnosis, mistake


class Run(NamedTuple):
    """One job."""

    mistake: str
    late_ms: float | None
    noise_ms: float | None
    load: float
    """Processes that wanted a core, the mean of a minute."""


def run(fault: Fault, cluster: Slurm, scratch: Path) -> Run:
    """Run a job; the timelines of a wrong answer are kept."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    state = folder / "state"
    environment = {**cluster.environment(), **MPI_VARIABLES, "XDG_STATE_HOME": str(state)}
    found = diagnosis(fault, folder, environment)
    wrong, first = mistake(fault, found), found["verdicts"][0]
    if wrong:
        kept = tempfile.mkdtemp(prefix="hpclaunch-wrong-verdict-")
        shutil.copytree(state / "hpclaunch" / "jobs", kept, dirs_exist_ok=True)
        wrong = f"{wrong} ({kept})"
    shutil.rmtree(folder)
    return Run(wrong, first["late_ms"], first["noise_ms"], os.getloadavg()[0])


def row(fault: Fault, runs: list[Run]) -> tuple[str, ...]:
    """Return the line of the table."""
    right = sum(not each.mistake for each in runs)
    late = sorted(each.late_ms for each in runs if each.late_ms is not None)
    noise = sorted(each.noise_ms for each in runs if each.noise_ms is not None)
    return (
        fault.name,
        fault.kind or "no rank named",
        f"{right} of {len(runs)}",
        f"{late[0]:.0f} to {late[-1]:.0f}" if late else "-",
        f"{noise[0]:.1f} to {noise[-1]:.1f}" if noise else "-",
        f"{min(each.load for each in runs):.0f} to {max(each.load for each in runs):.0f}",
    )


def main(repeats: int, words: str) -> int:
    """Run all, in turn, so that a busy hour of the machine is in the runs of each."""
    faults = [fault for fault in FAULTS if words in fault.name]
    runs: dict[str, list[Run]] = {fault.name: [] for fault in faults}
    cluster = Slurm(MPI="pmix", NODES="2").start()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for repeat in range(repeats):
                for fault in faults:
                    start = time.monotonic()
                    found = run(fault, cluster, Path(scratch))
                    runs[fault.name].append(found)
                    took = f"{time.monotonic() - start:.0f} s, load {found.load:.0f}"
                    said = f"wrong: {found.mistake}" if found.mistake else "right"
                    print(f"{repeat + 1} {fault.name} ({took}): {said}", flush=True)
    finally:
        cluster.stop()
    head = ("training", "wanted", "right", "late, ms", "noise, ms", "load")
    print(text_table([row(fault, runs[fault.name]) for fault in faults], head))
    return int(any(each.mistake for found in runs.values() for each in found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, " ".join(sys.argv[2:])))
