"""A Horovod training that knows nothing of timelines: ``horovod_fault.py LAYERS WIDTH RANK SECONDS STEPS``.

RANK is the one that sleeps, or none; SECONDS for how long in each step.
"""

from __future__ import annotations

import sys
import time

import horovod.torch as hvd
import torch

WORK_S = 0.03
"""Of every rank: in a shorter step the turns of other processes are most of it."""


def train(layers: int, width: int, late_s: float, steps: int) -> None:
    stack = [layer for _ in range(layers) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*stack)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    for _ in range(steps):
        time.sleep(WORK_S + late_s)
        optimizer.zero_grad()
        model(torch.ones(4, width)).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    layers, width, slow, seconds, steps = sys.argv[1:]
    hvd.init()
    torch.set_num_threads(1)
    train(int(layers), int(width), float(seconds) if slow == str(hvd.rank()) else 0.0, int(steps))
    hvd.barrier()
    hvd.shutdown()
