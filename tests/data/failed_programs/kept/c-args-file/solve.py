#!/usr/bin/env python
"""Heat equation on a ring of slabs; every slab may have its own options file."""
import argparse
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

HERE = Path(__file__).resolve().parent


def options(rank):
    p = argparse.ArgumentParser(prog="solve.py", fromfile_prefix_chars="@")
    p.add_argument("--cells", type=int, default=400)
    p.add_argument("--alpha", type=float, default=0.2)
    p.add_argument("--scheme", choices=["ftcs", "leapfrog"], default="ftcs")
    p.add_argument("--steps", type=int, default=200)
    own = HERE / "conf" / f"slab{rank}.args"
    args = [f"@{own}"] if own.exists() else []
    return p.parse_args(sys.argv[1:] + args)


def halo(u, rank, size):
    left, right = (rank - 1) % size, (rank + 1) % size
    lo, hi = torch.empty(1), torch.empty(1)
    reqs = [dist.isend(u[:1].clone(), left), dist.isend(u[-1:].clone(), right),
            dist.irecv(hi, right), dist.irecv(lo, left)]
    for r in reqs:
        r.wait()
    return torch.cat([lo, u, hi])


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"[slab {rank}] joined", flush=True)
    opt = options(rank)
    u = torch.rand(opt.cells)
    for step in range(opt.steps):
        v = halo(u, rank, size)
        u = u + opt.alpha * (v[2:] - 2 * u + v[:-2])
        if step % 50 == 0:
            total = u.sum()
            dist.all_reduce(total)
            print(f"[slab {rank}] step {step} heat {total.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
