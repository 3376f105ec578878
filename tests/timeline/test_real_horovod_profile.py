"""``submit --profile`` on programs with a real torch and a real Horovod, which know nothing of it.

HPCLAUNCH_TEST_HOROVOD names the virtual environment (tests/horovod/build.sh torch).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.horovod.builds import Trained, job_file, train
from tests.timeline.test_timeline_runs import summary

VENV = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
pytestmark = pytest.mark.mpi
DDP = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    optimizer.zero_grad()
    model(torch.ones(4, 64)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_ddp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from hpclaunch.cli.main import program

    monkeypatch.chdir(tmp_path)
    (tmp_path / "ddp.py").write_text(DDP)
    words = ["submit", "--site", "local", "--tasks", "2", "--file", str(job_file(tmp_path, VENV)), "--wait"]
    words += ["--profile", "6", "--profile-after", "4", "--", "python", "ddp.py"]
    answer = CliRunner().invoke(program, words, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    found = summary("last")
    assert [(file["format"], file["ranks"]) for file in found["files"]] == [("kineto", [0]), ("kineto", [1])]
    assert (found["ranks"], found["steps"]) == (2, 6)
    assert found["collectives"][0]["count"] == 6


def test_a_scaling_study_measures_the_recorded_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 50 ms on each rank, in jobs that take seconds to start."""
    from click.testing import CliRunner

    from hpclaunch.cli.main import program

    monkeypatch.chdir(tmp_path)
    slow = DDP.replace("import torch\n", "import time, torch\n")
    slow = slow.replace("    optimizer.zero_grad()\n", "    optimizer.zero_grad()\n    time.sleep(0.05)\n")
    (tmp_path / "ddp.py").write_text(slow)
    words = ["scale", "--site", "local", "--ranks", "1,2", "--weak", "--repeats", "1", "--json"]
    words += ["--file", str(job_file(tmp_path, VENV)), "--profile", "6", "--profile-after", "4"]
    answer = CliRunner().invoke(program, [*words, "--", "python", "ddp.py"], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    assert answer.stderr.count("by steps of the timeline") == 2
    points = json.loads(answer.stdout)["points"]
    assert [point["ranks"] for point in points] == [1, 2]
    assert all(0.05 <= point["step_s"]["median"] < 0.5 for point in points), points


def test_horovod(tmp_path: Path) -> None:
    """Some steps of the example, in Horovod's own timeline, which was started and stopped."""
    options = ("--site", "local", "--tasks", "2", "--file", str(job_file(tmp_path, VENV)))
    profile = ("--profile", "4", "--profile-after", "3")
    trained: Trained = train(tmp_path, "horovod_pytorch_mnist.py", (*options, *profile), "--epochs", "4")
    assert (trained.folder / "profile" / "horovod-timeline.json").stat().st_size > 1000
    found = summary("last")
    assert [file["format"] for file in found["files"]] == ["horovod"]
    assert found["ranks"] == 2
    assert 3 <= found["steps"] <= 6
