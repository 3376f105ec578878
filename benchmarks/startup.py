"""Start-up of the command line, as whole processes, beside peers that do the same.

    python benchmarks/startup.py [--peers PYTHON] [--runs 15] [--json]

The interpreter that runs this file has hpclaunch installed, whose program is started as a user starts it.
``--peers``: an interpreter with hpc-launcher, submitit and psij-python installed (pip install hpc-launcher
submitit psij-python), best the same one; without it only our own commands are timed. All are started in turn,
so that a busy machine slows all of them alike; medians, and ratios to the fastest peer that does the same,
are printed. CPU time is that of the processes that a command waits for, all of a peer's but not the job that
``submit true`` starts and only looks at; a busy machine changes it less.

All start as an installation does: with their modules compiled, whatever PYTHONDONTWRITEBYTECODE says, and
with what hpclaunch keeps from the run before; the first round, which writes both, does not count.
``benchmarks/status.py`` measures the state of 1,000 jobs that wait in Slurm.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

OURS = (str(Path(sys.executable).with_name("hpclaunch")),)
NEEDED = "click, jinja2.sandbox, msgspec"
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


class Case(NamedTuple):
    """A command, and what it does, in words that its peers share."""

    what: str
    command: Sequence[str]


def cases(peers: str | None) -> dict[str, Case]:
    """Return name -> case."""
    ours = {
        "python -c pass": Case("start", (sys.executable, "-c", "pass")),
        "hpclaunch --version": Case("version", (*OURS, "--version")),
        "hpclaunch --help": Case("help", (*OURS, "--help")),
        "hpclaunch needs these": Case("dry run", (sys.executable, "-c", f"import {NEEDED}")),
        "hpclaunch submit --dry-run": Case("dry run", (*OURS, *PLAN)),
        "hpclaunch submit true": Case("run true", (*OURS, "submit", "--site", "local", "--", "true")),
        "hpclaunch status last": Case("status", (*OURS, "status", "last")),
        "hpclaunch jobs (1,000 recorded)": Case("list", (*OURS, "jobs")),
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
    """Record jobs that are over, so that there is something to list."""
    subprocess.run([*OURS, "submit", "--site", "local", "--", "true"], check=True, capture_output=True)
    jobs = folder / "hpclaunch" / "jobs"
    (first,) = jobs.iterdir()
    record = json.loads((first / "record.json").read_text())
    for number in range(JOBS - 1):
        job = f"20260101-000000-{number:04d}"
        (jobs / job).mkdir()
        (jobs / job / "record.json").write_text(json.dumps({**record, "id": job}))


class Taken(NamedTuple):
    """What a process took, in seconds."""

    wall: float
    cpu: float


def taken(command: Sequence[str]) -> Taken:
    """Run a command to its end and return what it took; raises when it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(rows: dict[str, Case], runs: int) -> dict[str, Taken]:
    """Return name -> medians."""
    found: dict[str, list[Taken]] = {name: [] for name in rows}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        record_jobs(folder / "state")
        for _ in range(runs + 1):
            for name, case in rows.items():
                found[name].append(taken(case.command))
    return {name: Taken(*map(statistics.median, zip(*each[1:], strict=True))) for name, each in found.items()}


def ratios(rows: dict[str, Case], seconds: dict[str, float]) -> dict[str, float]:
    """Return name -> ratio to the fastest peer that does the same."""
    peers = {name: case.what for name, case in rows.items() if not name.startswith("hpclaunch")}
    fastest = {
        what: min(seconds[name] for name in peers if peers[name] == what) for what in set(peers.values())
    }
    return {name: seconds[name] / fastest[case.what] for name, case in rows.items() if case.what in fastest}


def main() -> None:
    """Measure and print a table or one JSON document."""
    parser = argparse.ArgumentParser(description="Start-up of the command line, as whole processes")
    parser.add_argument("--peers", help="interpreter with hpc-launcher, submitit and psij-python")
    parser.add_argument("--runs", type=int, default=15, help="runs of each command (default 15)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = cases(options.peers)
    medians = measure(rows, options.runs)
    wall = {name: each.wall for name, each in medians.items()}
    cpu = {name: each.cpu for name, each in medians.items()}
    of_wall, of_cpu = ratios(rows, wall), ratios(rows, cpu)
    if options.json:
        found = {"median_s": wall, "ratio_to_fastest_peer": of_wall, "runs": options.runs}
        print(json.dumps({**found, "median_cpu_s": cpu, "cpu_ratio_to_fastest_peer": of_cpu}))
        return
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, {time.strftime('%Y-%m-%d')}, {options.runs} runs")
    for name in rows:
        words = f"{name:<34} {wall[name] * 1000:8.1f} ms, CPU {cpu[name] * 1000:7.1f} ms"
        print(words + (f"  x {of_wall[name]:.2f}, CPU x {of_cpu[name]:.2f}" if name in of_wall else ""))


if __name__ == "__main__":
    main()
