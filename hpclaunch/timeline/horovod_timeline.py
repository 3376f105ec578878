"""Horovod's timelines (HOROVOD_TIMELINE), and those of hpclaunch's runner, which have the same form.

One lane ("process") per tensor. Horovod's file is written by the coordinator, rank 0: NEGOTIATE_* lasts from
its own request until all ranks have asked; each rank's request is an instant named by its number. With the
response cache both are so in the first negotiation of a tensor only: later it begins as soon as one worker
reports a cache hit, which may be another one than rank 0 (response_cache.h, controller.cc of 0.28.1). The
runner's has a lane for computing, and may have the lanes of all ranks, with the rank in the name.
"""

from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.timeline.rank_trace import RankSteps, RankTrace, kind_of, size_of
from hpclaunch.timeline.trace_events import Event, microseconds

_FORM = package_patterns("timeline/forms.yaml", "horovod")
LIMIT = package_constants("timeline/limits.yaml", "horovod")


class _Lane:
    """A tensor of one rank, or a rank's computing."""

    __slots__ = ("asked", "began", "known", "name", "opened", "owner", "unnamed")

    def __init__(self, name: str, owner: "_Rank") -> None:
        unnamed = _FORM.unnamed.fullmatch(name)
        self.name = unnamed[1] if unnamed else name
        self.unnamed = unnamed is not None
        self.owner = owner
        self.opened: list[tuple[str, float]] = []
        self.began: float | None = None
        """When the collective that is open, or was the last, was first requested."""
        self.asked: dict[int, float] = {}
        """Rank -> when it requested this collective."""
        self.known = False
        """Whether it was communicated before; a barrier at the end may be open because Horovod shuts down."""


class _Rank:
    def __init__(self, rank: int) -> None:
        self.trace = RankTrace(
            rank, "horovod", RankSteps(marked=False), sees_computing=False, sees_input=False
        )
        self.trace.sees_waiting = True
        self.seen: set[str] = set()
        """Tensors of the step so far."""
        self.in_flight = 0
        self.named = 0
        """Negotiations that tell when each rank requested it."""
        self.communicated = 0
        self.updated = True
        """Whether the runner's step is over."""

    def computes(self) -> None:
        """It is a rank of the runner: negotiating is its messages' queue, and it shows what it computes."""
        self.trace.form = "runner"
        self.trace.steps.marked = True
        self.trace.sees_computing = self.trace.sees_input = True
        self.trace.sees_waiting = False


