"""A scaling study of a program with a real torch, measured by the steps that ``--profile`` records.

HPCLAUNCH_TEST_HOROVOD names the virtual environment (tests/horovod/build.sh torch).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from tests.horovod.builds import job_file

VENV = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
DDP = """
import os
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    optimizer.zero_grad()
    time.sleep(0.05)
    model(torch.ones(4, 64)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
os._exit(0)  # torch 2.13 aborts now and then at Python's exit, after the training: no subject of this test
"""


@pytest.mark.mpi
@pytest.mark.slow
def test_a_scaling_study_measures_the_recorded_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 50 ms on each rank, in jobs that take seconds to start."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ddp.py").write_text(DDP)
    words = ["scale", "--site", "local", "--ranks", "1,2", "--weak", "--repeats", "1", "--json"]
    words += ["--file", str(job_file(tmp_path, VENV)), "--profile", "6", "--profile-after", "4"]
    answer = CliRunner().invoke(program, [*words, "--", "python", "ddp.py"], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    assert answer.stderr.count("by steps of the timeline") == 2
    points = json.loads(answer.stdout)["points"]
    assert [point["ranks"] for point in points] == [1, 2]
    assert all(point["step_s"]["median"] >= 0.05 for point in points), points
    # The jobs take seconds to start: a step measured by their elapsed time would be longer than this.
    assert all(point["step_s"]["median"] < 0.5 for point in points), points
