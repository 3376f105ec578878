"""Start-up of the command line, as whole processes, beside peers that do the same.

    python benchmarks/startup.py [--peers PYTHON] [--runs 15] [--json]

``--peers``: an interpreter with hpc-launcher, submitit and psij-python installed (pip install hpc-launcher
submitit psij-python), best one that has hpclaunch, too, and runs this file; without it only our own commands
are timed. All are started in turn, so that a busy machine slows all of them alike; medians, and ratios to the
fastest peer that does the same, are printed.

All start as an installation does: with their modules compiled, whatever PYTHONDONTWRITEBYTECODE says, and
with the profile kept from the run before; the first round, which writes both, does not count. The 1,000
waiting jobs are asked for from a fake squeue that knows them all, and it is checked that it is asked once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

OURS = (sys.executable, "-m", "hpclaunch")
PLAN = ("submit", "--site", "lumi-g", "--account", "project_465000001", "--dry-run", "mnist")
SUBMITIT = (
    "import submitit, tempfile; e = submitit.AutoExecutor(folder=tempfile.mkdtemp(), cluster='local');"
    "e.submit(submitit.helpers.CommandFunction(['true'])).result()"
)
PSIJ = (
    "from psij import Job, JobExecutor, JobSpec; e = JobExecutor.get_instance('local');"
    "j = Job(JobSpec(executable='/bin/true')); e.submit(j); j.wait()"
)
JOBS = 1000
# The columns that hpclaunch asks squeue for, with their widths: id, state, exit code, start, end, reason.
FAKE_SQUEUE = r"""#!/bin/bash
echo "$*" >> "${0%/*}/asked"
cat "${0%/*}/answer"
"""
ROW = (
    "{:<60}PENDING                 0               N/A                     N/A                     Priority\n"
)


class Case(NamedTuple):
    """A command, what it does in the words that its peers share, and the job records that it finds."""

    what: str
    command: Sequence[str]
    state: str = "ended"


def cases(peers: str | None) -> dict[str, Case]:
    """Return name -> case."""
    ours = {
        "python -c pass": Case("start", (sys.executable, "-c", "pass")),
        "hpclaunch --version": Case("version", (*OURS, "--version")),
        "hpclaunch --help": Case("help", (*OURS, "--help")),
        "hpclaunch submit --dry-run": Case("dry run", (*OURS, *PLAN)),
        "hpclaunch submit true": Case("run true", (*OURS, "submit", "--site", "local", "--", "true")),
        "hpclaunch status last": Case("status", (*OURS, "status", "last")),
        "hpclaunch jobs (1,000 ended)": Case("list", (*OURS, "jobs")),
        "hpclaunch jobs (1,000 waiting)": Case("status of 1,000", (*OURS, "jobs"), "waiting"),
    }
    if peers is None:
        return ours
    launch = str(Path(peers).with_name("launch"))
    return {
        **ours,
        "hpc-launcher --help": Case("help", (launch, "--help")),
        "hpc-launcher --dry-run": Case("dry run", (launch, "-N1", "-n1", "--dry-run", "true")),
        "submitit, local": Case("run true", (peers, "-c", SUBMITIT)),
        "psij, local": Case("run true", (peers, "-c", PSIJ)),
    }


def record_jobs(folder: Path) -> None:
    """Record jobs: below ``ended`` such that are over, below ``waiting`` such that are in Slurm's queue."""
    subprocess.run(
        [*OURS, "submit", "--site", "local", "--", "true"],
        check=True,
        capture_output=True,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "ended")},
    )
    (first,) = (folder / "ended" / "hpclaunch" / "jobs").iterdir()
    record = json.loads((first / "record.json").read_text())
    waits = {"scheduler": "slurm", "state": "queued", "exit_code": None, "started": None, "ended": None}
    for number in range(JOBS):
        job = f"20260101-000000-{number:04d}"
        for state, changes in (("ended", {}), ("waiting", {**waits, "scheduler_id": str(number)})):
            place = folder / state / "hpclaunch" / "jobs" / job
            place.mkdir(parents=True)
            (place / "record.json").write_text(json.dumps({**record, **changes, "id": job}))


def install_fake_squeue(folder: Path) -> None:
    """Put a program called squeue there, which knows all the waiting jobs and keeps how often it is asked."""
    folder.mkdir()
    (folder / "answer").write_text("".join(ROW.format(number) for number in range(JOBS)))
    (folder / "squeue").write_text(FAKE_SQUEUE)
    (folder / "squeue").chmod(0o755)


def seconds(case: Case, folder: Path) -> float:
    """Run a command to its end and return the wall time; raises when it fails."""
    env = {**os.environ, "XDG_STATE_HOME": str(folder / case.state)}
    start = time.perf_counter()
    subprocess.run(case.command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    return time.perf_counter() - start


def measure(rows: dict[str, Case], runs: int) -> dict[str, float]:
    """Return name -> median of the wall time in seconds."""
    times: dict[str, list[float]] = {name: [] for name in rows}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        install_fake_squeue(folder / "bin")
        os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
        record_jobs(folder)
        for _ in range(runs + 1):
            for name, case in rows.items():
                times[name].append(seconds(case, folder))
        asked = len((folder / "bin" / "asked").read_text().splitlines())
    if asked != runs + 1:
        raise SystemExit(f"{runs + 1} commands asked squeue {asked} times for {JOBS} jobs")
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def main() -> None:
    """Measure and print a table or one JSON document."""
    parser = argparse.ArgumentParser(description="Start-up of the command line, as whole processes")
    parser.add_argument("--peers", help="interpreter with hpc-launcher, submitit and psij-python")
    parser.add_argument("--runs", type=int, default=15, help="runs of each command (default 15)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = cases(options.peers)
    median_s = measure(rows, options.runs)
    peers = {name: case.what for name, case in rows.items() if not name.startswith("hpclaunch")}
    fastest = {
        what: min(median_s[name] for name in peers if peers[name] == what) for what in set(peers.values())
    }
    ratio = {name: median_s[name] / fastest[case.what] for name, case in rows.items() if case.what in fastest}
    if options.json:
        print(json.dumps({"median_s": median_s, "ratio_to_fastest_peer": ratio, "runs": options.runs}))
        return
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, {time.strftime('%Y-%m-%d')}, {options.runs} runs")
    for name, value in median_s.items():
        print(f"{name:<34} {value * 1000:8.1f} ms" + (f"  x {ratio[name]:.2f}" if name in ratio else ""))


if __name__ == "__main__":
    main()
