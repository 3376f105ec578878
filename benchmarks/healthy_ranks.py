"""Trainings in which nothing is wrong, for ``benchmarks/healthy_stacks.py``: ``healthy_ranks.py KIND MARK``.

Each has phases in which one rank works while the others wait for it, as real ones have. MARK is a file that
rank 0 makes after the first step.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

STEPS = 400


def work(seconds: float) -> float:
    """Compute in small pieces for about so long."""
    ends, total = time.monotonic() + seconds, 0.0
    while time.monotonic() < ends:
        total += sum(random.random() for _ in range(2000))
    return total


def phases(kind: str, rank: int, step: int, save: Callable[[Path], None]) -> None:
    """Do what comes before a step of this kind of training."""
    if kind.endswith("input"):
        time.sleep(random.uniform(0.05, 1.0))  # a file system that answers late now and then
    elif kind.endswith("evaluation") and step % 3 == 2 and rank == 0:
        work(2.5)
    elif kind.endswith("checkpoint") and step % 4 == 3 and rank == 0:
        for _ in range(20):
            with tempfile.TemporaryDirectory() as folder:
                save(Path(folder) / "model")
    else:
        work(0.1)


def torch_training(kind: str, mark: Path) -> None:
    """Train by DistributedDataParallel, or by FSDP2 where the kind begins with fsdp."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    model: torch.nn.Module = net
    if kind.startswith("fsdp"):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        fully_shard(net, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    else:
        model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    state = {"weights": torch.ones(512, 512)}
    for step in range(STEPS):
        phases(kind, rank, step, lambda path: torch.save(state, path))
        model(torch.randn(16, 256)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            mark.touch()


def mpi_training(kind: str, mark: Path) -> None:
    """Sum gradients by mpi4py."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    gradient, total = np.ones(200_000), np.empty(200_000)
    for step in range(STEPS):
        phases(kind, comm.rank, step, lambda path: np.save(path, gradient))
        comm.Allreduce(gradient, total)
        if comm.rank == 0:
            mark.touch()


if __name__ == "__main__":
    kind, mark = sys.argv[1], Path(sys.argv[2])
    random.seed(int(os.environ.get("RANK", "0")))
    (mpi_training if kind.startswith("mpi4py") else torch_training)(kind, mark)
