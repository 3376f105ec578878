"""The shipped example of a Horovod training, from ``submit`` to its timeline, on a real build.

HPCLAUNCH_TEST_HOROVOD names the build's virtual environment (tests/horovod/build.sh torch).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.check.verdicts import check_json, one
from tests.horovod.builds import Trained, job_file, lint, ranks_in, train
from tests.testbed.cluster import Slurm

VENV = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
pytestmark = pytest.mark.mpi


def assert_it_learns(trained: Trained, epochs: int) -> None:
    assert len(trained.losses) == epochs, trained.output
    assert trained.losses == sorted(trained.losses, reverse=True)
    assert trained.losses[-1] < 0.8 * trained.losses[0]


def test_two_ranks_of_this_machine(tmp_path: Path) -> None:
    """Also where hpclaunch's own mpiexec, of another MPI, is the first on PATH."""
    job = job_file(tmp_path, VENV)
    status, document = check_json("--site", "local", "--file", str(job), "--require", "torch,horovod-launch")
    assert "2 ranks" in one(document, "horovod-launch")["evidence"]
    assert status == 0
    options = ("--site", "local", "--tasks", "2", "--file", str(job), "--timeline", "timeline.json")
    trained = train(tmp_path, "horovod_pytorch_mnist.py", options, "--epochs", "3")
    assert_it_learns(trained, 3)
    assert ranks_in(trained.folder / "timeline.json") == {"0", "1"}
    assert (tmp_path / "mnist.pt").stat().st_size > 100_000
    assert not (tmp_path / "mnist.pt.new").exists()
    assert lint(trained.folder / "job.sh") == []


@pytest.mark.slurm
def test_one_rank_on_each_of_two_nodes(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin is the one that fits the MPI of the job's environment, not of this shell."""
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    options = ("--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "1")
    job = ("--file", str(job_file(tmp_path, VENV)), "--timeline", str(tmp_path / "timeline.json"))
    trained = train(tmp_path, "horovod_pytorch_mnist.py", (*options, *job), "--epochs", "3")
    assert_it_learns(trained, 3)
    assert ranks_in(tmp_path / "timeline.json") == {"0", "1"}
    assert "srun --mpi=pmix: fits the MPI of python: Open MPI v4." in trained.output
    assert lint(trained.folder / "job.sh") == []
