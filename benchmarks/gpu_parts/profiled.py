"""A rank: five steps of a small network under torch.profiler, whose trace goes into the folder TRACES."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile


def main() -> None:
    """Train and write the trace."""
    on_gpu = torch.cuda.is_available()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    layers = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
    model = DistributedDataParallel(layers.to(device), [device] if on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as trace:
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(64, 512, device=device)).square().mean().backward()
            optimizer.step()
            trace.step()
    trace.export_chrome_trace(os.path.join(os.environ["TRACES"], f"rank{dist.get_rank()}.json"))
    dist.destroy_process_group()


main()
