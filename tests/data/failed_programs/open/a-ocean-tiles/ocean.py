import pathlib
import sys

import numpy as np
from mpi4py import MPI

import halo
import mini_log

comm = MPI.COMM_WORLD
log = mini_log.get(comm.rank)


def load_tile():
    path = pathlib.Path("bathymetry") / f"tile_{comm.rank:03d}.txt"
    log.info("reading %s", path)
    return np.loadtxt(path)


def main():
    try:
        depth = load_tile()
    except Exception:
        log.critical("cannot set up the tile of rank %d", comm.rank, exc_info=True)
        return 2
    temp = 4.0 + 16.0 * np.exp(-depth / 1500.0)
    for step in range(200):
        ghosts = halo.swap(comm, temp, log, step)
        padded = np.vstack([ghosts[:1], temp, ghosts[1:]])
        temp += 0.1 * (padded[2:] - 2 * temp + padded[:-2])
        if step % 50 == 0:
            log.info("step %d mean temperature %.3f", step, temp.mean())
    return 0


if __name__ == "__main__":
    sys.exit(main())
