import os
from datetime import timedelta

import torch
import torch.distributed as dist

from prefetch import Prefetcher

torch.set_num_threads(1)


def average(t):
    dist.monitored_barrier(timeout=timedelta(seconds=15), wait_all_ranks=True)
    dist.all_reduce(t)
    return t / dist.get_world_size()


def train():
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=38))
    tiles = Prefetcher(rank)
    tiles.start()
    w = torch.zeros(2)
    seen = 0
    while True:
        tile = tiles.out.get(timeout=40)
        if tile is None:
            break
        x, y = torch.tensor(tile[:2]), tile[2]
        w -= 0.1 * average((w @ x - y) * x)
        seen += 1
    print(f"[{rank}] {seen} tiles, w = {w.tolist()}", flush=True)


if __name__ == "__main__":
    train()
