"""Faults put into trainings with a real Horovod and a real DDP: each is named, none in balanced ones.

HPCLAUNCH_TEST_HOROVOD names the virtual environment (tests/horovod/build.sh torch).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.horovod.builds import in_venv
from tests.timeline.test_timeline_runs import summary

VENV = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
RANKS = Path(__file__).parent / "ranks"
pytestmark = pytest.mark.mpi


def run(*words: str | Path, **extra: str) -> None:
    environment = {**os.environ, "PATH": in_venv(VENV), "OMP_NUM_THREADS": "1", **extra}
    done = subprocess.run([*map(str, words)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def kinds(document: Any) -> list[str]:
    return [verdict["kind"] for verdict in document["verdicts"]]


@pytest.mark.parametrize("cache", [True, False])
def test_horovod(tmp_path: Path, *, cache: bool) -> None:
    settings = {"HOROVOD_TIMELINE": "DYNAMIC", "HOROVOD_CONTROLLER": "mpi"}
    settings |= {} if cache else {"HOROVOD_CACHE_CAPACITY": "0"}
    command = (VENV / "bin" / "mpirun", "-n", "2", "--oversubscribe", VENV / "bin" / "python")
    run(*command, RANKS / "horovod_phases.py", tmp_path, *(["small"] if cache else []), **settings)
    assert "straggler" not in kinds(summary(tmp_path / "0" / "balanced.json"))
    late = summary(tmp_path / "0" / "late.json")["verdicts"][0]
    assert (late["kind"], late["rank"]) == ("straggler", None if cache else 1)
    assert 40 < late["late_ms"] < 120
    if cache:
        small = summary(tmp_path / "0" / "small.json")
        assert "small-tensors" in kinds(small)
        assert small["tensors_per_step"] == 100


def test_ddp_over_gloo(tmp_path: Path) -> None:
    launcher = (VENV / "bin" / "python", "-m", "torch.distributed.run", "--nproc-per-node", "2")
    run(*launcher, "--master-port", "0", "--standalone", RANKS / "ddp_phases.py", tmp_path)
    assert "straggler" not in kinds(summary(tmp_path / "balanced"))
    late = summary(tmp_path / "late")["verdicts"][0]
    assert (late["kind"], late["rank"]) == ("straggler", 1)
    assert "computing" in late["evidence"]
    one = summary(tmp_path / "one-input")["verdicts"][0]
    assert (one["kind"], one["rank"]) == ("straggler", 0)
    assert "its input" in one["evidence"]
    assert kinds(summary(tmp_path / "input"))[0] == "input"
