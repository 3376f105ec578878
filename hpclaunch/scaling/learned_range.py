"""The value and the 90 % range of a prediction from measured sizes, learned from published curves. Pure.

Next to the model there are a naive fit, a + b log2 p, and carrying the largest measured size on. How far the
three differ is the best sign of how far off each of them is. The logarithm of measured by predicted time has
the deviation sqrt(d^2 + floor^2 + (apart x s)^2): d of the calibrated parameters and of the repeats, s the
standard deviation of the three. ``learned_range.json`` has what ``benchmarks/ranges.py --learn`` found.
"""

import math
from collections.abc import Sequence
from statistics import pstdev

import msgspec

from hpclaunch.package_data import text_beside


class StepRange(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds with their range."""

    value: float
    low: float
    high: float


class Mixture(msgspec.Struct, frozen=True, kw_only=True):
    """Three predictions of the same step, in seconds."""

    model: float
    naive: float
    carry_on: float
    place: str
    deviation: float

    def logarithms(self) -> tuple[float, float, float]:
        """Return those of the three."""
        return math.log(self.model), math.log(self.naive), math.log(self.carry_on)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The best mixture of one kind of prediction; triples: model, naive fit, carrying on."""

    curves: int
    errors: tuple[float, float, float]
    shares: tuple[float, float, float]


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of ``learned_range.json``."""

    what: str
    curves: int
    sources: int
    predictions: int
    floor: float
    apart: float
    low: float
    high: float
    places: dict[str, Place]


LEARNED = msgspec.json.decode(text_beside(__file__, "learned_range.json"), type=Learned)


def place_of(gpus: int, largest: int, per_node: int | None) -> str:
    """Return where a size lies; ``largest``: the largest measured one."""
    if per_node is None or gpus <= per_node:
        return "in one node"
    return "leaving the node" if largest <= per_node else "beyond one node"


def naive_fit(sizes: Sequence[int], seconds: Sequence[float], gpus: float) -> float:
    """Return a + b log2 p by relative least squares, at least a fifth of the last time."""
    weights, logs = [1 / s**2 for s in seconds], [math.log2(p) for p in sizes]
    x = sum(w * log for w, log in zip(weights, logs, strict=True)) / sum(weights)
    y = sum(w * s for w, s in zip(weights, seconds, strict=True)) / sum(weights)
    sides = [(w * (log - x), log - x, s - y) for w, log, s in zip(weights, logs, seconds, strict=True)]
    slope = sum(w * rise for w, _, rise in sides) / sum(w * run for w, run, _ in sides)
    return max(y + slope * (math.log2(gpus) - x), seconds[-1] / 5)


def learned_range(mixture: Mixture, learned: Learned = LEARNED) -> StepRange:
    """Return the mixture and its range."""
    logs = mixture.logarithms()
    middle = sum(share * log for share, log in zip(learned.places[mixture.place].shares, logs, strict=True))
    return range_about(middle, logs, mixture.deviation, learned)


def range_about(
    middle: float, logs: Sequence[float], deviation: float, learned: Learned = LEARNED
) -> StepRange:
    """Return the range about a value; all of it, and of the predictions that stand for it, as logarithms."""
    wide = math.hypot(deviation, learned.floor, learned.apart * pstdev(logs))
    low, high = (math.exp(middle + times * wide) for times in (learned.low, learned.high))
    return StepRange(value=math.exp(middle), low=low, high=high)


def place_text(name: str) -> str:
    """Return how the value was chosen for predictions of this kind."""
    place = LEARNED.places[name]
    model, naive, carried = (f"{error:.1%}" for error in place.errors)
    parts = zip(place.shares, ("the model", "the naive fit", "carrying on"), strict=True)
    mixture = " and ".join(f"{share:.0%} {what}" for share, what in parts if share)
    better = place.errors[0] <= min(place.errors[1:])
    verdict = "the model is best" if better else "the model is not better"
    return (
        f"{name}: {verdict} on {place.curves} published curves, {model} off (naive fit a + b log2 p {naive}, "
        f"carrying on {carried}); the step is {mixture}"
    )
