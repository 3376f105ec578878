"""A rank: the last one waits for a kernel that does not end, the other ranks for the last one."""

from __future__ import annotations

import os
import time

import torch
import torch.distributed as dist

ENDLESS_CYCLES = 1 << 62
AT_THE_END = b"at the end\n"
"""Written at once: the lines of ranks do not mix."""


def wait_for_the_kernel(on_gpu: bool) -> None:
    """Start a kernel that spins for a hundred years, and wait for it; without a GPU, sleep."""
    os.write(1, AT_THE_END)
    if on_gpu:
        torch.cuda._sleep(ENDLESS_CYCLES)
        torch.cuda.synchronize()
    else:
        time.sleep(1e6)


def main() -> None:
    """Stop for ever."""
    on_gpu = torch.cuda.is_available()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    value = torch.ones(1, device=device)
    dist.all_reduce(value)  # all are there
    if dist.get_rank() == dist.get_world_size() - 1:
        wait_for_the_kernel(on_gpu)
    os.write(1, AT_THE_END)
    dist.all_reduce(value)
    if on_gpu:
        torch.cuda.synchronize()


main()
