"""DDP training on tiles that a worker process reads."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from tiles import Tiles


class Journal:
    def __init__(self, rank):
        self.rank = rank

    def __call__(self, event, **facts):
        print(f"event={event} rank={self.rank} " + " ".join(f"{k}={v}" for k, v in facts.items()), flush=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    journal = Journal(rank)
    journal("start", pid=os.getpid())
    torch.set_num_threads(1)
    model = DistributedDataParallel(torch.nn.Linear(256, 1))
    loader = DataLoader(Tiles(rank), batch_size=4, num_workers=1)
    for epoch in range(2):
        for n, (images, label) in enumerate(loader):
            loss = (model(images).squeeze(1) - label).abs().mean()
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad
                    p.grad = None
            if rank == 0 and n % 3 == 0:
                journal("batch", epoch=epoch, n=n, loss=round(loss.item(), 4))
    journal("end")
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
