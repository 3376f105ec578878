import sys

from mpi4py import MPI

import numpy as np
from monitor import Monitor

comm = MPI.COMM_WORLD
me, n = comm.rank, comm.size


def log(msg):
    sys.stdout.write("%8.3f member%02d  %s\n" % (MPI.Wtime() - T0, me, msg))
    sys.stdout.flush()


T0 = MPI.Wtime()


def lorenz(u, dt=0.002):
    x, y, z = u
    return u + dt * np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def run(steps):
    # one page for people, one for Prometheus; must not clash between members
    pages = [Monitor("status", 23170 + me), Monitor("metrics", 23170 + me * n)]
    log("pages on " + ", ".join(str(p.port) for p in pages))
    u = np.array([1.0, 1.0, 1.0 + 0.01 * me])
    for k in range(steps):
        u = lorenz(u)
        if k % 500 == 0:
            spread = comm.allreduce(float(u[0]))
            log("step %d mean x %.4f" % (k, spread / n))
    for p in pages:
        p.close()


if __name__ == "__main__":
    try:
        run(int(sys.argv[1]))
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        comm.Abort(98)
