"""The torch engine, and the exchanges of DDP and Horovod, beside the numpy engine and our own exchange.

HPCLAUNCH_TEST_HOROVOD names a virtual environment with torch, Horovod, numpy and mpi4py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpclaunch.train.checkpoint import read_checkpoint
from hpclaunch.train.engine.models import NumpyEngine
from hpclaunch.train.engine.optimizers import OPTIMIZERS
from tests.horovod.builds import in_venv
from tests.train.mpirun import environment

VENV = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
PYTHON = str(VENV / "bin" / "python")
# Open MPI 4 refuses more ranks than cores and binds every job to the same first ones.
OPEN_MPI_4 = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
pytestmark = pytest.mark.mpi


def program(name: str) -> Any:
    """What a module of tests/train/ranks prints in that environment."""
    done = subprocess.run(
        [PYTHON, "-m", f"tests.train.ranks.{name}"], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(ranks: int, *options: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """The runner on so many ranks of that environment."""
    path = in_venv(VENV)
    mpiexec = shutil.which("mpiexec", path=path)
    assert mpiexec
    command = [mpiexec, "-n", str(ranks), PYTHON, "-m", "hpclaunch.train", "--json", *map(str, options)]
    variables = {**environment(PATH=path), **OPEN_MPI_4, **extra}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def train(ranks: int, *options: str | Path, **extra: str) -> dict[str, Any]:
    done = run(ranks, "--engine", "torch", *options, **extra)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


# --- layers -------------------------------------------------------------------------------------------------

LAYERS = (
    "dense",
    "dense on images",
    "convolution",
    "convolution 2x2 of one channel",
    "convolution in many blocks",
    "relu",
    "max-pool",
    "max-pool, odd",
    "dropout",
    "softmax cross-entropy",
)


@pytest.fixture(scope="module")
def layers() -> dict[str, Any]:
    found: dict[str, Any] = program("torch_layers")
    assert set(found) == set(LAYERS)
    return found


@pytest.mark.xdist_group("layers of torch")  # one worker computes them for all
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_of_the_numpy_engine_has_the_gradients_of_torch(name: str, layers: dict[str, Any]) -> None:
    found = layers[name]
    assert found["output"] <= 1e-12
    for difference, largest in zip(found["gradients"], found["largest"], strict=True):
        assert largest > 0.1
        assert difference <= 1e-13 * largest


# --- the engine ---------------------------------------------------------------------------------------------


one_engine_run = pytest.mark.xdist_group("engines of torch")  # one worker runs them for all


@pytest.fixture(scope="module")
def engines() -> dict[str, Any]:
    found: dict[str, Any] = program("torch_engines")
    return found


@one_engine_run
@pytest.mark.parametrize("model", ["mlp", "cnn"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 1e-3)])
def test_both_engines_train_alike(model: str, dtype: str, tolerance: float, engines: dict[str, Any]) -> None:
    """From the same bits, with the same dropouts.

    In float32 rounding decides now and then which of two values is the larger.
    """
    found = engines["steps"][f"{model} {dtype}"]
    assert found["first parameters"] == 0
    assert found["gradients"] <= tolerance
    assert found["last parameters"] <= tolerance
    assert found["sums"] == [True] * 4


@one_engine_run
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_memory_apart_from_the_hosts(model: str, engines: dict[str, Any]) -> None:
    """All of a GPU's way but the GPU."""
    found = engines["apart"][model]
    assert found["in its buffer"]
    assert found["images"] == [40, 40]
    assert found["states"] <= 1e-6
    assert found["fetched"]
    assert found["reloaded"] == 0
    assert found["drawn again"]
    assert found["drawn by step"] == (model == "cnn")


@one_engine_run
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_on_tensors_is_the_one_on_arrays(name: str, engines: dict[str, Any]) -> None:
    assert engines["optimisers"][name] <= 1e-6


@one_engine_run
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_gradients_are_final_when_they_are_told(model: str, engines: dict[str, Any]) -> None:
    found = engines["ready"][model]
    parts = found["parts"]
    assert parts[0][0] == parts[0][1] == parts[1][1], "back-propagation begins"
    assert [part[0] for part in parts[1:-1]] == [part[1] for part in parts[2:]], "without gaps"
    assert parts[-1][0] == 0
    assert len(parts) > 4, "while earlier layers are to come"
    assert found["final"]
    assert found["parts without images"] == parts
    assert found["without images"] == [0, 0]


# --- training -----------------------------------------------------------------------------------------------


def parameters(folder: Path) -> Any:
    return read_checkpoint(max(folder.glob("*.npz"))).arrays["parameters"]


