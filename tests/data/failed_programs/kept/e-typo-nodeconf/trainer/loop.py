import datetime
import os

import torch
import torch.distributed as dist


def fit(args):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    print(f"worker {rank}: joining {world} workers at "
          f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=18))
    w = torch.zeros(8, dtype=torch.bfloat16 if args.precision == "bf16" else torch.float32)
    torch.manual_seed(rank)
    for step in range(args.steps):
        g = w - torch.randn(8).to(w.dtype)
        dist.all_reduce(g)
        w -= args.lr * g / world
        if rank == 0 and step % args.log_every == 0:
            print(f"step {step} |w| {w.norm():.4f}")
    dist.destroy_process_group()
