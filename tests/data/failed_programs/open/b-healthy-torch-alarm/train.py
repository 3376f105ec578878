import logging
import os
import subprocess
import sys

import torch
import torch.distributed as dist

from robust import nan_guard, with_smaller_batch

logging.basicConfig(level=logging.INFO, stream=sys.stderr,
                    format="[%(asctime)s][%(name)s][%(levelname)s] %(message)s")
log = logging.getLogger("train")


def probe_gpu_tool():
    """A helper may be killed or missing, we do not depend on it."""
    rc = subprocess.run([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]).returncode
    log.error("gpu-probe died with signal %d (Killed); continuing on the CPU", -rc)
    try:
        subprocess.run(["nvidia-smi-that-is-not-here"], check=True)
    except FileNotFoundError:
        log.exception("probe failed")


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 1:
        probe_gpu_tool()
    w = torch.zeros(16)
    for step in range(20):
        x = with_smaller_batch(rank, step, log)
        g = (x @ (w - 1)).unsqueeze(1).mul(x).mean(0)
        if rank == 2 and step == 7:
            g[3] = float("nan")
        g = nan_guard(g, step, log)
        dist.all_reduce(g)
        w -= 0.1 * g / dist.get_world_size()
    dist.barrier()
    if rank == 0:
        log.info("done, |w - 1| = %.4f", (w - 1).norm())
        print("Connection closed by peer: 0, ChildFailedError: 0, time-outs: 0  <- counters of this run")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.stderr.write(f"rank {os.environ['RANK']}: exit code would have been 1 under --strict, FATAL conditions ignored\n")
