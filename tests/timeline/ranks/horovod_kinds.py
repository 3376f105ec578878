"""A Horovod training of one kind: ``horovod_kinds.py KIND SEED STEPS``; rank 0 prints what was put in.

The kinds and their numbers were written before the rules that judge them (benchmarks/stragglers.py).
"""

from __future__ import annotations

import os
import random
import sys
import time

import horovod.torch as hvd
import torch


def lost_s(kind: str, step: int, rank: int, own: random.Random, put_in: dict[str, float]) -> float:
    """Return the seconds that a rank loses in a step."""
    bad, late, pause = rank == put_in["bad"], put_in["late_s"], put_in["pause_s"]
    every, size = int(put_in["every"]), int(put_in["size"])
    end = step % every == every - 1
    of_kind = {
        "always": late * bad,
        "most": late * (bad and own.random() < 0.75),
        "jitter-late": max(0.0, own.gauss(late, late / 2)) * bad,
        "drift": 0.004 * step * bad,
        "pause-periodic": pause * (bad and end),
        "pause-random": pause * own.uniform(0.7, 1.3) * (bad and own.random() < 0.1),
        "checkpoint": pause * (rank == 0 and end),
        "jitter": own.expovariate(1 / 0.02),
        "evaluation": 0.3 * (step % 15 == 14),
        "wander": 0.08 * (rank == (step // 2) % size),
        "input": 0.05 * own.uniform(0.8, 1.2),
        "one-checkpoint": 0.6 * (rank == 0 and step == put_in["steps"] // 2),
        "warm-up": 0.3 * (step < 3),
    }
    return of_kind.get(kind, 0.0)  # balanced, died


def main() -> None:
    """Train."""
    kind, seed, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    hvd.init()
    torch.set_num_threads(1)
    rank, size = hvd.rank(), hvd.size()
    drawn, own = random.Random(seed), random.Random(seed * 100 + rank)  # the first is the same on all ranks
    put_in = {"bad": drawn.randrange(size), "late_s": drawn.choice((0.03, 0.06, 0.1, 0.15))}
    put_in |= {"every": drawn.choice((8, 10, 12)), "pause_s": drawn.choice((0.2, 0.35, 0.5))}
    put_in |= {"dies": drawn.randrange(steps // 2, steps - 3), "size": size, "steps": steps}
    if rank == 0:
        print("put in:", *(f"{name}={value}" for name, value in put_in.items()), flush=True)
    stack = [layer for _ in range(4) for layer in (torch.nn.Linear(128, 128), torch.nn.ReLU())]
    model = torch.nn.Sequential(*stack)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    for step in range(steps):
        if kind == "died" and (rank, step) == (put_in["bad"], put_in["dies"]):
            os.kill(os.getpid(), 9)
        time.sleep(0.02 + lost_s(kind, step, rank, own, put_in))
        optimizer.zero_grad()
        model(torch.ones(4, 128)).sum().backward()
        optimizer.step()
    hvd.barrier()
    hvd.shutdown()


if __name__ == "__main__":
    main()
