"""Lorenz-96 ensemble: one member a rank, rank 0 writes the statistics."""
import sys
import traceback
import warnings

import numpy as np
from mpi4py import MPI

import output


def abort_on_error(etype, value, tb):
    traceback.print_exception(etype, value, tb)
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(1)


sys.excepthook = abort_on_error


def tendency(x, forcing=8.0):
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + forcing


def member(rank, steps):
    rng = np.random.default_rng(rank)
    x = 8.0 + 0.01 * rng.standard_normal(40)
    for _ in range(steps):
        k1 = tendency(x)
        x = x + 0.01 * tendency(x + 0.005 * k1)
    if rank:
        warnings.warn(f"member {rank}: error growth above climatology, check the forcing")
    return x


comm = MPI.COMM_WORLD
x = member(comm.rank, 800)
states = comm.gather(x, root=0)
if comm.rank == 0:
    states = np.array(states)
    print(f"ensemble of {len(states)} members, spread {states.std(0).mean():.3f}", flush=True)
    output.write("results/l96.nc", states.mean(0), states.std(0), "nc")
comm.Barrier()
if comm.rank == 0:
    print("written results/l96.nc")
