"""The facts about one rank as its trace is read: its collectives, tensors and steps, in bounded memory.

A reader adds intervals of phases and the moments at which steps begin; each step is reduced to some numbers
as soon as it is over, so that the memory does not grow with the trace, apart from these numbers.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median

from hpclaunch.package_data import package_constants

Interval = tuple[float, float]
"""Of time, in microseconds."""


class Intervals:
    """A set of intervals that grows; those that overlap the one added last cost no memory."""

    def __init__(self) -> None:
        self._starts = array("d")
        self._ends = array("d")
        self._sorted = True

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, start: float, end: float) -> None:
        """Add an interval; the order does not matter, but where it is nearly that of time less is stored."""
        if self._starts:
            last_start, last_end = self._starts[-1], self._ends[-1]
            if start <= last_end and end >= last_start:
                if end > last_end:
                    self._ends[-1] = end
                if start >= last_start:
                    return
                self._starts[-1] = start
                self._sorted = self._sorted and (len(self._starts) < 2 or start > self._ends[-2])
                return
            self._sorted = self._sorted and start > last_end
        self._starts.append(start)
        self._ends.append(end)

    def merged(self) -> list[Interval]:
        """Return the disjoint intervals in the order of time."""
        pairs = zip(self._starts, self._ends, strict=True)
        return list(pairs) if self._sorted else union(pairs)

    def ordered(self) -> Iterator[Interval]:
        """Yield the intervals in the order of their starts; they may overlap. None is copied to memory."""
        if self._sorted:
            yield from zip(self._starts, self._ends, strict=True)
        else:
            for number in sorted(range(len(self._starts)), key=self._starts.__getitem__):
                yield self._starts[number], self._ends[number]

    def compact(self) -> None:
        """Store the disjoint intervals only."""
        if not self._sorted:
            merged = self.merged()
            self._starts = array("d", (start for start, _ in merged))
            self._ends = array("d", (end for _, end in merged))
            self._sorted = True

    def take_before(self, time: float) -> list[Interval]:
        """Remove and return what lies before a time; an interval across it is divided there."""
        merged = self.merged()
        taken, left = [], []
        for start, end in merged:
            if start < time:
                taken.append((start, min(end, time)))
            if end > time:
                left.append((max(start, time), end))
        self._starts = array("d", (start for start, _ in left))
        self._ends = array("d", (end for _, end in left))
        self._sorted = True
        return taken


def union(pairs: Iterable[Interval]) -> list[Interval]:
    """Return the disjoint intervals that cover what these cover, in the order of time."""
    merged: list[Interval] = []
    for start, end in sorted(pairs):
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def length(pairs: Iterable[Interval]) -> float:
    """Return the sum of the lengths of disjoint intervals."""
    return sum(end - start for start, end in pairs)


PHASES = ("input", "computing", "moving", "copying", "queueing", "negotiating")
"""Where time goes, as far as a trace shows it. What is left of a step is rest: idle, or not in the trace."""
COLUMNS = (
    *("start", "time", *PHASES, "rest", "communication", "hidden"),
    *("tensors", "bytes", "messages", "requests", "ready"),
)
"""Numbers per step: microseconds; ``hidden``: communication at the same time as computing; ``messages`` and
``requests``: disjoint times of moving and of negotiating; ``ready``: when its last collective ended."""

LIMIT = package_constants("timeline/limits.yaml", "traces")
_BYTES: dict[str, int] = {name: each for each, names in LIMIT.bytes.items() for name in names.split()}


class RankSteps:
    """The steps of a rank. Add phases and step starts in about the order of time, then `finish`."""

    def __init__(self, order: Sequence[str] = PHASES, *, marked: bool = True) -> None:
        """``order``: the phases, that which counts first where several run at once; ``marked``: whether the
        trace says where steps begin, else a beginning that was found may be within a step."""
        self.marked = marked
        self.order = tuple(order)
        self.phases = {name: Intervals() for name in PHASES}
        self.waits: dict[int, Intervals] = {}
        """Rank -> when it had asked for a collective for which another rank had not, where the trace
        tells."""
        self.columns = {name: array("d") for name in COLUMNS}
        self.waited: dict[int, array[float]] = {}
        """Rank -> microseconds of waiting per step."""
        self.starts = array("d")
        """Of steps that are not reduced yet."""
        self.steps = 0
        self.stride = 1
        """Of this many steps one is in the columns."""
        self.first: float | None = None
        self.last = 0.0
        """When the trace begins and ends."""
        self._counts: dict[str, array[float]] = {name: array("d") for name in ("tensors", "bytes", "ready")}
        self._pending = 0

    def add(self, phase: str, start: float, end: float) -> None:
        """A phase of this rank."""
        intervals = self.phases[phase]
        before = len(intervals)
        intervals.add(start, end)
        self._pending += len(intervals) - before
        if self.first is None or start < self.first:
            self.first = start
        self.last = max(self.last, end)
        if self._pending > LIMIT.pending:
            self._reduce()

    def waits_for(self, rank: int, start: float, end: float) -> None:
        """A rank waited; as a coordinator wrote it."""
        if rank not in self.waits:
            self.waits[rank] = Intervals()
        self.waits[rank].add(start, end)

    def begins(self, at: float) -> None:
        """A step begins, where the one before it ends."""
        self.starts.append(at)
        for counts in self._counts.values():
            counts.append(0.0)

    def collective(self, size: int, end: float) -> None:
        """A tensor was communicated in the step that began last."""
        if self.starts:
            self._counts["tensors"][-1] += 1
            self._counts["bytes"][-1] += size
            self._counts["ready"][-1] = max(end, self._counts["ready"][-1])

    def finish(self, end: float | None) -> None:
        """Reduce what is left; ``end``: of the last step, None: it is not whole and is dropped."""
        if self.starts and end is not None:
            self.starts.append(end)
        self._reduce(settled=0)
        rows = len(self.columns["start"])
        for column in self.waited.values():
            column.extend([0.0] * (rows - len(column)))
        if self.stride == 1 and not self.marked:
            self._join_parts()

    def _reduce(self, settled: int = LIMIT.settled) -> None:
        over = len(self.starts) - 1 - settled
        if over < 1:
            for intervals in self.phases.values():
                intervals.compact()
            self._pending = sum(map(len, self.phases.values())) // 2
            if self._pending > 8 * LIMIT.pending:  # no steps in so much: nothing will be said about them
                self._drop(self.last)
            return
        edges = list(self.starts[: over + 1])
        taken = {
            name: _divided(intervals.take_before(edges[-1]), edges) for name, intervals in self.phases.items()
        }
        waits = {rank: _divided(each.take_before(edges[-1]), edges) for rank, each in self.waits.items()}
        for number in range(over):
            self._append(
                edges[number], edges[number + 1], number, {name: taken[name][number] for name in PHASES}
            )
            self._append_waits({rank: length(parts[number]) for rank, parts in waits.items()})
            self._thin()
        del self.starts[:over]
        for counts in self._counts.values():
            del counts[:over]
        self._pending = sum(map(len, self.phases.values()))

    def _drop(self, before: float) -> None:
        for intervals in (*self.phases.values(), *self.waits.values()):
            intervals.take_before(before)
        self._pending = 0

    def _append(self, start: float, end: float, number: int, parts: dict[str, list[Interval]]) -> None:
        row = {
            "start": start,
            "time": end - start,
            **{name: counts[number] for name, counts in self._counts.items()},
        }
        covered: list[Interval] = []
        so_far = 0.0
        for name in self.order:
            covered = union([*covered, *parts[name]]) if parts[name] else covered
            row[name] = length(covered) - so_far
            so_far += row[name]
        row["rest"] = max(end - start - so_far, 0.0)
        row["messages"] = float(len(parts["moving"]))
        row["requests"] = float(len(parts["negotiating"]))
        row["communication"] = length(parts["moving"])
        both = length(union([*parts["moving"], *parts["computing"]]))
        row["hidden"] = length(parts["moving"]) + length(parts["computing"]) - both
        for name, column in self.columns.items():
            column.append(row[name])
        self.steps += 1

    def _append_waits(self, waits: dict[int, float]) -> None:
        rows = len(self.columns["start"])
        for rank in {*waits, *self.waited}:
            column = self.waited.setdefault(rank, array("d"))
            column.extend([0.0] * (rows - 1 - len(column)))
            column.append(waits.get(rank, 0.0))

    def _thin(self) -> None:
        """Keep to the stride, and double it where there are too many steps."""
        every = [*self.columns.values(), *self.waited.values()]
        if (self.steps - 1) % self.stride:
            for column in every:
                del column[-1:]
        elif len(self.columns["start"]) > LIMIT.most_steps:
            self.stride *= 2
            for column in every:
                column[:] = column[::2]

    def _join_parts(self) -> None:
        """Join to the step before it what has less than half of the usual tensors, such as a mean of a
        metric."""
        tensors = self.columns["tensors"]
        if len(tensors) < 3:
            return
        least = median(tensors) / 2
        parts = [number for number, count in enumerate(tensors) if number and count < least]
        if parts:
            self.columns = {name: _joined(column, parts, name) for name, column in self.columns.items()}
            self.waited = {rank: _joined(column, parts) for rank, column in self.waited.items()}
            self.steps -= len(parts)


def _joined(column: array[float], parts: list[int], name: str = "") -> array[float]:
    """Return the numbers with those of the ``parts`` joined to the step before each."""
    which = set(parts)
    joined = array("d")
    for number, value in enumerate(column):
        if number not in which:
            joined.append(value)
        elif name == "ready":
            joined[-1] = max(joined[-1], value)
        elif name != "start":
            joined[-1] += value
    return joined


def _divided(merged: list[Interval], edges: list[float]) -> list[list[Interval]]:
    parts: list[list[Interval]] = [[] for _ in edges[1:]]
    step = 0
    for start, end in merged:
        while step < len(parts) and edges[step + 1] <= start:
            step += 1
        for number in range(step, len(parts)):
            if edges[number] >= end:
                break
            clipped = max(start, edges[number]), min(end, edges[number + 1])
            if clipped[0] < clipped[1]:
                parts[number].append(clipped)
    return parts


@lru_cache(maxsize=1024)  # a trace has few names, each many times
def kind_of(name: str) -> str:
    """Return the kind of a collective by any of its names: ``nccl:all_reduce``, ``MPI_BCAST``; else other."""
    letters = re.sub(r"[^a-z]", "", name.lower()).replace("bcast", "broadcast")
    return next((kind for kind in LIMIT.kinds if kind in letters), "other")


def size_of(dtype: object, shape: object) -> int:
    """Return the bytes of a tensor, 0 where they are not known; ``shape``: a list, or its text ``[2, 3]``."""
    each = _BYTES.get(str(dtype).lower().removeprefix("torch.").removeprefix("c10::"), 0)
    dims = re.findall(r"\d+", shape) if isinstance(shape, str) else shape
    if not isinstance(dims, list) or len(dims) > 64:
        return 0
    try:
        return each * math.prod(min(int(dim), 1 << 40) for dim in dims)
    except (TypeError, ValueError):
        return 0


def bus_factor(kind: str, ranks: int) -> float:
    """Return bus bandwidth / (bytes / time) by nccl-tests (doc/PERFORMANCE.md); bytes: the whole buffer."""
    if kind == "allreduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if kind in ("allgather", "reducescatter", "alltoall") else 1.0


@dataclass
class Collective:
    """All collectives of one kind."""

    count: int = 0
    bytes: int = 0
    unknown: int = 0
    """How many have no size in the trace."""
    messages: int = 0
    seconds: float = 0.0
    """Of messages; those that overlap count once."""
    _start: float = math.inf
    _end: float = -math.inf

    def message(self, start: float, end: float) -> None:
        """A message took this time; one that overlaps the last is the same: tensors that were fused."""
        if start <= self._end and end >= self._start:
            self.seconds += (max(end, self._end) - self._end + self._start - min(start, self._start)) / 1e6
            self._start, self._end = min(start, self._start), max(end, self._end)
        else:
            self.messages += 1
            self.seconds += (end - start) / 1e6
            self._start, self._end = start, end

    def tensor(self, size: int) -> None:
        """A tensor was communicated; ``size`` 0: not known."""
        self.count += 1
        self.bytes += size
        self.unknown += not size


@dataclass
class Tensor:
    """One tensor, over all steps."""

    count: int = 0
    bytes: int = 0
    """Of one time, the largest."""
    total_us: float = 0.0
    """From the first request for it to its end."""
    longest_us: float = 0.0


@dataclass
class Collectives:
    """The communication of one rank."""

    kinds: dict[str, Collective] = field(default_factory=lambda: defaultdict(Collective))
    """The sums of each kind."""
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def tensor(self, name: str, size: int, microseconds: float) -> None:
        """A tensor took this long."""
        tensor = self.tensors.get(name)
        if tensor is None:
            if len(self.tensors) >= LIMIT.most_names:
                return
            tensor = self.tensors[name] = Tensor()
        tensor.count += 1
        tensor.bytes = max(tensor.bytes, size)
        tensor.total_us += microseconds
        tensor.longest_us = max(tensor.longest_us, microseconds)


@dataclass
class RankTrace:
    """One rank: its steps and collectives."""

    rank: int
    form: str
    """horovod, runner, kineto or flight-recorder."""
    steps: RankSteps
    collectives: Collectives = field(default_factory=Collectives)
    ranks: int | None = None
    """Of the job, as far as this trace tells."""
    host: str | None = None
    epoch_us: float = 0.0
    """Microseconds since 1970 at the trace's time 0."""
    begins_within: bool = False
    """Whether recording began after some steps, so that the start of the run is not in it."""
    cycle_ms: float | None = None
    """Horovod's: the usual time between two of its cycles, where the timeline marks them."""
    sees_computing: bool = True
    """Whether computing is in the trace; else it is part of the rest."""
    sees_input: bool = True
    """Whether waiting for data is in the trace."""
    sees_waiting: bool = False
    """Whether the trace tells how long this rank waited for its collectives to be requested everywhere."""
    names_ranks: bool = False
    """Whether most negotiations tell when each rank requested it; not with Horovod's response cache."""
    sequence: dict[str, dict[int, str]] = field(default_factory=dict)
    """Process group -> number -> collective, of a flight recorder; the newest ones."""
    unfinished: tuple[str, ...] = ()
    """Collectives that had begun and not ended where the trace ends."""
    not_asked: tuple[int, ...] = ()
    """Ranks that had not requested any of them, while other ranks had."""
