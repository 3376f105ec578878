"""Memory and step time of trainings on one GPU, predicted and measured: ``python -m benchmarks.one_gpu``.

tests/data/scaling/one_gpu.json has trainings of public networks on an H200: what was predicted before they
were measured, and what was. The first half was predicted for an H100 by traces in fp32, as they were then.
It showed what was missing; the second half was predicted after that and then measured, once. With
``--python VENV/bin/python``, which has torch and transformers, each is traced and predicted again as it is
now. On another GPU:

    python benchmarks/gpu_parts/trainings.py tests/data/scaling/one_gpu.json > measured.json

The allocator's peak is compared with the prediction less its reserve.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from hpclaunch.text_table import text_table

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "data" / "scaling" / "one_gpu.json"
OPTIONS = {
    "pure": ("--precision", "bf16", "--copies", "pure"),
    "fp32": (),
    "autocast": ("--precision", "bf16"),
}
H200 = ("--site", "mn5-acc", "--memory-gb-s", "4800")
"""A site with the data sheet of H100 SXM5, whose arithmetic is the same; the memory is that of NVIDIA's data
sheet of the H200."""


class Pair(NamedTuple):
    """What is predicted of a training, or measured."""

    gib: float
    step_s: float


def hpclaunch(*words: str) -> str:
    """Return what a command prints."""
    command = [sys.executable, "-m", "hpclaunch", *words]
    folder = ROOT / "benchmarks" / "gpu_parts"
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def predicted(setup: str, python: str) -> Pair:
    """Trace a training with torch and predict it."""
    name, batch, mode = setup.split()
    with tempfile.NamedTemporaryFile("w+", suffix=".yaml") as table:
        place = ("--from-torch", f"trainings:{name}", "--python", python)
        table.write(hpclaunch("predict", *place, *OPTIONS[mode]))
        table.flush()
        how = ("--gpus", "1", "--strategy", "data", "--optimizer", "adam", *OPTIONS[mode], "--json")
        asked = ("--model", table.name, "--batch-per-worker", batch)
        (point,) = json.loads(hpclaunch("predict", *H200, *asked, *how))["points"]
    gib = sum(size for name, size in point["memory"].items() if name != "reserve")
    return Pair(gib, point["step_s"]["value"])


HEAD = ["training", "half", "GiB", "measured", "error", "s", "measured", "error"]
CONVOLUTIONS = ("convnext", "mobilenet", "poolformer", "regnet", "resnet50")


class Error(NamedTuple):
    """How far a prediction is off, as a share of what was measured."""

    groups: tuple[str, ...]
    gib: float
    step: float


def table(rows: list[tuple[dict[str, Any], Pair]]) -> str:
    """Return each training; by half and kind, how many are near; what the allocator held."""
    cells, errors = [HEAD], list[Error]()
    for row, found in rows:
        was, kind = row["measured"], row["name"].startswith(CONVOLUTIONS)
        groups = (row["half"], "convolutions" if kind else "transformers", "all")
        error = Error(groups, found.gib / was["allocated_gib"] - 1, found.step_s / was["step_s"] - 1)
        errors.append(error)
        memory = [f"{found.gib:.1f}", f"{was['allocated_gib']:.1f}", f"{error.gib:+.0%}"]
        times = [f"{found.step_s:.3f}", f"{was['step_s']:.3f}", f"{error.step:+.0%}"]
        cells.append([row["name"], row["half"], *memory, *times])
    lines = [text_table(cells)]
    for group in dict.fromkeys(group for error in errors for group in error.groups):
        some = [error for error in errors if group in error.groups]
        near = sum(abs(error.gib) <= 0.1 for error in some), sum(abs(error.step) <= 0.25 for error in some)
        middle = median(error.gib for error in some)
        memory_text = f"memory within 10 %: {near[0]} of {len(some)} (median {middle:+.1%})"
        lines.append(f"{group}: {memory_text}; step within 25 %: {near[1]} of {len(some)}")
    held = sorted(row["measured"]["reserved_gib"] / row["measured"]["allocated_gib"] for row, _ in rows)
    libraries = median(row["measured"]["used_gib"] - row["measured"]["reserved_gib"] for row, _ in rows)
    span = f"{held[0]:.2f} to {held[-1]:.2f} times its peak (median {median(held):.2f})"
    lines.append(f"the allocator held {span}, libraries {libraries:.2f} GiB")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Memory and step time of trainings on one GPU.")
    parser.add_argument("--python", help="predict again, with traces by this Python, which has torch")
    parser.add_argument("--only", help="only trainings whose name begins so", default="")
    asked = parser.parse_args()
    rows = [row for row in json.loads(FILE.read_text())["setups"] if row["name"].startswith(asked.only)]
    found = []
    for row in rows:
        now = predicted(row["name"], asked.python) if asked.python else None
        found.append((row, now or Pair(row["first_gib"], row["first_step_s"])))
    print(table(found))


if __name__ == "__main__":
    main()
