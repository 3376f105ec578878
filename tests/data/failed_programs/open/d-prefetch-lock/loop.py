"""Averaging loop over gloo with a prefetch thread per rank."""
import datetime
import os
import time

import torch
import torch.distributed as dist

from feed import Feed

WAIT = datetime.timedelta(seconds=10)


def stamp(rank, text):
    print(f"{time.strftime('%H:%M:%S')} r{rank} {text}", flush=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=40))
    rank = dist.get_rank()
    feed = Feed(rank)
    for step in range(10):
        stamp(rank, f"step {step} fetch")
        x = feed.next(step)
        stamp(rank, f"step {step} sync")
        dist.monitored_barrier(timeout=WAIT)
        dist.all_reduce(x)
    stamp(rank, f"mean {x.mean().item() / dist.get_world_size():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
