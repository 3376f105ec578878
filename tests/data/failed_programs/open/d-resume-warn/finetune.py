import logging
import os
import signal
import subprocess
import warnings

import torch
import torch.distributed as dist
from torch import nn

from ckpt import resume

log = logging.getLogger(__name__)


def probe():
    """Ask a child how much the node bears; it may die of it."""
    child = subprocess.Popen(["sleep", "30"])
    child.send_signal(signal.SIGKILL)
    log.error("probe: Killed (exit code %d), oom-kill suspected, using the small batch", child.wait())


def main():
    rank = int(os.environ["RANK"])
    logging.basicConfig(level=logging.INFO, format=f"%(levelname)s:{rank}:%(name)s:%(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    net = nn.Linear(8, 3)
    if rank == 1:
        probe()
    resume(net, rank)
    warnings.warn("CUDA error: no kernel image is available (pretended by the old driver shim); staying on CPU")
    for step in range(8):
        loss = net(torch.randn(4, 8)).pow(2).mean()
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                dist.all_reduce(p.grad)
                p -= 0.01 * p.grad
    log.info("done, loss %.4f, 1 error was tolerated", loss.item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
