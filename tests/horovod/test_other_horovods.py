"""Builds of Horovod that are too many for every change: each is named for what it is, and Keras trains.

HPCLAUNCH_TEST_HOROVODS is a folder with links ``tensorflow``, ``torch-gloo`` and ``torch-mpi`` to what
tests/horovod/build.sh prints for these variants.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.check.verdicts import check_json, names_by_status, one
from tests.horovod.builds import EXAMPLES, hpclaunch, in_venv, job_file, lint, ranks_in, train

BUILDS = Path(os.environ["HPCLAUNCH_TEST_HOROVODS"])
pytestmark = pytest.mark.mpi


def test_gloo_only() -> None:
    """Under mpiexec each of its ranks believes to be alone, without an error."""
    status, document = check_json("--require", "mpi,gloo,torch", PATH=in_venv(BUILDS / "torch-gloo"))
    found = names_by_status(document)
    assert {"gloo", "pytorch", "versions", "mpi-launch"} <= found["have"]
    assert {"mpi", "horovod-launch"} <= found["missing"]
    assert "mpi_built() is False" in one(document, "mpi")["evidence"]
    assert "HOROVOD_WITH_MPI=1" in one(document, "mpi")["remedy"]
    assert "rank 0 of 1" in one(document, "horovod-launch")["evidence"]
    assert status == 1


def test_mpi_only() -> None:
    status, document = check_json("--require", "mpi,torch", PATH=in_venv(BUILDS / "torch-mpi"))
    found = names_by_status(document)
    assert {"mpi", "pytorch", "versions", "mpi-launch", "horovod-launch"} <= found["have"]
    assert "gloo" in found["missing"]
    assert "HOROVOD_WITH_GLOO=1" in one(document, "gloo")["remedy"]
    assert status == 0


def test_mpi_only_trains(tmp_path: Path) -> None:
    options = ("--site", "local", "--tasks", "2", "--file", str(job_file(tmp_path, BUILDS / "torch-mpi")))
    losses = train(tmp_path, "horovod_pytorch_mnist.py", options, "--epochs", "3").losses
    assert losses[-1] < 0.8 * losses[0]


def test_tensorflow() -> None:
    status, document = check_json(
        "--require", "mpi,gloo,tensorflow,keras", "--allreduce-test", PATH=in_venv(BUILDS / "tensorflow")
    )
    found = names_by_status(document)
    assert {"mpi", "gloo", "tensorflow", "keras", "versions", "horovod-launch", "allreduce"} <= found["have"]
    assert {"nccl", "pytorch", "mxnet"} <= found["missing"]
    assert status == 0


def test_keras_trains_on_two_ranks(tmp_path: Path) -> None:
    job = job_file(tmp_path, BUILDS / "tensorflow")
    options = ("--site", "local", "--tasks", "2", "--file", str(job), "--timeline", "timeline.json")
    trained = train(tmp_path, "keras_mnist.py", options, "--epochs", "3")
    assert len(trained.losses) == 3, trained.output
    assert trained.losses[-1] < 0.8 * trained.losses[0]
    assert ranks_in(trained.folder / "timeline.json") == {"0", "1"}
    assert "finished gradual learning rate warmup to 0.002" in trained.output.lower()
    assert (tmp_path / "mnist.h5").stat().st_size > 100_000
    assert lint(trained.folder / "job.sh") == []


def test_lint_foretells_what_horovod_says_of_the_warm_up_of_old_examples(tmp_path: Path) -> None:
    old = tmp_path / "keras_mnist.py"
    old.write_text((EXAMPLES / "keras_mnist.py").read_text().replace("initial_lr=learning_rate, ", ""))
    job = job_file(tmp_path, BUILDS / "tensorflow")
    words = ("submit", "--site", "local", "--file", str(job), "--framework", "horovod", "--wait", "--json")
    done = subprocess.run(hpclaunch(*words, "--", "python", str(old)), capture_output=True, text=True)
    assert done.returncode == 1
    assert "TypeError" in done.stderr
    assert "missing 1 required positional argument: 'initial_lr'" in done.stderr
    folder = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / json.loads(done.stdout)["id"]
    assert [finding["rule"] for finding in lint(folder / "job.sh")] == ["horovod-callback-arguments"]
