"""Shallow water on a periodic channel, one band of latitudes per rank."""
import logging
import sys

import numpy as np
from mpi4py import MPI

from forcing import Wind

comm = MPI.COMM_WORLD
me = comm.Get_rank()
log = logging.getLogger("ocean")
logging.basicConfig(stream=sys.stdout, level=logging.INFO,
                    format=f"%(levelname).1s pe{me:04d} %(message)s")


def exchange(h):
    up, down = (me + 1) % comm.size, (me - 1) % comm.size
    comm.Sendrecv(h[-2].copy(), up, recvbuf=h[0], source=down)
    comm.Sendrecv(h[1].copy(), down, recvbuf=h[-1], source=up)


def check_cfl(u, dt, dx, step):
    c = float(np.abs(u).max()) * dt / dx
    if c > 1.0:
        print(f" ocean_check: CFL number {c:.2f} exceeds 1.0 at step {step}; model stops", file=sys.stderr)
        sys.stderr.flush()
        comm.Abort(23)
    if c > 0.5:
        log.warning("CFL %.2f is high", c)


def main(steps=200, dt=30.0, dx=1000.0):
    h = np.ones((34, 64)) + 0.01 * me
    u = np.zeros_like(h)
    wind = Wind(me)
    for step in range(steps):
        exchange(h)
        u[1:-1] += dt * (wind.stress(step) - 9.81e-5 * (h[2:] - h[:-2]))
        check_cfl(u, dt, dx, step)
        h[1:-1] -= 1e-4 * u[1:-1]
        if step % 20 == 0:
            mean = comm.allreduce(h.mean()) / comm.size
            if me == 0:
                log.info("step %d mean height %.5f", step, mean)


main()
