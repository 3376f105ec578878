import json
import logging
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from cache import FeatureCache, OutOfBudget
from limits import limit_memory

RANK = int(os.environ["RANK"])
logging.basicConfig(
    stream=sys.stdout, level=logging.INFO,
    format='{"t":"%(asctime)s","lvl":"%(levelname)s","rank":' + str(RANK) + ',"msg":"%(message)s"}')
LOG = logging.getLogger("trainer")


def settings():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "overrides.json")) as f:
        o = json.load(f)
    return {**o["default"], **o.get(str(RANK), {})}


def main():
    torch.set_num_threads(1)
    cfg = settings()
    dist.init_process_group(backend="gloo")
    net = DDP(torch.nn.Linear(128, 10))
    opt = torch.optim.SGD(net.parameters(), lr=cfg["lr"])
    limit_memory(extra_gib=3)
    cache = None
    for it in range(25):
        if it == 6:
            try:
                cache = FeatureCache(cfg["cache_rows"], 128)
            except OutOfBudget as e:
                LOG.info("stopping here: %s", e)
                logging.shutdown()
                os._exit(75)                       # EX_TEMPFAIL: the queue may try again
        x = torch.randn(32, 128) if cache is None else cache.sample(32)
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
        if it % 5 == 0:
            LOG.info("it %d", it)
        time.sleep(0.05)
    LOG.info("trained")
    dist.destroy_process_group()


main()
