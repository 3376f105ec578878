import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

from tiles import TileSet


class Tee:
    """Prefix everything with the rank, like mpirun does."""

    def __init__(self, stream, tag):
        self.stream, self.tag = stream, tag

    def say(self, *words):
        self.stream.write(self.tag + " ".join(str(w) for w in words) + "\n")
        self.stream.flush()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    out = Tee(sys.stdout, f"<{rank}> ")
    ds = TileSet(shard=rank, n=96)
    loader = DataLoader(ds, batch_size=8, num_workers=1, prefetch_factor=2)
    w = torch.zeros(64)
    for epoch in range(2):
        for i, (x, y) in enumerate(loader):
            g = ((x @ w - y)[:, None] * x).mean(0)
            dist.all_reduce(g)
            w -= 0.01 * g / dist.get_world_size()
            if i % 4 == 0:
                out.say("epoch", epoch, "batch", i, "|g| =", f"{g.norm():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    main()
