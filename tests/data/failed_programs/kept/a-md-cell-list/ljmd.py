#!/usr/bin/env python
# Replica molecular dynamics: each rank integrates its own replica, energies are averaged every 5 steps.
from mpi4py import MPI
import numpy as np
from cells import CellList

BOX, CUT, N, DT = 20.0, 2.5, 600, 0.004
comm = MPI.COMM_WORLD
me = comm.Get_rank()
rng = np.random.default_rng(100 + me)


class Replica:
    def __init__(self, temperature):
        self.x = rng.uniform(0, BOX, (N, 3))
        self.v = rng.normal(0, np.sqrt(temperature), (N, 3))
        self.cells = CellList(BOX, CUT)

    def step(self, k, wrap=True):
        self.x += DT * self.v
        if wrap:
            self.x %= BOX
        self.cells.fill(self.x)
        return 0.5 * float((self.v**2).sum()) / N


def run(steps=60):
    temperature = 0.7 + 0.1 * me
    rep = Replica(temperature)
    print(f"[replica {me}] T*={temperature:.1f} N={N}", flush=True)
    for k in range(steps):
        if me == 1 and k == 22:          # a "kick" move without a wrap afterwards
            rep.x[17] += np.array([3.0e7, 0.0, 0.0])
            e = rep.step(k, wrap=False)
        else:
            e = rep.step(k)
        if k % 5 == 0:
            mean = comm.allreduce(e) / comm.Get_size()
            if me == 0:
                print(f"step {k:3d}  <Ekin> = {mean:.4f}", flush=True)


run()
