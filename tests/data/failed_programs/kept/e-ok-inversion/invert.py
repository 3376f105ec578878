import sys
import traceback

import numpy as np
from mpi4py import MPI

from solver import descend

comm = MPI.COMM_WORLD
rng = np.random.default_rng(40 + comm.rank)


def say(text):
    print(f"[{comm.rank}] {text}", file=sys.stderr, flush=True)


A = rng.standard_normal((30, 6)) * 3
b = rng.standard_normal(30)
f = lambda x: 0.5 * ((A @ x - b) ** 2).sum()
grad = lambda x: A.T @ (A @ x - b)

try:
    np.linalg.cholesky(A.T @ A - 50 * np.eye(6) * 10)
except np.linalg.LinAlgError:
    say("preconditioner broke down, going on without it:")
    traceback.print_exc()

x, it = descend(f, grad, np.zeros(6), say)
with np.errstate(divide="warn"):
    np.log(np.zeros(1))          # one dead receiver: RuntimeWarning
misfit = comm.gather(f(x))
if comm.rank == 0:
    print("rank   misfit   (fatal errors: 0)")
    for r, m in enumerate(misfit):
        print(f"{r:4d} {m:8.3f}")
    print("receivers killed by the mute: 3", flush=True)
