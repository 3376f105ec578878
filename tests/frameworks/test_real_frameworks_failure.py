"""What ``status`` prints of a job of four ranks of the real PyTorch, of which one fails, on a real Slurm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.pictures import failed_job, run
from tests.testbed.cluster import Slurm

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
PYTHON = str(Path(os.environ["HPCLAUNCH_TEST_FRAMEWORKS"]) / "bin" / "python")


def test_status_names_the_rank_its_end_its_line_its_error_and_the_remedy(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    said = run("status", failed_job(tmp_path, PYTHON), folder=tmp_path).splitlines()
    rows = dict(line.split(None, 1) for line in said if line[:1].strip())
    assert rows["rank"] == "2 on n2, exit code 1"
    assert rows["alike"] == "1 of 4 ranks wrote this error"
    assert rows["where"] == f"{tmp_path}/train.py:8"
    error = "FileNotFoundError: [Errno 2] No such file or directory: 'checkpoints/step-4.pt'"
    assert [line for line in said if line.startswith("in ") and error in line]
    assert rows["remedy"].startswith("file missing: check the path on the compute nodes")
