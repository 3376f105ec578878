"""Predictions of the bundled training on this machine next to measured steps: 1, 2 and 4 ranks.

    python benchmarks/prediction.py [--models mlp,mnist-cnn] [--ranks 1,2,4] [--rounds 3] [--epochs 2]

The sizes take turns in each round, one thread per rank; the least seconds per step over the rounds count, of
the epochs after the first where there are several. The prediction gets one rank's measured step (--calibrate)
and the allreduce alone on 2 ranks (--network-test); 2 and 4 ranks are predicted. Where ranks share a core,
the speed that it states is that of a shared core. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RUNNER = {"mlp": "mlp", "mnist-cnn": "cnn"}
BATCH = 64
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
HERE = Path(sys.executable).parent


def output(*words: object) -> str:
    """What a command prints; it must succeed."""
    line = [str(word) for word in words]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{line}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def on_ranks(ranks: int, *words: object) -> Any:
    """The JSON of a module on that many ranks."""
    return json.loads(output(HERE / "mpiexec", "-n", ranks, sys.executable, "-m", *words))


def step_seconds(model: str, ranks: int, epochs: int) -> float:
    """The least seconds per step of a training."""
    training = ("--model", RUNNER[model], "--dataset", "synthetic", "--batch-size", BATCH, "--json")
    found = on_ranks(ranks, "hpclaunch.train", *training, "--epochs", epochs)
    steps = [epoch["seconds"] / epoch["steps"] for epoch in found["history"]]
    return float(min(steps[1:] or steps))


def predicted(model: str, ranks: int, one_rank_s: float, test: Path, folder: Path) -> dict[str, float]:
    """The range of the seconds per step."""
    sharing = max(1.0, ranks / (os.cpu_count() or 1))
    (folder / "one.csv").write_text(f"ranks,seconds_per_step\n1,{one_rank_s * sharing}\n")
    words = (sys.executable, "-m", "hpclaunch", "predict", "--site", "local", "--model", model, "--json")
    size = ("--batch-per-worker", BATCH, "--gpus", ranks, "--strategy", "data", "--optimizer", "sgd")
    # Orders of magnitude: the calibration on one rank replaces them.
    speeds = ("--tflops", 0.05, "--memory-gb-s", 10)
    origins = ("--calibrate", folder / "one.csv", "--network-test", test)
    found = json.loads(output(*words, *size, *speeds, *origins))
    step: dict[str, float] = found["points"][0]["step_s"]
    return step


def main() -> None:
    """Measure, predict, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default="mlp,mnist-cnn")
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    ranks = [int(word) for word in options.ranks.split(",")]
    print("| model | ranks | predicted, ms | range | measured, ms | error |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        test = Path(scratch) / "bench.json"
        sizes = "4K,64K,256K,1M,4M,16M"
        test.write_text(json.dumps(on_ranks(2, "hpclaunch.train.bench", "--sizes", sizes, "--json")))
        for model in options.models.split(","):
            times: dict[int, list[float]] = {size: [] for size in (1, *ranks)}
            for _ in range(options.rounds):
                for size, measured in times.items():
                    measured.append(step_seconds(model, size, options.epochs))
            for size in ranks:
                step = predicted(model, size, min(times[1]), test, Path(scratch))
                true = min(times[size])
                low, high = 1e3 * step["low"], 1e3 * step["high"]
                figures = f"{1e3 * step['value']:.2f} | {low:.2f} to {high:.2f} | {1e3 * true:.2f}"
                print(f"| {model} | {size} | {figures} | {step['value'] / true - 1:+.0%} |", flush=True)


if __name__ == "__main__":
    main()
