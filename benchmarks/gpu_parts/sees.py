"""A rank: print as JSON which GPUs it sees, by CUDA itself, and which of them it takes."""

from __future__ import annotations

import ctypes
import json
import os

import torch


def bus_ids() -> list[str]:
    """Return the PCI addresses of the visible GPUs in CUDA's order, as libcuda gives them."""
    cuda = ctypes.CDLL("libcuda.so.1")
    text = ctypes.create_string_buffer(32)
    found = []
    for index in range(torch.cuda.device_count()):
        if error := cuda.cuInit(0) or cuda.cuDeviceGetPCIBusId(text, 32, index):
            raise RuntimeError(f"libcuda: error {error} at GPU {index}")
        found.append(text.value.decode().lower())
    return found


def main() -> None:
    """Print one line."""
    buses = bus_ids() if torch.cuda.is_available() else []
    local_rank = int(os.environ["LOCAL_RANK"])
    taken = local_rank % len(buses) if buses else None
    if taken is not None:
        torch.ones(1, device=f"cuda:{taken}")
    said = {
        "rank": int(os.environ["RANK"]),
        "variable": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "buses": buses,
        "takes": buses[taken] if taken is not None else None,
        "cpus": sorted(os.sched_getaffinity(0)),
    }
    os.write(1, f"sees {json.dumps(said)}\n".encode())  # at once: the lines of ranks do not mix


main()
