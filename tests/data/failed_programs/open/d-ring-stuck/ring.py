import time

from mpi4py import MPI


class HaloTimeout(RuntimeError):
    pass


def wait(request, seconds, what):
    end = MPI.Wtime() + seconds
    while True:
        done, value = request.test()
        if done:
            return value
        if MPI.Wtime() > end:
            raise HaloTimeout(f"{what}: nothing came within {seconds} s")
        time.sleep(0.02)


def shift(comm, value):
    """Every rank takes from its left first, then gives to its right."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    got = wait(comm.irecv(source=left, tag=1), 12, f"rank {comm.rank} from {left}")
    comm.send(value, dest=right, tag=1)
    return got


def main():
    comm = MPI.COMM_WORLD
    comm.Barrier()
    value = comm.rank
    for turn in range(comm.size):
        value = shift(comm, value + 1)
    print(comm.rank, "has", value)


main()
