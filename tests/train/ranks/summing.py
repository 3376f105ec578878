"""Ranks that sum without end by one algorithm, so that one of them can be killed in it.

Prints the process ids by rank once all are in the middle of it. "fake nodes": hierarchical, two ranks a node.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from mpi4py import MPI

from hpclaunch.train.allreduce import ALLREDUCES
from hpclaunch.train.allreduce.hierarchical import HierarchicalAllreduce

COMM = MPI.COMM_WORLD

if __name__ == "__main__":
    if sys.argv[1] == "fake nodes":
        node = MPI.Intracomm(COMM.Split(COMM.Get_rank() // 2))
        sums = HierarchicalAllreduce(COMM, node=node).sum
        kept = np.zeros(300_000, np.float32)
    else:
        made = ALLREDUCES[sys.argv[1]](COMM)
        sums, kept = made.sum, made.buffer(300_000, np.float32)
    for _ in range(10):
        sums(kept)
    processes = COMM.gather(os.getpid())
    if processes:
        print(*processes, flush=True)
    try:
        while True:
            sums(kept)
    except MPI.Exception:  # MPICH tells the neighbour of a dead rank; Open MPI just ends it
        COMM.Abort(1)
