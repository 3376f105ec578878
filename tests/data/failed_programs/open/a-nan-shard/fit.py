import argparse
import logging
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import shards


class NonFiniteLoss(RuntimeError):
    pass


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=0.05)
    return p.parse_args()


def global_mean(value):
    t = value.detach().clone()
    dist.all_reduce(t)
    return float(t / dist.get_world_size())


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {os.getpid()} r{rank} %(name)s %(levelname)s: %(message)s")
    log = logging.getLogger("fit")
    torch.manual_seed(1)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)))
    x, y = shards.load(rank)
    step = 0
    for epoch in range(args.epochs):
        for i in range(0, len(x), args.batch_size):
            loss = torch.nn.functional.mse_loss(model(x[i:i + args.batch_size]), y[i:i + args.batch_size])
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p.sub_(args.lr * p.grad)
            mean = global_mean(loss)
            if mean != mean:
                raise NonFiniteLoss(f"mean loss over {dist.get_world_size()} ranks is nan at epoch {epoch} step {step}"
                                    f" (local loss {loss.item():.4f})")
            if rank == 0 and step % 2 == 0:
                log.info("epoch %d step %d loss %.4f", epoch, step, mean)
            step += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
