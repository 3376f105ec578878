import logging
import os

import torch
import torch.distributed as dist

from tiler import tile

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("segmentation.rank%s" % os.environ["RANK"])


def forward(batch, limit):
    if batch > limit:
        raise RuntimeError("out of memory: tried to allocate %d tiles" % batch)
    return torch.ones(batch).sum()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    n = tile(1000, log)
    batch = 64
    while True:
        try:
            total = forward(batch, limit=16)
            break
        except RuntimeError:
            log.exception("segmentation failed with batch size %d, halving it", batch)
            batch //= 2
    dist.all_reduce(total)
    log.info("segmentation faults in 0 of %d tiles, batch size %d", n, batch)
    if dist.get_rank() == 0:
        log.info("total %d; terminating workers", int(total))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
