"""Training speed: the engines on one core, and the exchanges on two ranks, one thread per rank.

    python benchmarks/training.py [--python PYTHON] [--mpiexec MPIEXEC] [--rounds 5] [--only X] [--markdown]

PYTHON is that of an environment with numpy, mpi4py, torch and Horovod (tests/horovod/build.sh makes one), and
MPIEXEC that of its MPI. Each round starts every case once, in turn: three short epochs of generated digits,
64 images per rank and step; the first epoch does not count, since caches are cold and memory is new.
SGD; ours is ``--allreduce shared``. Printed are medians over the rounds; ratios are medians of the rounds'.
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
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from hpclaunch.train.data.synthetic_digits import synthetic_digits  # noqa: E402

EPOCHS = 3
STEPS = {"cnn": 25, "mlp": 200}  # per epoch
BATCH = 64
TEST_IMAGES = 64


class Case(NamedTuple):
    """One way to train."""

    model: str
    engine: str
    comm: str
    ranks: int

    @property
    def name(self) -> str:
        """As printed, and for ``--only``."""
        comm = "" if self.ranks == 1 else f" {'ours' if self.comm == 'ring' else self.comm}"
        return f"{self.model} {self.engine}{comm} {self.ranks}"


CASES = [
    Case("cnn", "torch", "ring", 1),
    Case("cnn", "torch", "ring", 2),
    Case("cnn", "torch", "ddp", 2),
    Case("cnn", "torch", "horovod", 2),
    Case("cnn", "numpy", "ring", 1),
    Case("cnn", "numpy", "ring", 2),
    Case("mlp", "torch", "ring", 1),
    Case("mlp", "numpy", "ring", 1),
    Case("mlp", "numpy", "ring", 2),
]
# What is compared: name, a case over another, times a factor.
RATIOS = [
    ("two ranks, ours against DDP", CASES[1], CASES[2], 1.0),
    ("two ranks, ours against Horovod", CASES[1], CASES[3], 1.0),
    ("efficiency of ours", CASES[1], CASES[0], 0.5),
    ("efficiency of DDP", CASES[2], CASES[0], 0.5),
    ("efficiency of Horovod", CASES[3], CASES[0], 0.5),
    ("efficiency of ours, numpy engine, cnn", CASES[5], CASES[4], 0.5),
    ("efficiency of ours, numpy engine, mlp", CASES[8], CASES[7], 0.5),
    ("numpy engine against torch, cnn", CASES[4], CASES[0], 1.0),
    ("numpy engine against torch, mlp", CASES[7], CASES[6], 1.0),
]


class Measured(NamedTuple):
    """A case in one round."""

    images_per_s: float
    communication: float
    """Share of the time in which the rank only communicated."""


def default_mpiexec(python: str) -> str:
    """The one next to that Python, else the system's."""
    near = Path(python).with_name("mpiexec")
    return str(near) if near.exists() else shutil.which("mpiexec") or "mpiexec"


def write_digits(folder: Path, train_images: int) -> Path:
    """Generated digits as MNIST's four IDX files."""
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    folder.mkdir()
    for name, array in zip(names, synthetic_digits(train_images, TEST_IMAGES, 7), strict=True):
        shape = b"".join(size.to_bytes(4, "big") for size in array.shape)
        (folder / f"{name}-ubyte").write_bytes(bytes([0, 0, 8, array.ndim]) + shape + array.tobytes())
    return folder


def train(mpiexec: str, python: str, case: Case, data: Path) -> dict[str, Any]:
    """The runner's result."""
    command = [mpiexec, "-n", str(case.ranks), python, "-m", "hpclaunch.train", "--json", "--data", str(data)]
    options = f"--model {case.model} --engine {case.engine} --comm {case.comm} --allreduce shared "
    options += f"--optimizer sgd --epochs {EPOCHS} --batch-size {BATCH}"
    # Unbound, as horovodrun starts its ranks: Horovod's thread needs another core than the rank's own.
    unbound = {"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"}
    environment = {**os.environ, **unbound, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, *options.split()], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{case.name}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measured(result: dict[str, Any]) -> Measured:
    """The median over the epochs after the first."""
    speed = statistics.median(epoch["images_per_s"] for epoch in result["history"][1:])
    seconds = result["seconds"]
    return Measured(speed, seconds["communication"] / seconds["training"])


def print_cases(results: dict[Case, list[Measured]], *, markdown: bool) -> None:
    """A line per case."""
    if markdown:
        print("| model | engine | exchange | ranks | images/s | share of time in the exchange |")
        print("|---|---|---|---:|---:|---:|")
    else:
        print(f"{'case':<22} {'images/s':>9}  {'(lowest, highest)':<20} {'exchange':>8}")
    for case, rounds in results.items():
        speeds = [one.images_per_s for one in rounds]
        speed, share = statistics.median(speeds), statistics.median(one.communication for one in rounds)
        if markdown:
            comm = "ours" if case.comm == "ring" else {"ddp": "DDP (gloo)", "horovod": "Horovod"}[case.comm]
            comm = "" if case.ranks == 1 else comm
            print(f"| {case.model} | {case.engine} | {comm} | {case.ranks} | {speed:,.0f} | {share:.0%} |")
        else:
            spread = f"({min(speeds):,.0f}, {max(speeds):,.0f})"
            print(f"{case.name:<22} {speed:>9,.0f}  {spread:<20} {share:>8.0%}")


def print_ratios(results: dict[Case, list[Measured]], *, markdown: bool) -> None:
    """A line per comparison whose two cases were run."""
    print("\n| | |\n|---|---:|" if markdown else "")
    for name, above, below, factor in RATIOS:
        if above not in results or below not in results:
            continue
        pairs = zip(results[above], results[below], strict=True)
        ratio = statistics.median(one.images_per_s / other.images_per_s for one, other in pairs) * factor
        text = f"{ratio:.0%}" if factor != 1 else f"{ratio:.2f}"
        print(f"| {name} | {text} |" if markdown else f"{name:<38} {text}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mpiexec")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only", default="", help="cases with this in their name, such as numpy or 'cnn torch'"
    )
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    mpiexec = options.mpiexec or default_mpiexec(options.python)
    cases = [case for case in CASES if options.only in case.name]
    results: dict[Case, list[Measured]] = {case: [] for case in cases}
    versions: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = {
            (model, ranks): write_digits(Path(folder) / f"{model}{ranks}", STEPS[model] * BATCH * ranks)
            for model, _, _, ranks in cases
            if not (Path(folder) / f"{model}{ranks}").exists()
        }
        for _ in range(options.rounds):
            for case in cases:
                result = train(mpiexec, options.python, case, data[case.model, case.ranks])
                results[case].append(measured(result))
                versions |= result["versions"]
    named = ", ".join(f"{name} {version.split(',')[0]}" for name, version in versions.items())
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {options.rounds} rounds, {named}\n")
    print_cases(results, markdown=options.markdown)
    print_ratios(results, markdown=options.markdown)


if __name__ == "__main__":
    main()
