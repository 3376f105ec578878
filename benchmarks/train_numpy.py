"""Training speed of the numpy engine: images per second for each model on 1 and 2 ranks, one thread a rank.

    python benchmarks/train_numpy.py [--rounds 3] [--ranks 1,2] [--mpiexec mpiexec]

The rounds take turns over models and ranks; medians are printed, and the efficiency against one rank.
Synthetic digits, so that no file is needed; their number is MNIST's share that makes an epoch seconds long.
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
import time
from pathlib import Path
from typing import Any


def default_mpiexec() -> str:
    """The one beside this Python, else the system's."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"


def train(mpiexec: str, model: str, ranks: int) -> dict[str, Any]:
    """One epoch; the runner's result."""
    command = [mpiexec, "-n", str(ranks), sys.executable, "-m", "hpclaunch.train", "--json"]
    options = ["--dataset", "synthetic", "--model", model, "--epochs", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *options], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--mpiexec", default=default_mpiexec())
    options = parser.parse_args()
    cases = [(model, int(ranks)) for model in ("mlp", "cnn") for ranks in options.ranks.split(",")]
    results: dict[tuple[str, int], list[dict[str, Any]]] = {case: [] for case in cases}
    for _ in range(options.rounds):
        for case in cases:
            results[case].append(train(options.mpiexec, *case))
    versions = results[cases[0]][0]["versions"]
    print(f"# {time.strftime('%Y-%m-%d')}, {platform.processor() or platform.machine()}, {versions}")
    print(f"{'model':<6} {'ranks':>5} {'images/s':>10} {'communication':>14} {'efficiency':>11}")
    for (model, ranks), runs in results.items():
        speed = statistics.median(run["images_per_s"] for run in runs)
        one = statistics.median(run["images_per_s"] for run in results[model, cases[0][1]]) / cases[0][1]
        share = statistics.median(
            run["seconds"]["communication"] / run["seconds"]["training"] for run in runs
        )
        print(f"{model:<6} {ranks:>5} {speed:>10,.0f} {share:>14.0%} {speed / one / ranks:>11.0%}")


if __name__ == "__main__":
    main()
