"""A Horovod training that writes a timeline of each of its phases: ``horovod_phases.py FOLDER [small]``.

Nothing slow; rank 1 asleep for 60 ms in each step; with ``small`` 100 tensors of 8 or 64 numbers. Only rank
0's timelines are complete, as always with Horovod.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import horovod.torch as hvd
import torch

STEPS = 20
WORK_S = 0.03
"""Of every rank: in a shorter step the turns of other processes are most of it."""


def train(path: Path, layers: int, width: int, late_s: float) -> None:
    stack = [layer for _ in range(layers) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*stack)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.start_timeline(str(path), False)
    for _ in range(STEPS):
        time.sleep(WORK_S + late_s * (hvd.rank() == 1))
        optimizer.zero_grad()
        model(torch.ones(4, width)).sum().backward()
        optimizer.step()
    hvd.barrier()
    hvd.stop_timeline()


if __name__ == "__main__":
    hvd.init()
    torch.set_num_threads(1)
    folder = Path(sys.argv[1]) / str(hvd.rank())
    folder.mkdir(parents=True)
    train(folder / "balanced.json", 4, 128, 0.0)
    train(folder / "late.json", 4, 128, 0.06)
    if "small" in sys.argv[2:]:
        train(folder / "small.json", 50, 8, 0.0)
