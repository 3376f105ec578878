"""Trainings in which nothing is wrong, for ``benchmarks/healthy_stacks.py``: ``healthy_ranks.py KIND MARK``.

Each has phases in which one rank works while the others wait for it, as real ones have: it prepares the data,
evaluates, writes a checkpoint, has more samples than the others. MARK is a file that rank 0 makes when the
training begins. These programs are not those that the rules of ``roll_call.py`` were made on.
"""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STEPS = 2000
FOLDER = Path(tempfile.gettempdir())


def samples(folder: Path, count: int, size: int = 400_000) -> list[Path]:
    """Write compressed files of numbers, as a conversion of a data set does."""
    found = []
    for number in range(count):
        path = folder / f"part-{number}.gz"
        path.write_bytes(gzip.compress(random.randbytes(size // 2) * 2, 6))
        found.append(path)
    return found


class Parts:
    """A data set of compressed files, some of which take longer than others."""

    def __init__(self, paths: list[Path], length: int) -> None:
        self.paths, self.length = paths, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        import torch

        for _ in range(1 + 8 * (index % 11 == 0)):
            data = gzip.decompress(self.paths[index % len(self.paths)].read_bytes())
        return torch.frombuffer(bytearray(data[:256]), dtype=torch.uint8).float() / 255


def batches(paths: list[Path], workers: int, length: int = 100_000) -> Iterator[Any]:
    """Return the batches of a DataLoader."""
    from torch.utils.data import DataLoader

    return iter(DataLoader(Parts(paths, length), batch_size=8, num_workers=workers))


def network() -> Any:
    """Return a small network."""
    import torch

    return torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256))


def evaluate(model: Any, seconds: float) -> float:
    """Compute the loss of many batches, for about so long."""
    import torch

    ends, total = time.monotonic() + seconds, 0.0
    with torch.no_grad():
        while time.monotonic() < ends:
            total += float(model(torch.randn(32, 256)).square().mean())
    return total


def save(state: Any, seconds: float) -> None:
    """Write checkpoints to the disk for about so long."""
    import torch

    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())


def step_of(model: Any, optimizer: Any, batch: Any) -> None:
    """Train one step."""
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def torch_training(kind: str, mark: Path) -> None:
    """Train by DistributedDataParallel, or by FSDP2 where the kind begins with fsdp."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        mark.touch()
    net = network()
    if kind.startswith("fsdp"):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        fully_shard(net, mesh=init_device_mesh("cpu", (size,)))
        model: Any = net
    else:
        model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    phases = {"input": torch_input, "workers": torch_workers, "evaluation": torch_evaluation}
    phases |= {"checkpoint": torch_checkpoint, "uneven": torch_uneven, "commands": torch_commands}
    phases |= {"spawned": torch_spawned}
    phases[kind.partition("-")[2]](model, optimizer, rank)


def torch_input(model: Any, optimizer: Any, rank: int) -> None:
    """Rank 0 makes the data of each epoch, and the others wait for it."""
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        for _ in range(STEPS):
            paths: list[Any] = [samples(Path(folder), 60)] if rank == 0 else [None]
            dist.broadcast_object_list(paths)
            found = batches(paths[0], 0)
            for _ in range(40):
                step_of(model, optimizer, next(found))
            dist.barrier()


def torch_workers(model: Any, optimizer: Any, rank: int) -> None:
    """Processes of each rank read its samples, those of rank 1 more of them."""
    with tempfile.TemporaryDirectory() as folder:
        found = batches(samples(Path(folder), 6, 1_000_000 * (1 + 3 * (rank == 1))), 2)
        for _, batch in zip(range(STEPS), found, strict=False):
            step_of(model, optimizer, batch)


def torch_evaluation(model: Any, optimizer: Any, rank: int) -> None:
    """All evaluate, each as many samples as it has; now and then rank 0 alone on the network itself."""
    import torch
    import torch.distributed as dist

    plain = network()
    for step in range(STEPS):
        step_of(model, optimizer, torch.randn(8, 256))
        if step % 30 == 10:
            evaluate(plain, 1.0 + 1.5 * rank)
            dist.all_reduce(torch.zeros(1))
        if step % 30 == 20:
            if rank == 0:
                evaluate(plain, 6.0)
            dist.barrier()


def torch_checkpoint(model: Any, optimizer: Any, rank: int) -> None:
    """Rank 0 writes, and the others wait."""
    import torch
    import torch.distributed as dist

    large = {"model": network().state_dict(), "moments": torch.ones(2_000_000)}
    for step in range(STEPS):
        step_of(model, optimizer, torch.randn(8, 256))
        if step % 25 == 5:
            if rank == 0:
                save(large, 5.0)
            dist.barrier()


def torch_uneven(model: Any, optimizer: Any, rank: int) -> None:
    """Longer samples on some ranks, gradients summed each eighth step."""
    import torch

    for step in range(STEPS):
        long = 8 * (1 + (rank + step // 8) % 3 * 30)
        if step % 8 == 7:
            step_of(model, optimizer, torch.randn(long, 256))
        else:
            with model.no_sync():
                for _ in range(4):
                    model(torch.randn(long, 256)).square().mean().backward()


def torch_commands(model: Any, optimizer: Any, rank: int) -> None:
    """Rank 0 packs its results by a command."""
    import torch
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        results.write_bytes(random.randbytes(40_000_000))
        for step in range(STEPS):
            step_of(model, optimizer, torch.randn(8, 256))
            if step % 25 == 5:
                if rank == 0:
                    subprocess.run(["gzip", "-9", "-k", "-f", str(results)], check=True)
                dist.barrier()


def torch_spawned(model: Any, optimizer: Any, rank: int) -> None:
    """Each rank has a pool of processes that prepare its samples."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    import torch

    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with tempfile.TemporaryDirectory() as folder, pool:
        for step in range(STEPS):
            if step % 10 == 0:
                tasks = [pool.submit(samples, Path(folder), 10 + 20 * rank) for _ in range(3)]
                for task in tasks:
                    task.result()
            step_of(model, optimizer, torch.randn(8, 256))


