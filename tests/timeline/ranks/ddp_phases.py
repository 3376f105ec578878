"""A DDP training over gloo, each rank of which writes a trace of each phase: ``ddp_phases.py FOLDER``.

Nothing slow; rank 1 asleep for 60 ms within back-propagation; input slow on rank 0; input slow on all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

STEPS, LATE_S = 25, 0.06
WORK_S = 0.03
"""Of every rank: in a shorter step the turns of other processes are most of it."""


class Sleeps(torch.autograd.Function):
    """Nothing, and its gradient takes a while."""

    @staticmethod
    def forward(context: Any, values: torch.Tensor, seconds: float) -> torch.Tensor:
        context.seconds = seconds
        return values.clone()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> Any:
        time.sleep(context.seconds)
        return gradients[0], None


class Slow(torch.utils.data.Dataset[torch.Tensor]):
    """Items that take a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return STEPS + 2

    def __getitem__(self, _: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.ones(128)


def trace(path: Path, compute_s: float, input_s: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    model = DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(4))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches: Iterator[torch.Tensor] = iter(torch.utils.data.DataLoader(Slow(input_s)))

    def step() -> None:
        optimizer.zero_grad()
        Sleeps.apply(model(next(batches)), WORK_S + compute_s).sum().backward()
        optimizer.step()

    step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(STEPS):
            step()
    profiler.export_chrome_trace(str(path))
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = dist.get_rank()
    folder = Path(sys.argv[1])
    name = f"rank{rank}.json"
    trace(folder / "balanced" / name, 0.0, 0.0)
    trace(folder / "late" / name, LATE_S * (rank == 1), 0.0)
    trace(folder / "one-input" / name, 0.0, LATE_S * (rank == 0))
    trace(folder / "input" / name, 0.0, LATE_S)
    dist.destroy_process_group()
