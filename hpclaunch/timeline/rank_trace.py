"""The facts about one rank after its trace was read: its collectives and tensors, how many and how long."""

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache

from hpclaunch.timeline.rank_steps import RankSteps

_MOST_NAMES = 10_000
"""Tensors that are counted each for itself; what comes later only in the sums."""

_BYTES = {
    **dict.fromkeys(("bool", "byte", "char", "int8", "uint8", "qint8", "quint8", "float8"), 1),
    **dict.fromkeys(("float16", "bfloat16", "half", "short", "int16", "uint16"), 2),
    **dict.fromkeys(("float32", "float", "int", "int32", "uint32"), 4),
    **dict.fromkeys(("float64", "double", "long", "int64", "uint64", "complex64"), 8),
    "complex128": 16,
}

KINDS = (
    *("allreduce", "allgather", "reducescatter", "broadcast", "alltoall", "barrier", "join"),
    *("send", "recv"),
)


@lru_cache(maxsize=1024)  # a trace has few names, each many times
def kind_of(name: str) -> str:
    """Return the kind of a collective by any of its names: ``nccl:all_reduce``, ``MPI_BCAST``; else other."""
    letters = re.sub(r"[^a-z]", "", name.lower()).replace("bcast", "broadcast")
    return next((kind for kind in KINDS if kind in letters), "other")


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
            if len(self.tensors) >= _MOST_NAMES:
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
