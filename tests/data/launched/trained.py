"""What the programs of the tests share: a small model, its data, and the digest of what was learnt."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from typing import Any

import torch

STEPS = 6


def model() -> torch.nn.Module:
    """A model that is the same in each worker."""
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The data of a worker in a step; where a file named kill is there, worker 1 does not live to see it."""
    if rank == 1 and os.path.exists("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    values = torch.sin(torch.arange(32.0) * (1 + step) + 100 * rank).reshape(4, 8)
    return values, values.sum(dim=1, keepdim=True)


def write(parameters: Any, workers: int, file: str = "") -> None:
    """Write the digest to a file, that which the command names; rank 0 calls it."""
    digest = hashlib.sha256()
    for each in parameters:
        digest.update(each.detach().float().contiguous().numpy().tobytes())
    with open(file or sys.argv[1], "w") as written:
        written.write(f"{digest.hexdigest()} {STEPS} steps, {workers} workers")


def leave() -> None:
    """End without Python's own clean-up, in which torch 2.13 aborts now and then after all is done."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
