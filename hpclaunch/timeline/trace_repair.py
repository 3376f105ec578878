"""Whole traces from broken ones, and one trace of all ranks. Both are streams, little of them in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from hpclaunch.timeline.job_timeline import JobTimeline, Place
from hpclaunch.timeline.rank_trace import RankTrace
from hpclaunch.timeline.trace_events import DECODER, MERGED, Event, TraceReader, event_text, inflated

_LANES = 1_000_000
"""Numbers of lanes per rank in a merged trace."""


def repaired(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield a valid trace of all whole events, in the form that was read. Raises BadInputError."""
    reader = TraceReader(inflated(chunks))
    first = True
    for event in reader:
        if first:
            yield _opening(reader)
        yield ("" if first else ",\n") + event_text(event)
        first = False
    if first:
        yield _opening(reader)
    yield "\n]" + (_closing(reader.tail) if reader.is_object else "\n")


def _opening(reader: TraceReader) -> str:
    if not reader.is_object:
        return "[\n"
    return f'{{{event_text(reader.head)[1:-1]}{", " if reader.head else ""}"traceEvents": [\n'


def _closing(tail: str) -> str:
    """Return what follows the events, where it is whole."""
    try:
        keys: Event = DECODER.decode(f'{{"traceEvents": []{tail.strip()}')
    except (ValueError, RecursionError):
        return "}\n"
    del keys["traceEvents"]
    return f", {event_text(keys)[1:]}\n" if keys else "}\n"


@dataclass(frozen=True)
class Clock:
    """How a rank's times become those of the merged trace."""

    zero_us: float
    """Is added."""
    shift_us: float
    """Of it, what aligns the rank with the lowest one; 0 for that one."""


def aligned(job: JobTimeline) -> dict[int, Clock]:
    """Return each rank's clock, such that collectives end at the same time on all ranks.

    A collective cannot end on one rank before the last rank has begun it, so their ends are the best common
    moments; the median over the steps leaves out those that ended late on one rank.
    """
    ends = {rank: list(columns["ready"]) for rank, columns in job.columns.items() if any(columns["ready"])}
    epochs = {rank: trace.epoch_us for rank, trace in job.traces.items()}
    reference = min(ends, default=None)
    clocks = {}
    for rank in job.traces:
        shift = 0.0
        if reference is not None and rank in ends:
            differences = [
                (a * 1e3 + epochs[reference]) - (b * 1e3 + epochs[rank])
                for a, b in zip(ends[reference], ends[rank], strict=True)
                if a and b
            ]
            shift = median(differences) if differences else 0.0
        clocks[rank] = Clock(epochs[rank] + shift, shift)
    starts = [
        (trace.steps.first or 0.0) + clocks[rank].zero_us
        for rank, trace in job.traces.items()
        if trace.steps.first is not None
    ]
    begin = min(starts, default=0.0)
    return {rank: Clock(clock.zero_us - begin, clock.shift_us) for rank, clock in clocks.items()}


def merged(
    job: JobTimeline, opened: Callable[[str], Iterable[bytes]], places: Mapping[int, Place] | None = None
) -> Iterator[str]:
    """Yield one trace of all ranks, in pieces; ``opened`` gives the bytes of a file that was read, again."""
    clocks = aligned(job)
    yield f'{{"displayTimeUnit": "ms", "otherData": {event_text(MERGED)}, "traceEvents": [\n'
    first = True
    for file in job.files:
        rewritten = _Rewriter(file.traces, clocks, places or {})
        if file.form == "flight-recorder":
            continue
        for event in TraceReader(inflated(opened(file.name))):
            for written in rewritten.event(event):
                yield ("" if first else ",\n") + event_text(written)
                first = False
    yield "\n]}\n"


class _Rewriter:
    """Gives the events of one file the numbers and times of the merged trace: a process per rank and kind."""

    def __init__(
        self, traces: Iterable[RankTrace], clocks: Mapping[int, Clock], places: Mapping[int, Place]
    ) -> None:
        self._traces = {trace.rank: trace for trace in traces}
        self._rank = min(self._traces)
        kineto = self._traces[self._rank].form == "kineto"
        self.event = self._of_kineto if kineto else self._of_lanes
        """Yields an event as it is in the merged trace, names before it where they are new."""
        self._clocks = clocks
        self._places = places
        self._lanes: dict[str, tuple[int, int]] = {}
        """Lane of the file -> process and thread of the merged trace."""
        self._named: set[int] = set()

    def _of_lanes(self, event: Event) -> Iterator[Event]:
        """Horovod's form: its processes are tensors, which become threads of a rank."""
        lane = str(event.get("pid", 0))
        if event.get("ph") == "M":
            arguments = event.get("args")
            name = arguments.get("name") if isinstance(arguments, dict) else None
            if event.get("name") == "process_name" and isinstance(name, str):
                text, _, rank = name.rpartition(" (rank ")
                owner = int(rank[:-1]) if text and rank[:-1].isdigit() else self._rank
                thread = len(self._lanes) + 1
                self._lanes[lane] = (owner, thread)
                yield from self._process(owner, owner, "")
                shown = {"name": text or name}
                yield {"name": "thread_name", "ph": "M", "pid": owner, "tid": thread, "args": shown}
            return
        number, thread = self._lanes.get(lane, (self._rank, 0))
        yield from self._process(number, number, "")
        yield self._moved(event, number, number, thread)

    def _of_kineto(self, event: Event) -> Iterator[Event]:
        lane = str(event.get("pid", 0))
        if lane not in self._lanes:
            self._lanes[lane] = (self._rank * _LANES + len(self._lanes), 0)
        process, _ = self._lanes[lane]
        if event.get("ph") == "M" and event.get("name") == "process_name":
            arguments = event.get("args")
            name = arguments.get("name") if isinstance(arguments, dict) else ""
            yield from self._process(process, self._rank, f"{name}")
            return
        yield self._moved(event, self._rank, process, event.get("tid", 0))

    def _process(self, process: int, rank: int, name: str) -> Iterator[Event]:
        if process in self._named:
            return
        self._named.add(process)
        place = self._places.get(rank, Place(self._traces[rank].host if rank in self._traces else None))
        shown = f"{place.named(rank)}{f': {name}' if name else ''}"
        yield {"name": "process_name", "ph": "M", "pid": process, "args": {"name": shown}}
        yield {"name": "process_sort_index", "ph": "M", "pid": process, "args": {"sort_index": process}}

    def _moved(self, event: Event, rank: int, process: int, thread: object) -> Event:
        moved = {**event, "pid": process, "tid": thread}
        clock = self._clocks.get(rank)
        if clock is not None and isinstance(event.get("ts"), int | float):
            moved["ts"] = round(event["ts"] + clock.zero_us, 3)
        if isinstance(event.get("id"), int) and event.get("ph") in ("s", "t", "f"):
            moved["id"] = f"{rank}:{event['id']}"  # arrows of several ranks have the same numbers
        return moved
