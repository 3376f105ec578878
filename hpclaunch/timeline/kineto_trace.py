"""Traces of torch.profiler (Kineto), in their Chrome form: one rank per file.

On GPUs a collective is the kernel of NCCL, RCCL or oneCCL, and computing is all other kernels; on CPUs a
collective is what gloo or MPI annotate on their worker threads, from when it is executed, and computing is
what other threads execute. Seen with torch 2.13; older ones differ in what ``distributedInfo`` holds.
"""

import math
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.timeline.rank_trace import Intervals, RankSteps, RankTrace, kind_of, size_of
from hpclaunch.timeline.trace_events import Event, microseconds

_FORM = package_patterns("timeline/forms.yaml", "kineto")
LIMIT = package_constants("timeline/limits.yaml", "kineto")


class _Collective(NamedTuple):
    kind: str
    start: float
    end: float
    size: int


class KinetoReader:
    """Gathers the events of one trace."""

    def __init__(self) -> None:
        self._threads: dict[object, Intervals] = {}
        """Thread -> what it executes."""
        self._workers: set[object] = set()
        """Threads that execute collectives."""
        self._annotated: list[_Collective] = []
        self._kernels = Intervals()
        self._on_the_device: list[_Collective] = []
        self._input = Intervals()
        self._updates: dict[str, list[float]] = {}
        self._steps: list[tuple[float, float]] = []
        self._first: float | None = None
        self._last = 0.0

    def read(self, events: Iterable[Event]) -> None:
        """Take the events; `finished` tells what they mean."""
        for event in events:
            if event.get("ph") != "X":
                continue
            try:
                name, start = event["name"], microseconds(event["ts"])
                end = start + microseconds(event.get("dur", 0.0))
                self._take(event, name, start, end)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # an event of another form: it is not ours to read

    def _take(self, event: Event, name: str, start: float, end: float) -> None:
        category = event.get("cat")
        if category in ("Trace", "gpu_user_annotation", "ac2g", "overhead", "cuda_runtime", "cuda_driver"):
            return
        self._first = start if self._first is None or start < self._first else self._first
        self._last = max(self._last, end)
        if category in LIMIT.device:
            self._executed(event, name, start, end)
        elif _FORM.step.fullmatch(name) and len(self._steps) < LIMIT.most_steps:
            self._steps.append((start, end))
        elif category == "user_annotation" and _FORM.collective.match(name):
            self._workers.add(event.get("tid"))
            self._annotated.append(_Collective(kind_of(name), start, end, 0))
        elif name.startswith(LIMIT.update):
            self._updates.setdefault(name, []).append(end)
            self._runs(event.get("tid"), start, end)
        elif name.startswith(LIMIT.input):
            self._input.add(start, end)
        elif category in ("cpu_op", "user_annotation"):
            self._runs(event.get("tid"), start, end)

    def _runs(self, thread: object, start: float, end: float) -> None:
        if thread not in self._threads:
            self._threads[thread] = Intervals()
        self._threads[thread].add(start, end)

    def _executed(self, event: Event, name: str, start: float, end: float) -> None:
        if not _FORM.kernel.search(name):
            self._kernels.add(start, end)
            return
        arguments = event.get("args") or {}
        kind = kind_of(str(arguments.get("Collective name") or name))
        elements = max(int(arguments.get("In msg nelems") or 0), int(arguments.get("Out msg nelems") or 0))
        self._on_the_device.append(_Collective(kind, start, end, size_of(arguments.get("dtype"), [elements])))

    def finished(self, rank: int, head: Event) -> RankTrace:
        """Return what the trace tells; ``head``: the keys before its events."""
        on_a_gpu = bool(len(self._kernels) or self._on_the_device)
        steps = RankSteps(LIMIT.on_a_gpu) if on_a_gpu else RankSteps()
        trace = RankTrace(rank, "kineto", steps)
        info = head.get("distributedInfo")
        if isinstance(info, dict) and isinstance(info.get("world_size"), int):
            trace.ranks = info["world_size"]
        trace.host = head["host_name"] if isinstance(head.get("host_name"), str) else None
        base = head.get("baseTimeNanoseconds")
        trace.epoch_us = base / 1e3 if isinstance(base, int) else 0.0
        found = self._on_the_device if on_a_gpu else self._annotated
        collectives = sorted(found, key=lambda each: each.end)
        edges = self._edges()
        waiting = iter(edges[:-1])
        edge = next(waiting, None)
        for at, phase, end, size in self._in_order_of_time(collectives, on_a_gpu=on_a_gpu):
            while edge is not None and edge <= at:
                steps.begins(edge)
                edge = next(waiting, None)
            if phase:
                steps.add(phase, at, end)
            else:
                steps.collective(size, end)
        steps.finish(edges[-1] if edges else None)
        updated = max((end for ends in self._updates.values() for end in ends), default=math.inf)
        if collectives and collectives[-1].start > updated:
            trace.unfinished = (collectives[-1].kind,)
        for each in sorted(collectives, key=lambda each: each.start):
            trace.collectives.kinds[each.kind].message(each.start, each.end)
            trace.collectives.kinds[each.kind].tensor(each.size)
        return trace

    def _in_order_of_time(
        self, collectives: list[_Collective], *, on_a_gpu: bool
    ) -> Iterator[tuple[float, str, float, int]]:
        """Yield (time, phase, end, 0) of each phase, and (end, "", end, bytes) of each collective."""
        threads = [each for thread, each in self._threads.items() if thread not in self._workers]
        phases = [("computing", each) for each in ([self._kernels] if on_a_gpu else threads)]
        phases.append(("input", self._input))
        begun = sorted(collectives, key=lambda each: each.start)
        return merge(
            ((each.end, "", each.end, each.size) for each in collectives),
            ((each.start, "moving", each.end, 0) for each in begun),
            *(_of_phase(name, intervals) for name, intervals in phases),
        )

    def _edges(self) -> list[float]:
        """Where steps begin and the last ends: the profiler's own, else after each update of an optimizer."""
        if len(self._steps) > 1:
            ordered = sorted(self._steps)
            return [*(start for start, _ in ordered), ordered[-1][1]]
        updates = max(self._updates.values(), key=len, default=[])
        return sorted({self._first or 0.0, *updates}) if updates else []


def _of_phase(name: str, intervals: Intervals) -> Iterator[tuple[float, str, float, int]]:
    for start, end in intervals.ordered():
        yield start, name, end, 0
