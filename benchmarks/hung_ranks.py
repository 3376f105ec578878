"""Trainings that hang, for ``benchmarks/hung_stacks.py``: ``hung_ranks.py KIND MARK``.

In the third step rank 1 does what KIND says, and the others wait for it. Before, each rank makes a file
MARK.RANK.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_shard(mark: Path) -> None:
    """Wait for what does not come."""
    time.sleep(600)


def read_fifo(mark: Path) -> None:
    """Open a FIFO that no one writes to."""
    os.mkfifo(f"{mark}.fifo")
    Path(f"{mark}.fifo").read_text()


def stop(mark: Path) -> None:
    """Stop this process."""
    os.kill(os.getpid(), signal.SIGSTOP)


def spin(mark: Path) -> None:
    """Compute without an end."""
    while True:
        pass


def receive(mark: Path) -> None:
    """Wait for an answer that is never sent."""
    near, _far = socket.socketpair()
    near.recv(1)


def lock_file(mark: Path) -> None:
    """Wait for a lock of a file that another process holds."""
    with Path(f"{mark}.lock").open("w") as file:
        holder = subprocess.Popen(["flock", file.name, "sleep", "600"])
        time.sleep(1)
        fcntl.flock(file, fcntl.LOCK_EX)
    holder.kill()


def run_command(mark: Path) -> None:
    """Wait for a command."""
    subprocess.run(["sleep", "600"], check=True)


def deadlock(mark: Path) -> None:
    """Two threads take two locks, each in its own order."""
    first, second = threading.Lock(), threading.Lock()

    def other() -> None:
        with second:
            time.sleep(1)
            with first:
                pass

    threading.Thread(target=other, daemon=True).start()
    with first:
        time.sleep(1)
        with second:
            pass


class Items:
    """A data set whose fifth item never comes."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> float:
        if index >= 5:
            time.sleep(600)
        return 1.0


def load(mark: Path) -> None:
    """Wait for a process that loads data."""
    from torch.utils.data import DataLoader

    for _ in DataLoader(Items(), batch_size=2, num_workers=2):
        pass


FAULTS: dict[str, Callable[[Path], None]] = {
    "sleep": read_shard,
    "fifo": read_fifo,
    "stop": stop,
    "spin": spin,
    "socket": receive,
    "flock": lock_file,
    "command": run_command,
    "deadlock": deadlock,
    "worker": load,
}


def torch_training(kind: str, mark: Path) -> None:
    """Hang with DistributedDataParallel or FSDP2."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    name, _, fault = kind.partition("-")
    model: Any = torch.nn.Linear(8, 8)
    if name == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    parts = [torch.zeros(2) for _ in range(dist.get_world_size())]
    others: dict[str, Callable[[], Any]] = {
        "monitored": dist.monitored_barrier,
        "reduce": lambda: dist.all_reduce(parts[0]),
        "gather": lambda: dist.all_reduce(parts[0]),
        "barrier": lambda: dist.all_reduce(parts[0]),
    }
    mine: dict[str, Callable[[], Any]] = {
        "gather": lambda: dist.all_gather(parts, torch.ones(2)),
        "barrier": dist.barrier,
    }
    for step in range(4):
        if step == 3:
            Path(f"{mark}.{rank}").touch()
            if rank == 1:
                mine.get(fault, lambda: FAULTS.get(fault, read_shard)(mark))()
            elif fault in others:
                others[fault]()
        model(torch.ones(2, 8)).sum().backward()


def mpi_training(kind: str, mark: Path) -> None:
    """Hang with mpi4py."""
    import numpy as np
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    fault = kind.partition("-")[2]
    for step in range(4):
        if step == 3:
            Path(f"{mark}.{world.rank}").touch()
            if fault == "ring":
                exchange(world)
            if world.rank == 1 and fault == "receive":
                world.recv(source=0, tag=7)
            elif world.rank == 1 and fault == "skip":
                world.allgather(step)
            elif world.rank == 1:
                FAULTS[fault](mark)
        world.Allreduce(np.ones(3), np.empty(3))


def exchange(neighbours: Any) -> None:
    """All wait for the one before them."""
    neighbours.recv(source=(neighbours.rank - 1) % neighbours.size)


def horovod_training(kind: str, mark: Path) -> None:
    """Hang with Horovod."""
    import horovod.torch as hvd
    import torch

    hvd.init()
    for step in range(4):
        if step == 3:
            Path(f"{mark}.{hvd.rank()}").touch()
            if hvd.rank() == 1 and kind.endswith("skip"):
                hvd.allgather(torch.ones(2), name="other")
            elif hvd.rank() == 1:
                read_shard(mark)
        hvd.allreduce(torch.ones(2), name=f"step{step}")


PROGRAMS = {
    "ddp": torch_training,
    "fsdp": torch_training,
    "mpi4py": mpi_training,
    "horovod": horovod_training,
}


if __name__ == "__main__":
    kind, mark = sys.argv[1], Path(sys.argv[2])
    PROGRAMS[kind.partition("-")[0]](kind, mark)
