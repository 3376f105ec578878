"""torch.distributed and its DDP under ``--framework torch``, with the real torch beside a real Horovod.

HPCLAUNCH_TEST_HOROVOD names the virtual environment that has both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed.cluster import Slurm

PYTHON = str(Path(os.environ["HPCLAUNCH_TEST_HOROVOD"]) / "bin" / "python")
TRAIN = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
model(torch.full((2, 3), float(rank))).sum().backward()
weight, gradient = model.module.weight[0, 0].item(), model.module.weight.grad[0, 0].item()
print(f"RANK {rank} of {dist.get_world_size()} weight {weight:.6f} grad {gradient:g}")
sys.stdout.flush()
dist.barrier()
os._exit(0)  # torch's threads may abort a process that leaves in the usual way
"""


def ranks(*words: str) -> list[list[str]]:
    line = [sys.executable, "-m", "hpclaunch", "submit", *words, "--framework", "torch", "--wait"]
    answer = subprocess.run([*line, "--", PYTHON, "-c", TRAIN], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return sorted(text.split() for text in answer.stdout.splitlines() if text.startswith("RANK"))


def assert_one_world(found: list[list[str]], size: int) -> None:
    """Each rank has weights and data of its own; DDP gives all of them rank 0's, and the mean gradient."""
    mean = 2 * sum(range(size)) / size
    assert [(line[1], line[3]) for line in found] == [(str(rank), str(size)) for rank in range(size)]
    assert len({line[5] for line in found}) == 1
    assert {float(line[7]) for line in found} == {mean}


@pytest.mark.mpi
def test_two_ranks_of_this_machine() -> None:
    assert_one_world(ranks("--site", "local", "--tasks", "2"), 2)


@pytest.mark.slurm
def test_two_ranks_on_each_of_two_nodes(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    assert_one_world(
        ranks("--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "2", "--mpi", "none"), 4
    )
