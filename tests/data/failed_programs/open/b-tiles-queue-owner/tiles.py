"""Cut satellite scenes into tiles. Rank 0 owns the queue, the others work."""
import logging
import os
import time

import board
from worker import work

logging.basicConfig(level=logging.INFO, format="%(levelname).1s %(name)s: %(message)s")


def rank_and_size():
    e = os.environ
    r = e.get("RANK") or e.get("SLURM_PROCID") or e.get("OMPI_COMM_WORLD_RANK")
    n = e.get("WORLD_SIZE") or e.get("SLURM_NTASKS") or e.get("OMPI_COMM_WORLD_SIZE")
    return int(r), int(n)


def own(scenes=18):
    log = logging.getLogger("owner")
    m = board.serve()
    jobs = m.jobs()
    for s in range(scenes):
        jobs.put(s)
    log.info("%d scenes queued", scenes)
    while not jobs.empty():
        time.sleep(0.1)
    log.info("queue is empty, work done")
    m.shutdown()


if __name__ == "__main__":
    rank, size = rank_and_size()
    if rank == 0:
        own()
    else:
        work(rank, board.connect())
