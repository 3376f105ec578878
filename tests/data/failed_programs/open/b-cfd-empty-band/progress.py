import time

import numpy as np
from mpi4py import MPI

PATIENCE = 15.0


class NoProgress(RuntimeError):
    pass


def reduce_or_give_up(comm, value, what):
    """allreduce that does not wait for ever."""
    send, recv = np.array([value], "d"), np.zeros(1, "d")
    req = comm.Iallreduce(send, recv, op=MPI.SUM)
    end = time.monotonic() + PATIENCE
    while not req.Test():
        if time.monotonic() > end:
            raise NoProgress(f"{what}: not all ranks came within {PATIENCE:.0f} s")
        time.sleep(0.001)
    return recv[0]
