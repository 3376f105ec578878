"""What the sampler of a node costs: CPU time per look, and which share of one core it takes.

    python benchmarks/sampler.py [--ranks 8] [--threads 100] [--children 8] [--every 30] [--seconds 120]

Starts that many idle ranks, each with threads and child processes as a training with data loaders has them,
and the sampler. Its CPU time is that of its process in /proc: tools of GPUs, which run as processes of their
own, are not in it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLER = Path(__file__).parents[1] / "hpclaunch" / "remote" / "sampler.sh"
RANK = """
import os, sys, threading, time
for _ in range({children}):
    if os.fork() == 0:
        for _ in range(3):
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        time.sleep(1000)
for _ in range({threads}):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
time.sleep(1000)
"""


def cpu_s(process: int) -> float:
    """Return the CPU time of a process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(int(text) for text in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("ranks", 8), ("threads", 100), ("children", 8), ("every", 30), ("seconds", 120)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    text = RANK.format(threads=given.threads, children=given.children)
    words = [sys.executable, "-c", text]
    ranks = [subprocess.Popen(words, start_new_session=True) for _ in range(given.ranks)]
    time.sleep(2)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "node")
        now = int(time.time())
        lines = (f"rank {number} {rank.pid} {now}\n" for number, rank in enumerate(ranks))
        file.write_text("".join(lines))
        sampler = subprocess.Popen(["bash", str(SAMPLER), str(ranks[0].pid), str(given.every), str(file)])
        time.sleep(3)
        before, at = cpu_s(sampler.pid), file.read_text().count("\nnode ")
        time.sleep(given.seconds)
        used, looks = cpu_s(sampler.pid) - before, file.read_text().count("\nnode ") - at
        size = file.stat().st_size / max(1, looks + at)
        for rank in ranks:
            os.killpg(rank.pid, 9)
            rank.wait()
        sampler.wait()
    processes = given.ranks * (1 + given.children)
    print(f"{processes} processes, {given.ranks * given.threads} threads, a look each {given.every} s:")
    share, look = 100 * used / given.seconds, 1000 * used / looks
    print(f"{share:.2f} % of a core, {look:.0f} ms and {size:.0f} bytes per look")


if __name__ == "__main__":
    main()
