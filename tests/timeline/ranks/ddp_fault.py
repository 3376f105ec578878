"""A DDP training over gloo that knows nothing of a profiler: ``ddp_fault.py KIND RANK SECONDS STEPS``.

KIND is ``computing`` or ``input``; RANK the slow one, or all, or none; SECONDS that it loses in each step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

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

    def __init__(self, steps: int, seconds: float) -> None:
        self.steps = steps
        self.seconds = seconds

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, _: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.ones(128)


def train(steps: int, compute_s: float, input_s: float) -> None:
    model = DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(4))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches: Iterator[torch.Tensor] = iter(torch.utils.data.DataLoader(Slow(steps, input_s)))
    for batch in batches:
        optimizer.zero_grad()
        Sleeps.apply(model(batch), WORK_S + compute_s).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    kind, slow, seconds, steps = sys.argv[1:]
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    late = float(seconds) if slow in ("all", str(dist.get_rank())) else 0.0
    train(int(steps), late * (kind == "computing"), late * (kind == "input"))
    dist.barrier()
    sys.stdout.flush()
    dist.destroy_process_group()
