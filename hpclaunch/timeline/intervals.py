"""Intervals of time, in microseconds: what overlaps or touches is one."""

from array import array
from collections.abc import Iterable, Iterator

Interval = tuple[float, float]


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
        """Yield the intervals in the order of their starts; they may overlap. Nothing else is held in
        memory."""
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
