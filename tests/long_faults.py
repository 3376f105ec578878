"""Trainings that are slow or hang by a fault put in, and without one, repeated on two nodes of a real Slurm.

    python -m tests.long_faults [REPEATS [WORDS]]

WORDS choose the runs whose name has them. Prints a table: how often each fault was named rightly, by how much
the rank was late, and the load of the machine, which makes the noise. The jobs of wrong answers stay in the
folder that is printed with them. The exit status is 1 if one was wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hpclaunch.text_table import text_table
from tests.conftest import MPI_VARIABLES
from tests.observe.hung_job import HungJob
from tests.testbed.cluster import Slurm
from tests.timeline.faults import FAULTS, Fault, diagnosis, mistake


class Hang(NamedTuple):
    """Four ranks that hang, and what ``hpclaunch stacks`` says."""

    what: str
    faults: tuple[str, ...]
    """Of the ranks, as `hanging_ranks.py` knows them; none: they train and do not hang."""
    kind: str | None
    """None: no rank may be named."""
    said: str = ""
    """What the named rank is in."""

    @property
    def name(self) -> str:
        return f"hang: {self.what}"


HANGS = (
    Hang("rank 2 is stopped", ("none", "none", "stop", "none"), "stopped", "stopped by a signal"),
    Hang("rank 1 in a blocked read", ("none", "read", "none", "none"), "blocked", "open()"),
    Hang("rank 2 skips a collective", ("none", "none", "skip", "none"), "mismatch", "allgather"),
    Hang("none, balanced training", (), None),
)


class Run(NamedTuple):
    """One job."""

    mistake: str
    late_ms: float | None
    noise_ms: float | None
    load: float
    """Processes that wanted a core, the mean of a minute."""


def stands(hang: Hang, folder: Path, environment: Mapping[str, str]) -> str:
    """Let a job hang, or train, look into it and end it; what is wrong with the answer."""
    job = HungJob(folder, *hang.faults, environment=environment)
    words = ("--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "2", "--stacks")
    try:
        if hang.faults:
            job.submit(*words)
        else:
            options = ("--no-wait", "--python", sys.executable, "mnist", "--", "--dataset", "synthetic")
            training = ("submit", "--json", *words, *options, "--epochs", "1000")
            job.id = json.loads(job.hpclaunch(*training))["id"]
            log = Path(environment["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job.id / "out.log"
            while not log.exists() or "loss" not in log.read_text():
                assert json.loads(job.hpclaunch("status", job.id, "--json"))["state"] != "failed", log
                time.sleep(0.2)
        found = job.stacks()
    finally:
        job.end()
    said = f"{found['kind']}, ranks {found['suspects']}: {[one['what'] for one in found['by_rank']]}"
    if hang.kind is None:
        return said if found["suspects"] else ""
    slow = next(rank for rank, fault in enumerate(hang.faults) if fault != "none")
    place = found["by_rank"][slow]
    right = found["kind"] == hang.kind and found["suspects"] == [slow] and hang.said in place["what"]
    return "" if right and place["node"] == f"n{slow // 2 + 1}" else said


def run(fault: Fault | Hang, cluster: Slurm, scratch: Path) -> Run:
    """Run a job; that of a wrong answer is kept."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    state = folder / "state"
    environment = {**cluster.environment(), **MPI_VARIABLES, "XDG_STATE_HOME": str(state)}
    late_ms = noise_ms = None
    try:
        if isinstance(fault, Hang):
            wrong = stands(fault, folder, environment)
        else:
            found = diagnosis(fault, folder, environment)
            wrong, first = mistake(fault, found), found["verdicts"][0]
            late_ms, noise_ms = first["late_ms"], first["noise_ms"]
    except AssertionError as error:  # what a command said
        wrong = f"the run failed: {error}"
    if wrong:
        kept = tempfile.mkdtemp(prefix="hpclaunch-wrong-verdict-")
        shutil.copytree(state / "hpclaunch" / "jobs", kept, dirs_exist_ok=True)
        wrong = f"{wrong} ({kept})"
    shutil.rmtree(folder, ignore_errors=True)  # a job that was cancelled may still write
    return Run(wrong, late_ms, noise_ms, os.getloadavg()[0])


def row(fault: Fault | Hang, runs: list[Run]) -> tuple[str, ...]:
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
    faults = [fault for fault in (*FAULTS, *HANGS) if words in fault.name]
    runs: dict[str, list[Run]] = {fault.name: [] for fault in faults}
    cluster = Slurm(MPI="pmix", NODES="2").start()
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
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
