"""On every rank: a thread that did not make the allreduce sums slices of a buffer, beside other messages."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
from mpi4py import MPI

from hpclaunch.train.allreduce import ALLREDUCES, chunk_bounds

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()
ITEMS = 200_001


def check(name: str) -> None:
    made = ALLREDUCES[name](COMM)
    buffer = made.buffer(ITEMS, np.float32)
    bounds = chunk_bounds(ITEMS, 7)
    place = np.arange(ITEMS, dtype=np.float32) % 100
    failures: list[BaseException] = []

    def sum_slices() -> None:
        try:
            for turn in range(3):
                buffer[:] = place * (RANK + 1 + turn)
                for start, stop in reversed(list(pairwise(bounds))):
                    made.sum(buffer[start:stop])
                total = sum(rank + 1 + turn for rank in range(RANKS))
                assert (buffer == place * total).all(), (name, turn)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=sum_slices)
    thread.start()
    for _ in range(20):
        assert COMM.allreduce(RANK) == RANKS * (RANKS - 1) // 2
    thread.join()
    assert not COMM.allreduce(len(failures)), failures
    made.close()


if __name__ == "__main__":
    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
    for algorithm in ALLREDUCES:
        check(algorithm)
