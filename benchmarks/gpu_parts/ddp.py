"""A rank: ten steps of DistributedDataParallel and a sum that is known; NCCL on GPUs, else gloo."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train, compare over the ranks, and print the result on rank 0."""
    on_gpu = torch.cuda.is_available()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(64, 64).to(device), [device] if on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(32, 64, device=device)).square().mean().backward()
        optimizer.step()
    flat = torch.cat([value.detach().flatten() for value in model.parameters()])
    first = flat.clone()
    dist.broadcast(first, 0)
    same = torch.tensor([float(torch.equal(flat, first))], device=device)
    dist.all_reduce(same)
    # Whole numbers below 2**24: the sum is exact in float32, in any order.
    known = torch.full((1 << 22,), float(rank + 1), device=device)
    dist.all_reduce(known)
    exact = bool((known == ranks * (ranks + 1) // 2).all())
    if rank == 0:
        found = f"ranks {ranks} same {int(same.item())} exact {exact}"
        print(f"ddp backend {dist.get_backend()} {found}", flush=True)
    dist.destroy_process_group()


main()
