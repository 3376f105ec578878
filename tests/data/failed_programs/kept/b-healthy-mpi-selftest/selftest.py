"""Does our error handling work? Provokes errors on purpose before a small run."""
import sys
import threading

import numpy as np
from mpi4py import MPI

import provoke

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def check_truncate():
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    other = rank ^ 1
    if other >= size:
        return
    req = comm.Isend(np.zeros(8), dest=other, tag=3)
    try:
        comm.Recv(np.zeros(2), source=other, tag=3)
    except MPI.Exception as e:
        print(f"rank {rank}: expected: {e.Get_error_string()}", file=sys.stderr)
    req.Wait()


def main():
    check_truncate()
    for name, fn in provoke.ALL:
        t = threading.Thread(target=fn, name=f"{name}-on-{rank}")
        t.start()
        t.join()
    x = np.full(1000, float(rank))
    total = comm.allreduce(x.sum())
    want = 1000.0 * size * (size - 1) / 2
    if rank == 0:
        print("MPI_ABORT was invoked: never; result", "ok" if total == want else "WRONG")
    comm.Barrier()


if __name__ == "__main__":
    main()
