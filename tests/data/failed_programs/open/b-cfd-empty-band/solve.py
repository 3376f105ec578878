"""Explicit shallow channel flow, bands of rows, mpi4py."""
import sys
import traceback

import numpy as np
from mpi4py import MPI

from partition import rows_of
from progress import reduce_or_give_up, NoProgress

comm = MPI.COMM_WORLD
me = comm.Get_rank()


def main(ny=96, nx=40, steps=200):
    lo, hi = rows_of(me, comm.Get_size(), ny)
    mask = np.ones(ny, dtype=bool)
    mask[24:48] = False                      # the island
    mine = np.arange(lo, hi)[mask[lo:hi]]
    print(f"({me}) rows {lo}..{hi - 1}, {mine.size} of them wet", flush=True)
    if mine.size == 0:
        return                               # nothing to compute here

    h = np.full((mine.size, nx), 1.0) + 0.01 * np.sin(mine)[:, None]
    for n in range(steps):
        h[:, 1:-1] += 0.1 * (h[:, :-2] - 2 * h[:, 1:-1] + h[:, 2:])
        total = reduce_or_give_up(comm, h.sum(), what=f"mass balance of step {n}")
        h *= 1.0 + 1e-9 * (ny * nx - total)
    if me == 0:
        print("mass", total)


if __name__ == "__main__":
    try:
        main()
    except NoProgress:
        traceback.print_exc()
        print(f"({me}) FATAL: the run does not move any more, aborting all ranks", file=sys.stderr, flush=True)
        comm.Abort(86)
