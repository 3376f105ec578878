"""Start-up of the command line, as whole processes, beside peers that do the same.

    python benchmarks/startup.py [--peers PYTHON] [--runs 15] [--json]

``--peers``: an interpreter with hpc-launcher, submitit and psij-python installed (pip install hpc-launcher
submitit psij-python); without it only our own commands are timed. All are started in turn, so that a busy
machine slows all of them alike; medians, and ratios to the fastest peer that does the same, are printed.
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

Commands = dict[str, tuple[str, Sequence[str]]]


def commands(peers: str | None) -> Commands:
    """Return name -> (what it does, command)."""
    ours: Commands = {
        "python -c pass": ("start", (sys.executable, "-c", "pass")),
        "hpclaunch --version": ("version", (*OURS, "--version")),
        "hpclaunch submit --dry-run": ("dry run", (*OURS, *PLAN)),
        "hpclaunch status last": ("status", (*OURS, "status", "last")),
        "hpclaunch jobs (1,000 recorded)": ("status of 1,000", (*OURS, "jobs")),
        "hpclaunch submit true": ("run true", (*OURS, "submit", "--site", "local", "--", "true")),
    }
    if peers is None:
        return ours
    launch = str(Path(peers).with_name("launch"))
    return {
        **ours,
        "hpc-launcher --dry-run": ("dry run", (launch, "-N1", "-n1", "--dry-run", "true")),
        "submitit, local": ("run true", (peers, "-c", SUBMITIT)),
        "psij, local": ("run true", (peers, "-c", PSIJ)),
    }


def record_jobs(count: int) -> None:
    """Record ended jobs, so that there is something to list."""
    subprocess.run([*OURS, "submit", "--site", "local", "--", "true"], check=True, capture_output=True)
    jobs = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs"
    (first,) = jobs.iterdir()
    record = json.loads((first / "record.json").read_text())
    for number in range(count - 1):
        job = f"20260101-000000-{number:04d}"
        (jobs / job).mkdir()
        (jobs / job / "record.json").write_text(json.dumps({**record, "id": job}))


def seconds(command: Sequence[str]) -> float:
    """Run a command to its end and return the wall time; raises when it fails."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print a table or one JSON document."""
    parser = argparse.ArgumentParser(description="Start-up of the command line, as whole processes")
    parser.add_argument("--peers", help="interpreter with hpc-launcher, submitit and psij-python")
    parser.add_argument("--runs", type=int, default=15, help="runs of each command (default 15)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        record_jobs(1000)
        rows = commands(options.peers)
        times: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(options.runs + 1):
            for name, (_, command) in rows.items():
                times[name].append(seconds(command))
    median_s = {name: statistics.median(found[1:]) for name, found in times.items()}
    fastest = {
        what: min(median_s[n] for n, (w, _) in rows.items() if w == what and not n.startswith("hpclaunch"))
        for what in {w for n, (w, _) in rows.items() if not n.startswith("hpclaunch")}
    }
    ratio = {n: median_s[n] / fastest[w] for n, (w, _) in rows.items() if w in fastest}
    if options.json:
        print(json.dumps({"median_s": median_s, "ratio_to_fastest_peer": ratio, "runs": options.runs}))
        return
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, {time.strftime('%Y-%m-%d')}, {options.runs} runs")
    for name, value in median_s.items():
        print(f"{name:<34} {value * 1000:8.1f} ms" + (f"  x {ratio[name]:.2f}" if name in ratio else ""))


if __name__ == "__main__":
    main()
