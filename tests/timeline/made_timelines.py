"""Timelines with known faults, made from a model of a synchronous training.

Each step, a rank waits for its input, computes, and requests its tensors; a collective begins when the last
rank has requested it. What a profiler sees of that is written in each of the forms.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

Steps = list[list[tuple[float, float, float, float]]]
Fault = Callable[[int, int], float]
"""(rank, step) -> milliseconds more."""


def none(_rank: int, _step: int) -> float:
    return 0.0


def always(slow: int, late_ms: float) -> Fault:
    return lambda rank, _: late_ms if rank == slow else 0.0


def each(period: int, slow: int, late_ms: float) -> Fault:
    return lambda rank, step: late_ms if rank == slow and step % period == period - 1 else 0.0


def everywhere(late_ms: float) -> Fault:
    return lambda _rank, _step: late_ms


def normal(share: float) -> Callable[[random.Random, float], float]:
    """Noise of this share of the computing time."""
    return lambda draw, base: abs(draw.gauss(0, share * base))


def heavy(draw: random.Random, base: float) -> float:
    """Noise of a machine with more ranks than cores: mostly little, now and then several steps long."""
    return base * 0.2 * draw.lognormvariate(0, 1.2)


@dataclass
class Training:
    """A model of a training; times are milliseconds."""

    ranks: int = 4
    steps: int = 40
    tensors: int = 6
    elements: int = 4096
    computing_ms: float = 40.0
    input_ms: float = 1.0
    message_ms: float = 5.0
    noise: Callable[[random.Random, float], float] = field(default_factory=lambda: normal(0.05))
    slow_computing: Fault = none
    slow_input: Fault = none
    serial: bool = False
    """Each tensor is requested after the one before is done."""
    seed: int = 0

    def run(self) -> Steps:
        """Per step and rank: when its input, its computing, its communication begin, and when all end
        (ms)."""
        draw = random.Random(self.seed)
        now, steps = [1000.0] * self.ranks, []
        for step in range(self.steps):
            rows, ready = [], []
            for rank in range(self.ranks):
                computing = now[rank] + self.input_ms + self.slow_input(rank, step)
                noise = self.noise(draw, self.computing_ms)
                asked = computing + self.computing_ms + noise + self.slow_computing(rank, step)
                rows.append((now[rank], computing, asked))
                ready.append(asked)
            end = max(ready) + self.message_ms
            steps.append([(*row, end) for row in rows])
            now = [end + 0.2] * self.ranks
        return steps


def horovod(training: Training, *, cache: bool) -> bytes:
    """What Horovod's rank 0 writes; with the response cache it names ranks only in the first step."""
    events: list[object] = [
        {
            "name": "process_name",
            "ph": "M",
            "pid": 0,
            "args": {"start_time_since_epoch_in_micros": 1_700_000_000_000_000},
        }
    ]
    for lane in range(1, training.tensors + 1):
        events.append(
            {"name": "process_name", "ph": "M", "pid": lane, "args": {"name": f"allreduce.layer{lane}"}}
        )
    for number, rows in enumerate(training.run()):
        for lane in range(1, training.tensors + 1):
            events += _negotiated(training, rows, lane, number, cache=cache)
    return b"[\n" + b",".join(map(msgspec.json.encode, events)) + b"]"