@pytest.mark.parametrize("ranks", [2, pytest.param(1, marks=pytest.mark.long)])
def test_it_learns(ranks: int) -> None:
    result = train(ranks, "--dataset", "synthetic", "--epochs", "1", "--allreduce", "shared")
    assert result["test_accuracy"] > 0.9
    assert result["engine"] == "torch"
    assert result["device"] == "cpu"
    assert result["comm"] == "ring"
    assert result["versions"]["torch"]
    assert result["parameters_sha256"] == [result["parameters_sha256"][0]] * ranks


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (2, ("--model", "cnn")),
        (3, ("--model", "mlp", "--accumulate", "3", "--optimizer", "adam")),
        pytest.param(2, ("--model", "mlp"), marks=pytest.mark.long),
        pytest.param(
            2, ("--model", "cnn", "--accumulate", "2", "--batch-size", "12"), marks=pytest.mark.long
        ),
    ],
)
def test_all_exchanges_reach_the_same_parameters(
    ranks: int, options: tuple[str, ...], digits: Path, tmp_path: Path
) -> None:
    common = ("--epochs", "1", "--batch-size", "25", *options, "--checkpoint-dir")
    results = {
        comm: train(ranks, "--data", digits, *common, tmp_path / comm, "--comm", comm)
        for comm in ("ring", "ddp", "horovod")
    }
    start = NumpyEngine(results["ring"]["model"], "sgd", seed=0, rank=0)
    start.initialise()
    moved = np.abs(parameters(tmp_path / "ring") - start.state()["parameters"]).max()
    assert moved > 1e-3
    for comm in ("ddp", "horovod"):
        assert results[comm]["comm"] == comm
        assert results[comm]["allreduce"] is None
        assert results[comm]["bytes_sent_per_rank"] is None
        assert results[comm]["steps"] == results["ring"]["steps"]
        assert results[comm]["test_loss"] == pytest.approx(results["ring"]["test_loss"], rel=1e-3)
        np.testing.assert_allclose(
            parameters(tmp_path / comm), parameters(tmp_path / "ring"), atol=1e-3 * moved
        )


@pytest.mark.parametrize("comm", ["ddp", pytest.param("ring", marks=pytest.mark.long)])
def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(
    comm: str, digits: Path, tmp_path: Path
) -> None:
    common = ("--data", digits, "--model", "cnn", "--batch-size", "25", "--comm", comm)
    whole = train(2, *common, "--epochs", "2")
    folder = ("--checkpoint-dir", tmp_path / "checkpoints")
    train(2, *common, "--epochs", "1", *folder, "--checkpoint-every", "4")
    max((tmp_path / "checkpoints").glob("*.npz")).unlink()  # the one at the end of the epoch
    resumed = train(2, *common, "--epochs", "2", *folder, "--resume")
    assert resumed["resumed_from_step"] == 4
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]


def test_an_engine_continues_from_the_others_checkpoint(digits: Path, tmp_path: Path) -> None:
    common = ("--data", digits, "--model", "cnn", "--batch-size", "25", "--checkpoint-dir", tmp_path)
    first = run(2, *common, "--epochs", "1", "--engine", "numpy")
    assert first.returncode == 0, first.stderr
    resumed = train(2, *common, "--epochs", "2", "--resume")
    assert resumed["resumed_from_step"] == 7
    assert resumed["history"][0] == json.loads(first.stdout)["history"][0]


def test_what_is_not_finite_ends_all_ranks(digits: Path) -> None:
    """Whose gradients they were is found out by computing them again, apart from DDP's sums."""
    done = run(2, "--engine", "torch", "--comm", "ddp", "--data", digits, "--lr", "1e30")
    assert done.returncode == 1
    assert done.stderr.count("not finite at step") == 1
    assert "Traceback" not in done.stderr


def test_the_timeline_shows_what_is_seen_of_ddp(digits: Path, tmp_path: Path) -> None:
    file = tmp_path / "timeline.json"
    train(2, "--data", digits, "--epochs", "1", "--comm", "ddp", "--timeline", file)
    names = {event.get("name") for event in json.loads(file.read_text())}
    assert {"FORWARD", "BACKWARD", "NEGOTIATE_ALLREDUCE", "ALLREDUCE", "DDP_ALLREDUCE"} <= names


def test_horovod_writes_its_own_timeline(digits: Path, tmp_path: Path) -> None:
    file = tmp_path / "timeline.json"
    train(2, "--data", digits, "--epochs", "1", "--comm", "horovod", HOROVOD_TIMELINE=str(file))
    names = {event.get("name") for event in json.loads(file.read_text())}
    assert {"NEGOTIATE_ALLREDUCE", "MPI_ALLREDUCE"} <= names


# --- what is missing ----------------------------------------------------------------------------------------


def test_horovod_that_does_not_load(digits: Path, tmp_path: Path) -> None:
    (tmp_path / "horovod").mkdir()
    (tmp_path / "horovod" / "__init__.py").write_text("raise ImportError('libmpi_cxx.so.40: not found')")
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    done = run(2, "--engine", "torch", "--comm", "horovod", "--data", digits, PYTHONPATH=path)
    assert done.returncode == 1
    assert done.stderr.count("--comm horovod: Horovod does not load (libmpi_cxx.so.40: not found)") == 1
    assert "Traceback" not in done.stderr


def test_horovod_is_told_that_its_ranks_are_mpis(digits: Path) -> None:
    """Its other controller ends the process where MPI has started already."""
    result = train(2, "--comm", "horovod", "--data", digits, "--epochs", "1", HOROVOD_CONTROLLER="gloo")
    assert len(result["parameters_sha256"]) == 2
