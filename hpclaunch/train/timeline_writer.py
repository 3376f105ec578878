"""A timeline as Horovod writes it: a Chrome trace in JSON, which https://ui.perfetto.dev opens.

One lane per tensor: a "process" with its name. Times are microseconds since the start, by rank 0's clock. The
file is a whole JSON document between two writes, one write per step (`GrowingArray`).
"""

import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np

from .allreduce import Comm
from .collective import on_all_ranks
from .run_errors import BadRequestError
from .run_options import Options
from .whole_files import GrowingArray

COMPUTING = "computing"
"""The name of the lane that shows a rank's computing."""

_NAME_CHARACTERS = 300  # of a lane; more than any viewer shows
_PING_PONGS = 30  # the fastest of them shows the difference of the clocks best
_MERGED_EVENTS = 4096  # of a rank, in one message


class Timeline:
    """Events stay in memory until `flush`. Each thread may add some to its own lanes, but not during it."""

    def __init__(
        self,
        path: Path,
        start: float,
        rank: int | None = None,
        set_at: float = 0.0,
        steps: tuple[int, int | None] = (0, None),
    ) -> None:
        """Replace ``path`` by a timeline without events; OSError if that fails.

        ``start``: `time.perf_counter` at time 0; ``set_at``: when it was compared with that of rank 0. Lanes
        have the ``rank`` in their name, if given. ``steps``: how many pass before the first that is recorded,
        and how many are recorded (None: all).
        """
        self.path = path
        self.start = start
        self.set_at = set_at
        self._suffix = "" if rank is None else f" (rank {rank})"
        self.lanes: dict[str, int] = {}
        """Their numbers, by name."""
        epoch = int((time.time() - time.perf_counter() + start) * 1e6)
        self._after, self._count = steps
        begun = {"steps_before": self._after} if self._after else {}
        head = _lane_head(0, start_time_since_epoch_in_micros=epoch, **begun)
        self._events = GrowingArray(path, head)
        self._pending: list[str] = []
        self._recording = not self._after
        self.steps = 0
        """Of this rank that are over."""
        self.failed = False
        """Whether it ended early because it could not be written."""

    def lane(self, name: str) -> int:
        """The number of the lane called ``name``, a new one where there is none."""
        if name not in self.lanes:
            number = self.lanes[name] = len(self.lanes) + 1
            shown = name[:_NAME_CHARACTERS] + self._suffix
            self._pending += _lane_head(number, name=shown)
        return self.lanes[name]

    def microseconds(self, at: float) -> int:
        """A moment of `time.perf_counter` on the timeline."""
        return int((at - self.start) * 1e6)

    def phase(self, lane: int, name: str, start: float, stop: float) -> None:
        """A phase on ``lane``; its ``name`` needs no escape. Times are those of `time.perf_counter`."""
        times = self.microseconds(start), self.microseconds(stop)
        self.add(f"{begins(lane, name)},{ends(lane)}" % times)

    @contextmanager
    def computing(self, name: str) -> Iterator[None]:
        """The phase ``name`` of computing, as long as the block takes."""
        start = time.perf_counter()
        yield
        self.phase(self.lane(COMPUTING), name, start, time.perf_counter())

    def add(self, events: str) -> None:
        """One event or some, with commas in between, if this step is recorded."""
        if self._recording:
            self._pending.append(events)

    def step_ends(self) -> None:
        """A step is over: write its events, and record the next one or not."""
        self.flush()
        self.steps += 1
        last = math.inf if self._count is None else self._after + self._count
        self._recording = self._after <= self.steps < last

    def append(self, events: Iterable[str]) -> None:
        """Write events of another rank."""
        self._pending += events
        self.flush()

    def flush(self) -> None:
        """Write the events since the last flush; a full disk ends the timeline, not the training."""
        pending, self._pending = self._pending, []
        if pending and not self.failed:
            with self._may_fail():
                self._events.extend(pending)

    def close(self) -> None:
        """Write all and close the file."""
        self.flush()
        with self._may_fail():
            self._events.close()

    @contextmanager
    def _may_fail(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failed = True
            reason = error.strerror or error
            print(f"{__package__}: --timeline {self.path} ends early: {reason}", file=sys.stderr, flush=True)


def begins(lane: int, name: str) -> str:
    """The event of a phase that begins, without its time: ``%d``. ``name`` needs no escape."""
    return f'{{"ph": "B", "name": "{name}", "ts": %d, "pid": {lane}}}'


def ends(lane: int, facts: Mapping[str, str] | None = None) -> str:
    """The end of the phase on ``lane`` that began last, with %d for its time and ``facts`` as arguments."""
    arguments = f', "args": {json.dumps(facts)}' if facts else ""
    return f'{{"ph": "E", "ts": %d, "pid": {lane}{arguments}}}'


def open_timeline(comm: Comm, options: Options) -> Timeline | None:
    """This rank's timeline, None if it writes none; collective. AgreedError where one cannot be written.

    The other ranks write files next to rank 0's, until `close_timeline` merges them.
    """
    path, rank = options.timeline, comm.Get_rank()
    steps = options.timeline_after, options.timeline_steps
    if path is None:
        return None
    everyone = options.timeline_ranks == "all"
    start: float = comm.bcast(time.perf_counter())
    set_at, by_rank_0 = _same_moment(comm) if everyone else (0.0, 0.0)
    mine = path if rank == 0 else path.with_name(f"{path.stem}.rank{rank}{path.suffix}")

    def opened() -> Timeline | None:
        if rank and not everyone:
            return None
        try:
            return Timeline(mine, start + set_at - by_rank_0, rank if everyone else None, set_at, steps)
        except OSError as error:
            raise BadRequestError.of("no timeline", path=mine, reason=error.strerror or error) from error

    return on_all_ranks(comm, opened)


def close_timeline(comm: Comm, options: Options, timeline: Timeline | None) -> None:
    """Write all and put the events of all ranks into rank 0's file; collective."""
    after = options.timeline_after
    if timeline is not None and comm.Get_rank() == 0 and 0 < after >= timeline.steps:
        text = f"the run has {timeline.steps} steps, and recording begins after {after}"
        print(f"{__package__}: --timeline {timeline.path} is empty: {text}", file=sys.stderr, flush=True)
    if options.timeline_ranks == "all" and timeline is not None:
        _merge(comm, timeline)
    elif timeline is not None:
        timeline.close()


def _merge(comm: Comm, timeline: Timeline) -> None:
    """Rank 0 appends the events of the other ranks, a piece at a time; their files are removed."""
    rank = comm.Get_rank()
    now, by_rank_0 = _same_moment(comm)
    apart = by_rank_0 - comm.bcast(timeline.start) - (now - timeline.start)
    drift = apart / (now - timeline.set_at) if rank else 0.0  # evenly since then
    lanes: list[int] = comm.allgather(len(timeline.lanes))
    if rank == 0:
        timeline.flush()
        for other in range(1, comm.Get_size()):
            while piece := comm.recv(source=other):
                timeline.append(piece)
        timeline.close()
    else:
        timeline.close()
        lines = _moved(timeline, drift, sum(lanes[:rank]))
        while piece := list(islice(lines, _MERGED_EVENTS)):
            comm.send(piece, dest=0)
        comm.send([], dest=0)
    if not comm.bcast(timeline.failed) and rank:
        timeline.path.unlink()


def _moved(timeline: Timeline, drift: float, lanes: int) -> Iterator[str]:
    """The events of a timeline without its head, by rank 0's clock, with ``lanes`` added to their numbers."""
    set_at = (timeline.set_at - timeline.start) * 1e6
    with timeline.path.open(encoding="utf-8") as file:
        for line in file:  # those that were written together
            for event in json.loads(f"[{line.strip().rstrip(',')}]") if line.startswith("{") else []:
                if event["pid"] == 0:
                    continue
                event["pid"] += lanes
                if "ts" in event:
                    event["ts"] += int((event["ts"] - set_at) * drift)
                if "sort_index" in event.get("args", {}):
                    event["args"]["sort_index"] = event["pid"]
                yield json.dumps(event)


def _same_moment(comm: Comm) -> tuple[float, float]:
    """The clocks of this rank and of rank 0 at one moment, by the fastest of some ping-pongs; collective."""
    question, answer = np.zeros(1), np.zeros(1)
    if comm.Get_rank() == 0:
        for other in range(1, comm.Get_size()):
            for _ in range(_PING_PONGS):
                comm.Recv(question, source=other)
                comm.Send(np.array([time.perf_counter()]), dest=other)
        now = time.perf_counter()
        return now, now
    trips = []
    for _ in range(_PING_PONGS):
        sent = time.perf_counter()
        comm.Sendrecv(question, 0, 0, answer, 0, 0)
        back = time.perf_counter()
        trips.append((back - sent, (sent + back) / 2, float(answer[0])))
    _, here, there = min(trips)
    return here, there


def _lane_head(lane: int, **named: object) -> list[str]:
    kinds = {"process_name": named, "process_sort_index": {"sort_index": lane}}
    return [json.dumps({"name": kind, "ph": "M", "pid": lane, "args": args}) for kind, args in kinds.items()]