class HorovodReader:
    """Gathers the events of one timeline."""

    def __init__(self) -> None:
        self._ranks: dict[int, _Rank] = {}
        self._lanes: dict[object, _Lane] = {}
        self._epoch_us = 0.0
        self._begins_within = False
        self._asked: set[int] = set()
        self._cycles: list[float] = []

    def read(self, events: Iterable[Event]) -> list[RankTrace]:
        """Return what the timeline tells about each rank that it has lanes of."""
        handlers = {"M": self._names, "B": self._begins, "E": self._ends, "X": self._asks, "i": self._marks}
        for event in events:
            handler = handlers.get(event.get("ph", ""))
            if handler is None:
                continue
            try:
                handler(event)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # an event of another form: it is not ours to read
        return [self._finished(each) for _, each in sorted(self._ranks.items())]

    def _names(self, event: Event) -> None:
        if event["name"] != "process_name":
            return
        arguments = event["args"]
        if "start_time_since_epoch_in_micros" in arguments:
            self._epoch_us = microseconds(arguments["start_time_since_epoch_in_micros"])
            self._begins_within = "steps_before" in arguments
        name = arguments.get("name")
        if not isinstance(name, str):
            return
        by_rank = _FORM.rank_of_lane.fullmatch(name)
        owner = self._rank(int(by_rank[2]) if by_rank else 0)
        name = by_rank[1] if by_rank else name
        if name == LIMIT.computing:
            owner.computes()
        self._lanes[event["pid"]] = _Lane(name, owner)

    def _rank(self, number: int) -> _Rank:
        if number not in self._ranks:
            self._ranks[number] = _Rank(number)
        return self._ranks[number]

    def _begins(self, event: Event) -> None:
        lane, name, at = self._lanes[event["pid"]], event["name"], microseconds(event["ts"])
        if lane.opened:
            pass
        elif lane.name != LIMIT.computing:
            self._requested(lane, name, at)
        elif name not in ("UPDATE", "EVALUATION") and lane.owner.updated:
            lane.owner.updated = False
            lane.owner.trace.steps.begins(at)
        lane.opened.append((name, at))

    def _requested(self, lane: _Lane, name: str, at: float) -> None:
        """A tensor is requested; the step is a new one if this one had the tensor."""
        if not name.startswith("NEGOTIATE"):
            return
        owner = lane.owner
        lane.began = at
        lane.asked = {}
        if owner.trace.form == "horovod":
            again = lane.name in owner.seen and not (lane.unnamed and owner.in_flight)
            if again or not owner.seen:
                owner.seen.clear()
                owner.trace.steps.begins(at)
            owner.seen.add(lane.name)
        owner.in_flight += 1

    def _asks(self, event: Event) -> None:
        number = int(event["name"])
        if 0 <= number < LIMIT.most_ranks:
            self._asked.add(number)
            self._lanes[event["pid"]].asked[number] = microseconds(event["ts"])

    def _marks(self, event: Event) -> None:
        if event["name"] == "CYCLE_START" and len(self._cycles) < LIMIT.cycles:
            self._cycles.append(microseconds(event["ts"]))

    def _ends(self, event: Event) -> None:
        lane, at = self._lanes[event["pid"]], microseconds(event["ts"])
        steps = lane.owner.trace.steps
        if not lane.opened:  # a timeline that was started within it
            return
        name, start = lane.opened.pop()
        if lane.name == LIMIT.computing:
            self._computed(lane.owner, name, start, at)
        elif name.startswith("NEGOTIATE"):
            phase = "negotiating" if lane.owner.trace.form == "horovod" else "queueing"
            steps.add(phase, lane.asked.get(lane.owner.trace.rank, start), at)
            self._waited(lane)
        elif not lane.opened:
            self._communicated(lane, name, at, event.get("args") or {})
        elif name.startswith(tuple(LIMIT.queues)):
            steps.add("queueing", start, at)
        elif name.startswith("MEMCPY"):
            steps.add("copying", start, at)
        else:
            steps.add("moving", start, at)
            lane.owner.trace.collectives.kinds[kind_of(lane.opened[0][0])].message(start, at)

    def _computed(self, owner: _Rank, name: str, start: float, end: float) -> None:
        owner.trace.steps.add("input" if name == LIMIT.input else "computing", start, end)
        owner.updated = owner.updated or name == "UPDATE"

    def _waited(self, lane: _Lane) -> None:
        """The ranks that had asked for a tensor waited for the one that asked last."""
        if len(lane.asked) > 1:
            lane.owner.named += 1
            last = max(lane.asked.values())
            for rank, asked in lane.asked.items():
                lane.owner.trace.steps.waits_for(rank, asked, last)

    def _communicated(self, lane: _Lane, name: str, end: float, arguments: Event) -> None:
        owner, kind = lane.owner, kind_of(name)
        if kind == "other":
            return
        owner.in_flight = max(owner.in_flight - 1, 0)
        owner.communicated += 1
        lane.known = True
        size = size_of(arguments.get("dtype"), arguments.get("shape"))
        began = lane.began if lane.began is not None else end
        owner.trace.collectives.kinds[kind].tensor(size)
        owner.trace.collectives.tensor(lane.name, size, end - began)
        owner.trace.steps.collective(size, end)

    def _not_asked(self, lanes: Iterable[_Lane]) -> tuple[int, ...]:
        """Return the ranks that had not asked for any of the tensors that others wait for at the end."""
        open_ones = (lane for lane in lanes if lane.known and lane.opened[0][0].startswith("NEG"))
        waiting = [set(lane.asked) for lane in open_ones if lane.asked]
        return tuple(sorted(self._asked.difference(*waiting))) if waiting else ()

    def _finished(self, owner: _Rank) -> RankTrace:
        trace = owner.trace
        mine = [lane for lane in self._lanes.values() if lane.owner is owner and lane.opened]
        trace.unfinished = tuple(f"{lane.opened[0][0]} of {lane.name}" for lane in mine if lane.known)
        trace.not_asked = self._not_asked(mine)
        trace.epoch_us, trace.begins_within = self._epoch_us, self._begins_within
        if trace.form == "horovod" and self._asked:
            trace.ranks = max(self._asked) + 1
            trace.names_ranks = owner.named > owner.communicated / 2
        trace.cycle_ms = _usual_cycle_ms(self._cycles)
        trace.steps.finish(None if mine else trace.steps.last)
        return trace


def _usual_cycle_ms(cycles: list[float]) -> float | None:
    """Return the median time between the marks of Horovod's cycles; None: there are too few."""
    between = [later - mark for mark, later in pairwise(cycles)]
    return median(between) / 1e3 if len(between) > 1 else None
