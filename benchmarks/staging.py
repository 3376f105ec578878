"""Staging of many small files against ``tar | tar``, and what nodes that wait cost the shared file system.

    python benchmarks/staging.py [--files 100000] [--folders 1000] [--runs 3] [--folder DIR]

Files of 0.1 to 10 kB are written below DIR. In turns, ``tar | tar`` copies them to DIR, and the program that
a job runs stages them there on one node, with the content verified as received and as it is then on disk
(sha256). The medians of both and their ratio are printed; exit 1 where it is above 5. Then 256 nodes (threads
of one process) wait for a reader that says nothing for ten seconds, and the files that they open are counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hpclaunch.job.job_script import STAGING, one_text

LIMIT = 5.0
WAITING_NODES = 256
WAITING_S = 10.0
WAITING = """
import sys, threading, time
from hpclaunch.remote import stage
opens, (control, nodes, seconds) = [], sys.argv[1:]
sys.addaudithook(lambda event, more: event == "open" and control in str(more) and opens.append(event))
run = stage.Run(control, int(nodes), "", "", [])
for _ in range(run.nodes):
    threading.Thread(target=stage._wait_for_plan, args=(run, 0), daemon=True).start()
time.sleep(float(seconds))
print(len(opens) / float(seconds))
"""


def make_files(folder: Path, files: int, folders: int) -> int:
    """Write the source; its bytes."""
    drawn, total = random.Random(1), 0
    for number in range(folders):
        (folder / f"{number:04}").mkdir(parents=True)
    for number in range(files):
        data = drawn.randbytes(drawn.randrange(100, 10_001))
        (folder / f"{number % folders:04}" / f"{number}").write_bytes(data)
        total += len(data)
    return total


def tar_s(source: Path, target: Path) -> float:
    """Seconds of ``tar | tar``."""
    target.mkdir()
    start = time.perf_counter()
    subprocess.run(
        ["sh", "-c", 'tar -C "$1" -cf - . | tar -C "$2" -xf -', "sh", str(source), str(target)], check=True
    )
    return time.perf_counter() - start


def stage_s(program: Path, source: Path, target: Path) -> float:
    """Seconds of a staging on one node, by the processes that a job starts."""
    control = tempfile.mkdtemp(dir=target.parent)
    words = [str(source), str(target)]
    start = time.perf_counter()
    node = subprocess.Popen([sys.executable, program, "node", control, "1", "leave", "-", *words])
    reader = [sys.executable, str(program), "reader", control, "1", str(node.pid), "refuse", *words]
    subprocess.run(reader, check=True, stdout=subprocess.DEVNULL)
    if node.wait() != 0:
        raise SystemExit("the staging failed")
    return time.perf_counter() - start


def measure(folder: Path, files: int, folders: int, runs: int) -> tuple[int, list[tuple[float, float]]]:
    """Bytes of the source; seconds of tar and of the staging, run by run."""
    program = folder / "stage.py"
    program.write_text(one_text(STAGING))
    total = make_files(folder / "source", files, folders)
    times = []
    for run in range(runs):
        first = tar_s(folder / "source", folder / f"tar{run}")
        shutil.rmtree(folder / f"tar{run}")
        second = stage_s(program, folder / "source", folder / f"staged{run}")
        shutil.rmtree(folder / f"staged{run}")
        times.append((first, second))
    return total, times


def opens_per_s() -> float:
    """Of `WAITING_NODES` nodes together at the folder that all share."""
    with tempfile.TemporaryDirectory() as control:
        words = [sys.executable, "-c", WAITING, control, str(WAITING_NODES), str(WAITING_S)]
        return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure and print; exit 1 where staging takes more than `LIMIT` times what tar takes."""
    parser = argparse.ArgumentParser(description="Staging of many small files against tar | tar")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folders", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--folder", default=None, help="where all is written (default: that of temporary files)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        total, times = measure(Path(folder), options.files, options.folders, options.runs)
    tar, stage = (statistics.median(column) for column in zip(*times, strict=True))
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {load:.1f}, {time.strftime('%Y-%m-%d')}")
    print(f"{options.files:,} files, {total / 1e6:,.0f} MB, {options.runs} runs")
    print(
        f"tar | tar   {tar:8.1f} s  (from {min(t for t, _ in times):.1f} to {max(t for t, _ in times):.1f})"
    )
    print(
        f"staging     {stage:8.1f} s  (from {min(s for _, s in times):.1f} to {max(s for _, s in times):.1f})"
    )
    print(f"ratio       {stage / tar:8.2f}")
    print(f"files that {WAITING_NODES} waiting nodes open: {opens_per_s():.1f} per second")
    sys.exit(0 if stage <= LIMIT * tar else 1)


if __name__ == "__main__":
    main()
