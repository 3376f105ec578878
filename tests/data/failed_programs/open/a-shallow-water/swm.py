import argparse
import sys
import time
import traceback

import numpy as np
from mpi4py import MPI

import physics
from grid import Strip

comm = MPI.COMM_WORLD


def abort_hook(kind, value, tb):
    traceback.print_exception(kind, value, tb)
    sys.stderr.flush()
    comm.Abort(7)


sys.excepthook = abort_hook


def say(text):
    if comm.rank == 0:
        print(time.strftime("%H:%M:%S"), "swm |", text, flush=True)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=400)
    cli.add_argument("--dt", type=float, default=30.0)
    cli.add_argument("--trench-year", type=int, default=30, help="step at which the sea floor drops")
    args = cli.parse_args()
    strip = Strip(comm, 128, 128)
    if comm.rank == 0:
        strip.h[5:10, 40:60] = 1.0
    say(f"{comm.size} strips, dt={args.dt}")
    for step in range(args.steps):
        if step == args.trench_year and comm.rank == 2 % comm.size:
            strip.depth[8:12, 70:80] = 12400.0
        physics.check_cfl(strip, 10_000.0, args.dt, step)
        physics.advance(strip, 10_000.0, args.dt)
        if step % 10 == 0:
            energy = comm.allreduce(float(np.sum(strip.h[1:-1] ** 2)))
            say(f"step {step:4d} energy {energy:.5f}")
    say("finished")


if __name__ == "__main__":
    main()
