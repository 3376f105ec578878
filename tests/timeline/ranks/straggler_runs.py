"""Trainings with a late rank, recorded: ``straggler_runs.py RECORDER FOLDER``, rows of straggler_kinds.tsv as
input.

RECORDER is ``horovod``, ``horovod-cache`` (with the response cache) or ``kineto`` (DDP under torch.profiler).
The libraries are imported once, and the ranks of each training are forked from there: a training is of new
processes, without the seconds of their imports. Per training one line is printed: its kind, its number and
the load average as it began.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import horovod.torch as hvd
import torch
import torch.distributed as dist
from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousServer
from torch.nn.parallel import DistributedDataParallel

_FORK = multiprocessing.get_context("fork")
_LIMIT_S = 120
"""Of a training; one that takes longer is not counted, and recorded again by the next call."""


class Plan(NamedTuple):
    """A row of straggler_kinds.tsv."""

    kind: str
    number: int
    form: str
    ranks: int
    steps: int
    work_ms: int
    bad: int
    late_ms: int
    every: int


def lost_ms(plan: Plan, step: int, rank: int, own: random.Random, alike: random.Random) -> float:
    """Return what a rank loses in a step; ``own`` differs between the ranks, ``alike`` is the same on all."""
    bad, late, every = rank == plan.bad, plan.late_ms, max(plan.every, 1)
    chosen = random.Random(plan.number).sample(range(3, plan.steps), plan.steps // 10)
    unlucky = alike.randrange(plan.ranks)
    of_form = {
        "always": late * bad,
        "three-quarters": late * (bad and own.random() < 0.75),
        "varying": max(0.0, own.gauss(late, late / 2)) * bad,
        "growing": late * step * bad,
        "periodic": late * (bad and step % every == every - 1),
        "checkpoint": late * (bad and step % every == every - 1),
        "by-chance": late * own.uniform(0.7, 1.3) * (bad and step in chosen),
        "jitter": own.expovariate(1 / 20),
        "evaluation": 300 * (step % 15 == 14),
        "wandering": 80 * (rank == (step // 2) % plan.ranks),
        "input": 50 * own.uniform(0.8, 1.2),
        "one-checkpoint": 600 * (rank == 0 and step == plan.steps // 2),
        "warm-up": 300 * (step < 3),
        "pauses-of-any": 300 * own.uniform(0.7, 1.3) * (step in chosen and rank == unlucky),
        "slow-start": 2000 * (rank == 0 and step == 0),
    }
    return of_form.get(plan.form, 0.0)  # balanced, and deaths


def train(plan: Plan, rank: int, model: Any, optimizer: Any, stepped: Any) -> list[float]:
    """Take the steps, and die in one where the plan says so. Returns when each was ready, in s."""
    ready = []
    own, alike = random.Random(f"{plan.kind} {plan.number} {rank}"), random.Random(plan.number)
    for step in range(plan.steps):
        if plan.kind == "death" and (rank, step) == (plan.bad, plan.every):
            time.sleep((plan.work_ms + plan.late_ms) / 1e3 if plan.late_ms else 0.0)
            _die(plan.form)
        time.sleep((plan.work_ms + lost_ms(plan, step, rank, own, alike)) / 1e3)
        ready.append(time.monotonic())
        optimizer.zero_grad()
        model(torch.ones(4, 128)).sum().backward()
        optimizer.step()
        stepped()
    return ready


def _write_ready(file: Path, rank: int, ready: list[float]) -> None:
    """Write what the ranks' own clock, which is one on one machine, says of who came last."""
    file.with_name(f"{file.stem}.rank{rank}.ready").write_text("".join(f"{each:.6f}\n" for each in ready))


def _die(form: str) -> None:
    if form == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if form == "exits":
        os._exit(1)
    raise RuntimeError("an error put in")


def _model() -> torch.nn.Sequential:
    return torch.nn.Sequential(
        *(layer for _ in range(4) for layer in (torch.nn.Linear(128, 128), torch.nn.ReLU()))
    )


def train_horovod(plan: Plan, rank: int, file: Path, port: int, cache: bool) -> None:
    """Be a rank of a Horovod training whose timeline rank 0 writes."""
    slot = get_host_assignments(parse_hosts(f"localhost:{plan.ranks}"), plan.ranks)[rank]
    for name in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "hostname"):
        os.environ[f"HOROVOD_{name.upper()}"] = str(getattr(slot, name))
    os.environ |= {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo", "HOROVOD_GLOO_IFACE": "lo"}
    os.environ |= {"HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port)}
    os.environ |= {"HOROVOD_TIMELINE": str(file), "HOROVOD_TIMELINE_MARK_CYCLES": "1"}
    if not cache:
        os.environ["HOROVOD_CACHE_CAPACITY"] = "0"
    hvd.init()
    model = _model()
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    _write_ready(file, rank, train(plan, rank, model, optimizer, lambda: None))
    hvd.barrier()
    hvd.shutdown()


def train_ddp(plan: Plan, rank: int, file: Path) -> None:
    """Be a rank of a DDP training that writes its own trace, also where it fails."""
    store = f"file://{file.with_suffix('.store').resolve()}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=plan.ranks)
    model = DistributedDataParallel(_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    profiler.start()
    try:
        _write_ready(file, rank, train(plan, rank, model, optimizer, profiler.step))
    finally:
        profiler.stop()
        profiler.export_chrome_trace(str(file.with_name(f"{file.stem}.rank{rank}.json")))
    dist.destroy_process_group()


def _rank(plan: Plan, rank: int, recorder: str, file: Path, port: int) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    with open(file.with_suffix(".log"), "a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    if recorder == "kineto":
        train_ddp(plan, rank, file)
    else:
        train_horovod(plan, rank, file, port, recorder == "horovod-cache")


def _serve(ranks: int, told: Any) -> None:
    server = RendezvousServer()
    told.send(server.start())
    server.init(get_host_assignments(parse_hosts(f"localhost:{ranks}"), ranks))
    told.send(None)
    time.sleep(2 * _LIMIT_S)


def record(plan: Plan, recorder: str, folder: Path) -> bool:
    """Run a training to its end, or to the end of the first rank and five seconds; whether it came to it."""
    file = folder / f"{recorder}-{plan.kind}-{plan.number}.json"
    here, there = _FORK.Pipe()
    server = _FORK.Process(target=_serve, args=(plan.ranks, there), daemon=True)
    port = 0
    if recorder != "kineto":
        server.start()
        port = here.recv()
        here.recv()
    words = [(plan, rank, recorder, file, port) for rank in range(plan.ranks)]
    ranks = [_FORK.Process(target=_rank, args=each, daemon=True) for each in words]
    for process in ranks:
        process.start()
    end = time.monotonic() + _LIMIT_S
    while any(process.is_alive() for process in ranks) and time.monotonic() < end:
        if any(process.exitcode for process in ranks):
            end = min(end, time.monotonic() + 5)  # what a launcher grants the others
        time.sleep(0.02)
    for process in (*ranks, *([server] if port else [])):
        process.kill()
        process.join()
    return all((process.exitcode == 0) != (plan.kind == "death") for process in ranks)


def main() -> None:
    """Record."""
    recorder, folder = sys.argv[1], Path(sys.argv[2])
    for line in sys.stdin:
        kind, number, form, *numbers = line.split()
        plan = Plan(kind, int(number), form, *map(int, numbers))
        load = os.getloadavg()[0]
        if record(plan, recorder, folder):
            print(kind, number, f"{load:.1f}", flush=True)


if __name__ == "__main__":
    main()
