"""A rank: half a minute of matrix products on its GPU, a few seconds on a CPU."""

from __future__ import annotations

import os
import time

import torch


def main() -> None:
    """Work until the time is over."""
    on_gpu = torch.cuda.is_available()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    size = 8192 if on_gpu else 512
    matrix = torch.randn(size, size, device=device) / size
    end = time.monotonic() + (30 if on_gpu else 8)
    products = 0
    while time.monotonic() < end:
        matrix = matrix @ matrix
        products += 1
        if on_gpu:
            torch.cuda.synchronize()
    print(f"busy {products} products of {size}", flush=True)


main()
