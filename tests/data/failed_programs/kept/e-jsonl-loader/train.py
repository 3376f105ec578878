import argparse
import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from corpus import BUCKETS, ReviewShard

log = logging.getLogger("reviews")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="reviews")
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--workers", type=int, default=1)
    a = ap.parse_args()
    rank = int(os.environ["RANK"])
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [{rank}] %(levelname)s %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=35))
    model = DDP(torch.nn.Linear(BUCKETS, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    shard = ReviewShard(a.data, rank)
    log.info("%d reviews in %s", len(shard), shard.path)
    loader = DataLoader(shard, batch_size=4, num_workers=a.workers)
    for epoch in range(a.epochs):
        for step, (x, y) in enumerate(loader):
            loss = torch.nn.functional.mse_loss(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        log.info("epoch %d loss %.3f", epoch, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