def accelerate_training(kind: str, mark: Path) -> None:
    """Train by Hugging Face's accelerate."""
    import torch
    from accelerate import Accelerator

    helper = Accelerator(cpu=True)
    if helper.is_main_process:
        mark.touch()
    with tempfile.TemporaryDirectory() as folder:
        paths = samples(Path(folder), 6)
        loader = torch.utils.data.DataLoader(Parts(paths, 100_000), batch_size=8)
        net = network()
        model, optimizer, loader = helper.prepare(net, torch.optim.Adam(net.parameters()), loader)
        for step, batch in enumerate(loader):
            loss = model(batch).square().mean()
            helper.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            helper.gather_for_metrics(loss.detach())
            if kind.endswith("input") and step % 30 == 3:
                with helper.main_process_first():  # the data set is made once
                    samples(Path(folder), 30 if helper.is_main_process else 1)
            if kind.endswith("checkpoint") and step % 30 == 3:
                helper.wait_for_everyone()
                if helper.is_main_process:
                    save(helper.unwrap_model(model).state_dict(), 4.0)
                helper.save_state(folder)


def lightning_training(kind: str, mark: Path) -> None:
    """Train by Lightning's Trainer, which finds its ranks in the variables of the job."""
    import lightning
    import torch

    class Net(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def training_step(self, batch: Any, number: int) -> Any:
            return self.net(batch).square().mean()

        def validation_step(self, batch: Any, number: int) -> None:
            self.log("loss", evaluate(self.net, 0.05 * (1 + self.global_rank)), sync_dist=True)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters())

        def on_train_start(self) -> None:
            if self.global_rank == 0:
                mark.touch()

    with tempfile.TemporaryDirectory() as folder:
        paths = samples(Path(folder), 6)
        workers = 1 if kind.endswith("workers") else 0
        data = [
            torch.utils.data.DataLoader(Parts(paths, length), batch_size=8, num_workers=workers)
            for length in (100_000, 400)
        ]
        size = int(os.environ["WORLD_SIZE"])
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=size,
            strategy="ddp",
            max_epochs=STEPS,
            limit_train_batches=40,
            default_root_dir=folder,
            enable_progress_bar=False,
            logger=False,
        )
        trainer.fit(Net(), *data)


def horovod_training(kind: str, mark: Path) -> None:
    """Train by Horovod's optimizer."""
    import horovod.torch as hvd
    import torch

    hvd.init()
    rank = hvd.rank()
    if rank == 0:
        mark.touch()
    net = network()
    optimizer = torch.optim.Adam(net.parameters())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    with tempfile.TemporaryDirectory() as folder:
        found = batches(samples(Path(folder), 6), 1 if kind.endswith("workers") else 0)
        for step in range(STEPS):
            step_of(net, optimizer, next(found))
            if step % 20 == 5:
                horovod_phase(kind, hvd, net, rank, Path(folder))


def horovod_phase(kind: str, hvd: Any, net: Any, rank: int, folder: Path) -> None:
    """Do what such a training does between its epochs."""
    import torch

    if kind.endswith("evaluation"):
        evaluate(net, 1.0 + 2 * rank)
        hvd.allreduce(torch.zeros(1), name="loss")
    elif kind.endswith("uneven"):
        evaluate(net, 3.0 * ((rank + 1) % hvd.size()))
        hvd.join()
    elif kind.endswith("checkpoint") and rank == 0:
        save(net.state_dict(), 4.0)
    elif kind.endswith("input"):
        hvd.broadcast_object(list(map(str, samples(folder, 40))) if rank == 0 else None, name="data")


