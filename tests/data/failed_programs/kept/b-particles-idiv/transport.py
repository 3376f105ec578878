#!/usr/bin/env python
import argparse
import sys

import numpy as np
from mpi4py import MPI

import clib
from tally import Tally


def parse():
    p = argparse.ArgumentParser(description="Monte-Carlo slab transport")
    p.add_argument("--batches", type=int, default=8)
    p.add_argument("--particles", type=int, default=1000)
    return p.parse_args()


def transport(rng, n, sigma):
    path = rng.exponential(1.0 / sigma, size=n)
    return path[path < 4.0]


def main():
    args = parse()
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    rng = np.random.default_rng(rank)
    tally = Tally(comm)
    sigma = [1.0, 1.2, 0.8, 1e-9][rank % 4]          # the last slab is vacuum
    for b in range(args.batches):
        hits = transport(rng, args.particles, sigma)
        if rank != size - 1 and b == 2:
            print(f"warning: rank {rank}: ERROR estimate of batch 2 above 5 %, continuing", file=sys.stderr, flush=True)
        per_bin, left = clib.split(args.particles, len(hits))
        tally.add(len(hits), per_bin)
        if rank == 0:
            print(f"batch {b}: absorbed {tally.absorbed}", flush=True)
    if rank == 0:
        print("all batches done")


if __name__ == "__main__":
    main()
