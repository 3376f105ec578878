"""Conjugate gradients with fall-backs; complains a lot and gets there."""
import logging
import sys
import traceback

import numpy as np
from mpi4py import MPI

from kernels import KERNELS, KernelCrash

comm = MPI.COMM_WORLD
logging.basicConfig(format=f"[{comm.rank}] %(levelname)s: %(message)s", stream=sys.stderr)


def matvec(x):
    for kernel in KERNELS:
        try:
            return kernel(x, comm.rank)
        except KernelCrash as e:
            logging.error("kernel %s failed: %s", kernel.__name__, e)
            if matvec.loud:
                traceback.print_exc()
                matvec.loud = False
    raise SystemExit("no kernel left")


matvec.loud = True


def cg(b, tol=1e-9):
    dot = lambda u, v: comm.allreduce(float(u @ v))
    x, r = np.zeros_like(b), b.copy()
    p, rr = r.copy(), dot(b, b)
    for it in range(40):
        q = matvec(p)
        a = rr / dot(p, q)
        x, r = x + a * p, r - a * q
        new = dot(r, r)
        if new < tol:
            return it, new
        if it == 3 and comm.rank == 0:
            logging.critical("FATAL ERROR in estimate: residual nan expected, aborting estimate only")
        p, rr = r + new / rr * p, new
    return it, new


it, res = cg(np.linspace(1, 2, 500) + comm.rank)
comm.Barrier()
if comm.rank == 0:
    print(f"converged in {it} iterations, residual {res:.2e}; errors above were recovered")