def mpi_training(kind: str, mark: Path) -> None:
    """Compute with mpi4py and NumPy."""
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 0:
        mark.touch()
    phases: dict[str, Callable[[Any], None]] = {"manager": mpi_manager, "ring": mpi_ring}
    phases |= {"checkpoint": mpi_checkpoint, "input": mpi_input, "threads": mpi_threads, "farm": mpi_farm}
    phases[kind.partition("-")[2]](MPI.COMM_WORLD)


def solved(size: int) -> float:
    """Solve a system of equations."""
    import numpy as np

    matrix = np.random.default_rng(size).random((size, size)) + np.eye(size) * size
    return float(np.linalg.solve(matrix, np.ones(size)).sum())


def mpi_manager(comm: Any) -> None:
    """Rank 0 gives out pieces of uneven size; the others ask for the next."""
    from mpi4py import MPI

    sizes = (100, 600, 200, 1500, 300)
    for step in range(STEPS):
        if comm.rank == 0:
            state = MPI.Status()
            comm.recv(source=MPI.ANY_SOURCE, status=state)
            comm.send(sizes[step % len(sizes)], dest=state.Get_source())
        else:
            comm.send(None, dest=0)
            solved(comm.recv(source=0))


def mpi_farm(world: Any) -> None:
    """As the manager, with pieces that take seconds, and a sum of all after each round."""
    for step in range(STEPS):
        if world.rank == 0:
            for rank in range(1, world.size):
                world.send(400 + 700 * ((rank + step) % 3), dest=rank)
            for rank in range(1, world.size):
                world.recv(source=rank)
        else:
            size = world.recv(source=0)
            world.send(sum(solved(size) for _ in range(6)), dest=0)
        world.allreduce(1)


def mpi_ring(comm: Any) -> None:
    """Each hands its border to the next, after work of its own size."""
    import numpy as np

    border, other = np.ones(50_000), np.empty(50_000)
    for step in range(STEPS):
        solved(200 + 500 * ((comm.rank + step) % comm.size))
        to, of = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        comm.Sendrecv(border, dest=to, recvbuf=other, source=of)


def mpi_checkpoint(comm: Any) -> None:
    """Rank 0 gathers all parts and writes them compressed."""
    import numpy as np

    part = np.random.default_rng(comm.rank).random(600_000)
    for step in range(STEPS):
        solved(300)
        comm.allreduce(1.0)
        if step % 20 == 5:
            parts = comm.gather(part, root=0)
            if comm.rank == 0:
                with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
                    np.savez_compressed(Path(folder) / "state.npz", *parts, *parts)
            comm.Barrier()


def mpi_threads(comm: Any) -> None:
    """A thread of each rank solves, and the main one waits for it."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        for step in range(STEPS):
            total = pool.submit(solved, 300 + 900 * ((comm.rank + step) % comm.size == 0)).result()
            comm.allreduce(total)


def mpi_input(comm: Any) -> None:
    """Rank 0 reads for all."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        paths = samples(Path(folder), 6, 2_000_000)
        for step in range(STEPS):
            data = None
            if comm.rank == 0:
                read = [
                    gzip.decompress(paths[(step + each) % 6].read_bytes()) for each in range(8 * comm.size)
                ]
                data = [np.frombuffer(each[:100_000], dtype=np.uint8) for each in read[: comm.size]]
            mine = comm.scatter(data, root=0)
            comm.allreduce(float(mine.sum()))


PROGRAMS = {
    "ddp": torch_training,
    "fsdp": torch_training,
    "accelerate": accelerate_training,
    "lightning": lightning_training,
    "horovod": horovod_training,
    "mpi4py": mpi_training,
}
KINDS = (
    *("ddp-input", "ddp-workers", "ddp-evaluation", "ddp-checkpoint", "ddp-uneven"),
    *("fsdp-input", "fsdp-workers", "fsdp-evaluation", "fsdp-checkpoint"),
    *("ddp-commands", "ddp-spawned", "horovod-uneven", "mpi4py-threads"),
    *("accelerate-input", "accelerate-checkpoint", "lightning-plain", "lightning-workers"),
    *("horovod-input", "horovod-workers", "horovod-evaluation", "horovod-checkpoint"),
    *("mpi4py-farm", "mpi4py-manager", "mpi4py-ring", "mpi4py-checkpoint", "mpi4py-input"),
)


if __name__ == "__main__":
    kind, mark = sys.argv[1], Path(sys.argv[2])
    random.seed(int(os.environ.get("RANK", "0")))
    PROGRAMS[kind.partition("-")[0]](kind, mark)
