"""Predictions next to measurements: the bundled training on this machine, or published runs of transformers.

    python benchmarks/prediction.py [--models mlp,mnist-cnn] [--ranks 1,2,4] [--rounds 3] [--epochs 2]
    python benchmarks/prediction.py --published [--each]

With --published nothing runs: the memory and the step times of tests/data/scaling/transformers.json next to
predictions, for the open half, with which the model was made, and the half kept apart; with --each, each row.
Else the bundled training is measured on 1, 2 and 4 ranks.

The sizes take turns in each round, one thread per rank; the least seconds per step over the rounds count, of
the epochs after the first where there are several. The prediction gets one rank's measured step with the
least deviation of its steps (--calibrate) and the training's allreduce alone on as many ranks, each array
newly written (--network-test). Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
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


def measured_step(model: str, ranks: int, epochs: int) -> tuple[float, float]:
    """The least seconds per step of a training, and the deviation of a rank's steps."""
    training = ("--model", RUNNER[model], "--dataset", "synthetic", "--batch-size", BATCH, "--json")
    found = on_ranks(ranks, "hpclaunch.train", *training, "--epochs", epochs)
    steps = [epoch["seconds"] / epoch["steps"] for epoch in found["history"]]
    return float(min(steps[1:] or steps)), float(found["step_deviation_s"])


def allreduce_alone(ranks: int, folder: Path) -> tuple[object, ...]:
    """The options that name its times, those of the training's allreduce on arrays newly written."""
    if ranks == 1:
        return ()
    test = folder / f"bench-{ranks}.json"
    words = ("--sizes", "4K,64K,256K,1M,4M,16M", "--algorithms", "ring", "--fresh")
    test.write_text(json.dumps(on_ranks(ranks, "hpclaunch.train", "bench", *words)))
    return ("--network-test", test)


def predicted(
    model: str, ranks: int, one_rank: tuple[float, float], exchange: tuple[object, ...], folder: Path
) -> dict[str, float]:
    """The range of the seconds per step."""
    step_s, deviation_s = one_rank
    (folder / "one.csv").write_text(f"ranks,seconds_per_step,deviation_s\n1,{step_s},{deviation_s}\n")
    words = (sys.executable, "-m", "hpclaunch", "predict", "--site", "local", "--model", model, "--json")
    size = ("--batch-per-worker", BATCH, "--gpus", ranks, "--strategy", "data", "--optimizer", "sgd")
    # Orders of magnitude: the calibration on one rank replaces them.
    speeds = ("--tflops", 0.05, "--memory-gb-s", 10)
    found = json.loads(output(*words, *size, *speeds, "--calibrate", folder / "one.csv", *exchange))
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
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--each", action="store_true")
    options = parser.parse_args()
    if options.published:
        beside = runpy.run_path(str(Path(__file__).with_name("published_transformers.py")))
        beside["print_tables"](each=options.each)
        return
    ranks = [int(word) for word in options.ranks.split(",")]
    print("| model | ranks | predicted, ms | range | measured, ms | error |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        alone = {size: allreduce_alone(size, Path(scratch)) for size in ranks}
        for model in options.models.split(","):
            times: dict[int, list[tuple[float, float]]] = {size: [] for size in (1, *ranks)}
            for _ in range(options.rounds):
                for size, measured in times.items():
                    measured.append(measured_step(model, size, options.epochs))
            for size in ranks:
                least = min(times[1])[0], min(deviation for _, deviation in times[1])
                step = predicted(model, size, least, alone[size], Path(scratch))
                true = min(times[size])[0]
                low, high = 1e3 * step["low"], 1e3 * step["high"]
                figures = f"{1e3 * step['value']:.2f} | {low:.2f} to {high:.2f} | {1e3 * true:.2f}"
                print(f"| {model} | {size} | {figures} | {step['value'] / true - 1:+.0%} |", flush=True)


if __name__ == "__main__":
    main()
