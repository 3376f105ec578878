import argparse
import os
import socket
import traceback

import torch
import torch.distributed as dist
from torch import nn

from scaler import HalvingScaler


def tracker(rank):
    """an experiment tracker that may be absent"""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=2)
    except OSError:
        traceback.print_exc()
        print(f"ERROR rank {rank}: tracking server unreachable, offline mode", flush=True)


def warm_start(model):
    try:
        model.load_state_dict({"0.weight": torch.zeros(3, 8), "0.bias": torch.zeros(3)})
    except RuntimeError as e:
        print("RuntimeError:", e, "\n-> starting from scratch", flush=True)


def forward(model, x):
    if len(x) > 16:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
    return model(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=12)
    rounds = ap.parse_args().rounds
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    tracker(rank)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 1))
    warm_start(model)
    scaler = HalvingScaler(rank)
    batch = 64
    for i in range(rounds):
        try:
            loss = forward(model, torch.ones(batch, 8)).pow(2).mean()
        except torch.OutOfMemoryError:
            traceback.print_exc()
            batch //= 2
            print(f"rank {rank}: batch size reduced to {batch}", flush=True)
            continue
        if i == 6:
            loss = loss * float("nan")
        scaler.step(model, loss)
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank}: finished, {scaler.skipped} steps skipped, SIGTERM handler never ran", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    main()
