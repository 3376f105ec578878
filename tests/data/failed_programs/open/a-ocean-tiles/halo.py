import sys
import time

import numpy as np
from mpi4py import MPI

PATIENCE = 12.0


def swap(comm, t, log, step):
    """Exchange the first and last row with the neighbours of the ring; give up after PATIENCE seconds."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    ghosts = np.empty((2, t.shape[1]))
    sends = [comm.Isend(t[-1].copy(), right, tag=1), comm.Isend(t[0].copy(), left, tag=2)]
    recvs = [(left, comm.Irecv(ghosts[0], left, tag=1)), (right, comm.Irecv(ghosts[1], right, tag=2))]
    end = time.monotonic() + PATIENCE + 0.2 * comm.rank
    while not all(r.Test() for _, r in recvs):
        if time.monotonic() > end:
            late = [str(n) for n, r in recvs if not r.Test()]
            sys.stderr.write(f"ocean[{comm.rank}] FATAL step {step}: no halo from rank {', '.join(late)} "
                             f"within {PATIENCE:.0f} s, aborting the whole model\n")
            sys.stderr.flush()
            MPI.COMM_WORLD.Abort(75)
        time.sleep(0.01)
    MPI.Request.Waitall(sends)
    return ghosts
