"""Pair search for a Lennard-Jones fluid; the domain is cut along x."""
import resource
import sys
import traceback

from mpi4py import MPI
import numpy as np

import cells

world = MPI.COMM_WORLD


def note(*words):
    print(f"rank {world.rank}:", *words, flush=True)


def limit_memory(extra_mb):
    """The site's rule: at most this much above the start, so that a node lives on."""
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * resource.getpagesize()
    soft = now + extra_mb * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (soft, resource.getrlimit(resource.RLIMIT_AS)[1]))


def run(steps):
    x = cells.fill(world.rank, world.size)
    note(len(x), "particles")
    for step in range(steps):
        n = cells.pairs_within(x, 0.08)
        total = world.allreduce(n)
        if world.rank == 0:
            note("step", step, "pairs", total)
        x = cells.settle(x, world.rank, step)


if __name__ == "__main__":
    limit_memory(400)
    try:
        run(6)
    except MemoryError as e:
        note("out of memory in the pair search:", e)
        traceback.print_exc()
        sys.stderr.flush()
        world.Abort(12)
