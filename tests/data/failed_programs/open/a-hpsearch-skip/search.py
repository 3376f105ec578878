"""Random search, one trial per rank and round; results are gathered after each round."""
import datetime
import logging
import sys
import time

import torch
import torch.distributed as dist

import space

ROUNDS, EPOCHS = 5, 40


def objective(cfg):
    space.validate(cfg)
    net = torch.nn.Sequential(torch.nn.Linear(4, cfg["width"]), torch.nn.ReLU(), torch.nn.Linear(cfg["width"], 1))
    x = torch.rand(256, 4)
    y = x.prod(1, keepdim=True)
    velocity = [torch.zeros_like(p) for p in net.parameters()]
    for _ in range(EPOCHS):
        net.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        with torch.no_grad():
            for p, v in zip(net.parameters(), velocity):
                v.mul_(cfg["beta"]).add_(p.grad)
                p.sub_(cfg["lr"] * v)
    return loss.item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(stream=sys.stdout, level="INFO", format=f"[worker-{rank}] %(levelname).1s %(message)s")
    dist.barrier()
    group = dist.new_group(timeout=datetime.timedelta(seconds=10))
    best = None
    for trial in range(ROUNDS):
        cfg = space.sample(trial, rank)
        try:
            result = {"loss": objective(cfg), **cfg}
        except ValueError:
            logging.exception("trial %d with %s failed, cooling down before the next one", trial, space.describe(cfg))
            time.sleep(20)
            continue
        table = [None] * dist.get_world_size()
        dist.all_gather_object(table, result, group=group)
        best = min([*table, *([best] if best else [])], key=lambda r: r["loss"])
        if rank == 0:
            logging.info("round %d best %.5f (%s)", trial, best["loss"], space.describe(best))
    logging.info("search is over")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
