"""On ranks of several real nodes: what is chosen, what is refused, and right sums by all that work there."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

from hpclaunch.train.allreduce import ALLREDUCES, make_allreduce, resolve_allreduce
from hpclaunch.train.collective import AgreedError

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()


def check(name: str | None, compression: str, items: int) -> None:
    """Sums of small whole numbers, exact in 16 bits, in the buffer and beside it."""
    made = make_allreduce(name, compression, COMM)
    own = made.buffer(items, np.float32)
    for array in (own, np.empty(items, np.float32)):
        array[:] = (np.arange(items) % 7) * (RANK + 1)
        made.sum(array)
        expected = (np.arange(items) % 7) * (RANKS * (RANKS + 1) // 2)
        assert np.array_equal(array, expected), (name, compression, items)
    made.close()


if __name__ == "__main__":
    assert len(set(COMM.allgather(MPI.Get_processor_name()))) == 2
    assert resolve_allreduce(COMM, None) == "hierarchical"
    assert resolve_allreduce(COMM, "ring") == "ring"
    with pytest.raises(AgreedError, match="several nodes, which share no memory"):
        make_allreduce("shared", "none", COMM)
    for algorithm in ALLREDUCES:
        if algorithm != "shared":
            for length in (100, 100_000):
                check(algorithm, "none", length)
    for kind in ("fp16", "bf16"):
        check(None, kind, 50_000)
    if RANK == 0:
        print("all right", flush=True)
