import sys

import numpy as np
from mpi4py import MPI

from native import Arena


def elements(rank, size, n):
    bounds = np.linspace(0, n, size + 1).astype(int)
    return range(bounds[rank], bounds[rank + 1])


def assemble(comm, n):
    local = 0.0
    arena = Arena()
    for e in elements(comm.rank, comm.size, n):
        block = arena.block(24)
        block[0] = 1.0 / (1 + e)
        local += block[0]
        arena.release(block)
        if e == 233:                       # the hanging node is assembled by two faces
            arena.release(block)
    return local


def main():
    comm = MPI.COMM_WORLD
    sys.stdout.write("rank %d assembles %d elements\n" % (comm.rank, len(elements(comm.rank, comm.size, 400))))
    sys.stdout.flush()
    total = comm.allreduce(assemble(comm, 400))
    if comm.rank == 0:
        print("trace of K:", total)


if __name__ == "__main__":
    main()
