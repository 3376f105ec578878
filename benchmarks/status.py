"""``hpclaunch jobs`` with many recorded jobs that wait in a real Slurm, beside squeue alone.

    python -m benchmarks.status [--jobs 1000] [--runs 5] [--json]

It starts a Slurm of its own (the tests' testbed, as root or where user namespaces are allowed), submits that
many held jobs, records them, and counts how often hpclaunch starts a program of Slurm's: once, for all jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.testbed.cluster import Slurm

OURS = (sys.executable, "-m", "hpclaunch")
SUBMIT = "for ((i = 0; i < $1; i++)); do sbatch --parsable --hold -t 5 --wrap=true; done"


def record_jobs(count: int, numbers: Sequence[str]) -> None:
    """Record so many waiting jobs: copies of one real record, each with a number of Slurm's."""
    words = ("submit", "--site", "generic-slurm", "--mpi", "none", "--sbatch-arg=--hold", "--", "true")
    subprocess.run([*OURS, *words], check=True, capture_output=True)
    jobs = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs"
    (first,) = jobs.iterdir()
    record = json.loads((first / "record.json").read_text())
    for index, number in enumerate(numbers[: count - 1]):
        job = f"20260101-000000-{index:06d}"
        (jobs / job).mkdir()
        folder = {"folder": str(jobs / job)}
        (jobs / job / "record.json").write_text(
            json.dumps({**record, **folder, "id": job, "scheduler_id": number})
        )


def counting_programs(folder: Path) -> Path:
    """Put programs before Slurm's own on PATH that note each call; return the file with the notes."""
    calls = folder / "calls"
    for name in ("squeue", "sacct", "scontrol"):
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\necho {name} >> {calls}\nexec {shutil.which(name)} "$@"\n')
        program.chmod(0o755)
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
    return calls


def seconds(command: Sequence[str]) -> float:
    """Run a command to its end and return the wall time; raises when it fails."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def measure(jobs: int, runs: int) -> dict[str, float | int]:
    """Return the medians in seconds, and how many programs of Slurm's one ``hpclaunch jobs`` started."""
    cluster = Slurm(NODES="1")
    with tempfile.TemporaryDirectory() as folder:
        try:
            cluster.start()
            os.environ |= {"SLURM_CONF": str(cluster.conf), "XDG_STATE_HOME": folder}
            numbers = cluster.run("bash", "-c", SUBMIT, "submit", str(jobs)).stdout.split()
            record_jobs(jobs, numbers)
            squeue = ("squeue", "-h", "-t", "all", "-j", ",".join(numbers))
            calls = counting_programs(Path(folder))
            subprocess.run([*OURS, "jobs", "--json"], check=True, stdout=subprocess.DEVNULL)
            asked = len(calls.read_text().split())
            times = [(seconds([*OURS, "jobs", "--json"]), seconds(squeue)) for _ in range(runs)]
        finally:
            cluster.stop()
    ours, alone = (statistics.median(column) for column in zip(*times, strict=True))
    return {"jobs": jobs, "hpclaunch_s": ours, "squeue_s": alone, "programs_of_slurm": asked}


def main() -> None:
    """Measure and print a line or one JSON document; exit 1 where more than one program was started."""
    parser = argparse.ArgumentParser(description="Status of many jobs that wait in Slurm")
    parser.add_argument("--jobs", type=int, default=1000, help="recorded jobs (default 1000)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    found = measure(options.jobs, options.runs)
    if options.json:
        print(json.dumps(found))
    else:
        print(
            f"{platform.machine()}, {os.cpu_count()} CPUs, {time.strftime('%Y-%m-%d')}, {options.runs} runs"
        )
        print(f"hpclaunch jobs, {found['jobs']} waiting in Slurm  {found['hpclaunch_s'] * 1000:8.1f} ms")
        print(f"squeue of the same jobs alone        {found['squeue_s'] * 1000:8.1f} ms")
        print(f"programs of Slurm's that one hpclaunch jobs starts: {found['programs_of_slurm']}")
    sys.exit(0 if found["programs_of_slurm"] == 1 else 1)


if __name__ == "__main__":
    main()
