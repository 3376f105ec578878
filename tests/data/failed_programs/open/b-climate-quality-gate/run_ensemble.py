"""Fit a bias correction of a small climate ensemble, one member per rank."""
import argparse
import sys

import torch
import torch.distributed as dist

import gate
import member


def say(text):
    print(f"{dist.get_rank()}| {text}", file=sys.stderr, flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--months", type=int, default=12)
    args = ap.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    weights = torch.zeros(8)
    for month in range(args.months):
        field = member.read_month(rank, month, say)
        gate.check(rank, month, field)
        weights += 0.1 * field.mean(dim=0)
        dist.all_reduce(weights)
        weights /= dist.get_world_size()
        if rank == 0:
            say(f"month {month:02d} |w|={weights.norm():.4f}")
    say("ensemble done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