def _negotiated(
    training: Training, rows: list[tuple[float, float, float, float]], lane: int, number: int, *, cache: bool
) -> list[object]:
    """One tensor of one step; with ``serial`` the step's time is divided among the tensors."""
    asked, last, end = [row[2] for row in rows], max(row[2] for row in rows), rows[0][3]
    begin, moved = asked[0] if cache and number else min(asked), last
    if training.serial:
        part = (end - asked[0]) / training.tensors
        begin, end = asked[0] + (lane - 1) * part, asked[0] + lane * part - 0.01
        asked, moved = [begin] * len(asked), begin + 0.7 * part
    times = {"pid": lane}
    ticks = [] if cache and number else sorted((at, rank) for rank, at in enumerate(asked))
    facts = {"dtype": "float32", "shape": f"[{training.elements}]"}
    return [
        {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": int(begin * 1e3), **times},
        *({"ph": "X", "name": str(rank), "ts": int(at * 1e3), **times, "dur": 0} for at, rank in ticks),
        {"ph": "E", "ts": int(moved * 1e3), **times},
        {"ph": "B", "name": "ALLREDUCE", "ts": int(moved * 1e3), **times},
        {"ph": "B", "name": "MPI_ALLREDUCE", "ts": int(moved * 1e3), **times},
        {"ph": "E", "ts": int(end * 1e3), **times},
        {"ph": "E", "ts": int(end * 1e3), **times, "args": facts},
    ]


def runner(training: Training) -> bytes:
    """What our runner writes with ``--timeline-ranks all``."""
    events: list[object] = []
    steps, lanes = training.run(), 0
    for rank in range(training.ranks):
        names = ["computing", *(f"layer{number}" for number in range(training.tensors))]
        for lane, name in enumerate(names, lanes + 1):
            shown = {"name": f"{name} (rank {rank})"}
            events.append({"name": "process_name", "ph": "M", "pid": lane, "args": shown})
        for rows in steps:
            start, computing, asked, end = rows[rank]
            phases = (("INPUT", start, computing), ("FORWARD", computing, asked), ("UPDATE", end, end + 0.1))
            for name, begin, stop in phases:
                events.append({"ph": "B", "name": name, "ts": int(begin * 1e3), "pid": lanes + 1})
                events.append({"ph": "E", "ts": int(stop * 1e3), "pid": lanes + 1})
            for lane in range(lanes + 2, lanes + 2 + training.tensors):
                facts = {"dtype": "float32", "shape": f"[{training.elements}]"}
                for name in ("ALLREDUCE", "RING_ALLREDUCE"):
                    events.append({"ph": "B", "name": name, "ts": int(asked * 1e3), "pid": lane})
                events.append({"ph": "E", "ts": int(end * 1e3), "pid": lane})
                events.append({"ph": "E", "ts": int(end * 1e3), "pid": lane, "args": facts})
        lanes += len(names)
    return b"[\n" + b",\n".join(map(msgspec.json.encode, events)) + b"\n]\n"


def kineto(training: Training, *, marked: bool = True, clock_ms: float = 0.0) -> list[bytes]:
    """What torch.profiler writes on each rank: with its own steps, or with updates of the optimizer only.

    ``clock_ms``: by how much the clock of each rank is ahead of the rank before it.
    """
    steps = training.run()
    return [_trace_of(training, steps, rank, marked, clock_ms * rank) for rank in range(training.ranks)]


def _trace_of(training: Training, steps: Steps, rank: int, marked: bool, ahead: float) -> bytes:
    events: list[dict[str, object]] = []

    def add(name: str, category: str, begin: float, end: float, thread: int) -> None:
        times = {"ts": (begin + ahead) * 1e3, "dur": (end - begin) * 1e3}
        events.append({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread, **times})

    for number, rows in enumerate(steps):
        start, computing, asked, end = rows[rank]
        if marked:
            add(f"ProfilerStep#{number}", "user_annotation", start, end + 0.19, 1)
        add("enumerate(DataLoader)#_Iter.__next__", "user_annotation", start, computing, 1)
        add("aten::conv2d", "cpu_op", computing, asked, 1)
        add("aten::add", "cpu_op", computing + 0.1, computing + 0.2, 1)
        add("gloo:all_reduce", "user_annotation", asked, end, 2 + number % 2)
        add("Optimizer.step#SGD.step", "user_annotation", end, end + 0.1, 1)
    head = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": training.ranks},
        "host_name": f"n{rank // 2}",
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    }
    trace = {**head, "traceEvents": events, "traceName": "trace.json"}
    return msgspec.json.format(msgspec.json.encode(trace), indent=1)
