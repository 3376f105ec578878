"""``hpclaunch verify --attach`` on running jobs of several sizes in a real Slurm, beside an empty step alone.

    python -m benchmarks.attach [--nodes 1,2,4,8] [--ranks 2] [--runs 5] [--json]

It starts a Slurm of its own whose nodes share this machine (the tests' testbed, as root or where user
namespaces are allowed), submits a job of each size that binds nothing and waits, and looks into it. The
empty step is ``srun --overlap`` with ``true``, one per node: what Slurm itself needs. "CPU time" is that of
the command and srun, which a busy machine does not stretch. Exit status 1 where a rank is not seen, a process
is left behind, or a job takes a second per node.
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

from hpclaunch.remote.look import MARK
from tests.testbed.cluster import Slurm

WANTED_S = 1.0
"""Per node."""
VERIFY = (sys.executable, "-m", "hpclaunch", "verify", "--site", "generic-slurm", "--json", "--attach")


def start_job(cluster: Slurm, folder: Path, nodes: int, ranks: int) -> str:
    """Submit a job whose ranks wait, and return its number once all of them run."""
    ready = folder / f"ready{nodes}"
    rank = f"touch {ready}.$SLURM_PROCID; exec sleep 3600"
    words = ("--parsable", f"--nodes={nodes}", f"--ntasks-per-node={ranks}", f"--output={folder}/log")
    line = f"srun --mpi=none --cpu-bind=none bash -c '{rank}'"
    answer = cluster.run("sbatch", *words, f"--wrap={line}")
    if answer.returncode:
        raise SystemExit(answer.stderr)
    while len(list(folder.glob(f"{ready.name}.*"))) < nodes * ranks:
        time.sleep(0.1)
    return answer.stdout.strip()


def timed(command: Sequence[str]) -> tuple[float, float, str]:
    """Run a command; return its wall time and its CPU time in seconds, and what it printed."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - start, os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return seconds, used, done.stdout


def measure(nodes: int, ranks: int, runs: int, folder: Path) -> dict[str, float | int]:
    """Return the medians in seconds for one job, the ranks that were seen, and processes left behind."""
    cluster = Slurm(NODES=str(nodes))
    try:
        cluster.start()
        os.environ["SLURM_CONF"] = str(cluster.conf)
        job = start_job(cluster, folder, nodes, ranks)
        empty = ("srun", "--overlap", f"--jobid={job}", "--mpi=none", f"--ntasks={nodes}")
        ours, used, alone, seen = [], [], [], 0
        for _ in range(runs):
            seconds, cpu_s, text = timed([*VERIFY, job])
            ours.append(seconds)
            used.append(cpu_s)
            seen = len(json.loads(text)["ranks"])
            alone.append(timed([*empty, "--ntasks-per-node=1", "true"])[0])
        left = subprocess.run(["pgrep", "-fc", MARK], capture_output=True, text=True, check=False).stdout
    finally:
        cluster.stop()
    return {
        "nodes": nodes,
        "ranks_seen": seen,
        "hpclaunch_s": statistics.median(ours),
        "per_node_s": statistics.median(ours) / nodes,
        "cpu_s": statistics.median(used),
        "empty_step_s": statistics.median(alone),
        "left_behind": int(left),
    }


def main() -> None:
    """Measure and print lines or one JSON document."""
    parser = argparse.ArgumentParser(description="verify --attach on a real Slurm")
    parser.add_argument("--nodes", default="1,2,4,8", help="sizes of the jobs (default 1,2,4,8)")
    parser.add_argument("--ranks", type=int, default=2, help="ranks per node (default 2)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    found = []
    for nodes in map(int, options.nodes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(nodes, options.ranks, options.runs, Path(folder)))
    if options.json:
        print(json.dumps(found))
    else:
        load = os.getloadavg()[0]
        print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {load:.1f}, {time.strftime('%Y-%m-%d')}")
        print("nodes  ranks seen  verify --attach  per node  CPU time  an empty step  left behind")
        for one in found:
            print(
                f"{one['nodes']:5}  {one['ranks_seen']:10}  {one['hpclaunch_s']:13.2f} s"
                f"  {one['per_node_s']:6.2f} s  {one['cpu_s']:6.2f} s"
                f"  {one['empty_step_s']:11.2f} s  {one['left_behind']:11}"
            )
    good = all(
        one["per_node_s"] < WANTED_S
        and not one["left_behind"]
        and one["ranks_seen"] == one["nodes"] * options.ranks
        for one in found
    )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
