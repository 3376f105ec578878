import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from net import build, hidden_size


def batches(rank, n):
    g = torch.Generator().manual_seed(rank)
    for _ in range(n):
        x = torch.randn(16, 20, generator=g)
        yield x, x.sum(dim=1, keepdim=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rank = dist.get_rank()
    if rank == 3:
        os.environ.setdefault("HIDDEN", "96")      # as its ~/.bashrc on that node would
    model = DDP(build(hidden_size()))
    for step, (x, y) in enumerate(batches(rank, 20)):
        loss = torch.nn.functional.mse_loss(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 1e-2 * p.grad
        if rank == 0 and step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
