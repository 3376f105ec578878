"""Replays an I/O trace and writes its samples in the background."""
import json
import os
import time

from mpi4py import MPI

from sink import Sink

HERE = os.path.dirname(os.path.abspath(__file__))
comm = MPI.COMM_WORLD


def target():
    with open(os.path.join(HERE, "targets.json")) as f:
        where = json.load(f)
    path = where.get(str(comm.rank), where["default"]).format(rank=comm.rank)
    return os.path.join(HERE, path)


def main():
    sink = Sink(target())
    for batch in range(12):
        load = sum(i * i % (comm.rank + 7) for i in range(20000))
        sink.put({"batch": batch, "load": load})
        time.sleep(0.05)
        if batch % 4 == 3:
            comm.Barrier()
            if comm.rank == 0:
                print("batches so far:", batch + 1, flush=True)
    sink.close()
    comm.Barrier()
    print(f"[{comm.rank}] trace complete", flush=True)


main()
