"""Which rank is late, by how long the ranks wait: the one that waits least keeps the other ranks waiting.

Two things are needed before a rank is named, so that the noise of a machine names none:

- an effect above the noise: the rank's lateness, which is by how much it comes after the median of the other
  ranks, is in the median of all steps above ``ALWAYS`` times the noise, or in some steps above ``SOMETIMES``
  times the noise; and above a floor in both cases;
- recurrence: of the late moments of all ranks it has more than chance, which prefers no rank, would give it
  with a probability of ``CHANCE``. Of a rank that is late in some steps only, late
  steps one after the other count once, because a busy machine disturbs a rank for a while; and the
  probability must be below ``CHANCE_SOMETIMES``, unless the rank is late by nearly the same time in each.

The noise is the same for all ranks: the median over the ranks of the spread of a rank's lateness from step to
step (1.4826 x the median absolute deviation, which is the standard deviation of a normal distribution). Where
the lateness has two separate levels, as for a rank that is slow in each tenth step, it is the spread within
the levels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

ALWAYS = 2.0
SOMETIMES = 3.0
CHANCE = 0.01
CHANCE_SOMETIMES = 0.001
ALIKE = 0.2
"""Late steps are alike if they differ by less than this part of the lateness (standard deviation)."""
LEAST_SHARE = 0.04
"""Of steps; a rank that is late in fewer is not named."""
LEAST_STEPS = 3
LEAST_LOSS = 0.2
"""Of the floor: what a rank's lateness costs per step, on average."""
LEVELS_APART = 5.0
"""Two levels are separate if their medians differ by this many times the spread within them."""
STEPS_OF_LEVELS = 20
"""Steps from which two levels are taken for more than noise."""
HIDDEN_SHARE = 0.8
"""Of steps in which rank 0 waits for a rank that the trace does not name."""
HIDDEN_STEPS = 6
HIDDEN_LEVEL_STEPS = 5
HIDDEN_APART = 10.0
"""How many times their spread two levels of such waiting must be apart."""
_MOST_VALUES = 400_000
"""Ranks x steps that are compared; of more, every n-th step is."""


@dataclass(frozen=True)
class Lateness:
    """A rank that is late, or with rank None: one that is not named in the trace."""

    rank: int | None
    steps: int
    """Steps that were compared."""
    late_steps: int
    late_ms: float
    """By how much, the median of the late steps."""
    noise_ms: float
    chance: float
    """The probability that chance gives this rank as many late steps."""

    @property
    def share(self) -> float:
        """Late steps / steps."""
        return self.late_steps / self.steps

    @property
    def lost_ms(self) -> float:
        """Per step, on average."""
        return self.share * self.late_ms


def lateness_by_rank(waits: Mapping[int, Sequence[float]]) -> dict[int, list[float]]:
    """Return per rank and step how much later it came than the median of the other ranks (negative: earlier).

    ``waits``: rank -> waiting time per step; all of the same length, at least two ranks.
    """
    ranks = list(waits)
    count = len(waits[ranks[0]])
    stride = max(1, len(ranks) * count // _MOST_VALUES)
    late: dict[int, list[float]] = {rank: [] for rank in ranks}
    for step in range(0, count, stride):
        ordered = sorted((waits[rank][step], rank) for rank in ranks)
        values = [value for value, _ in ordered]
        for place, (value, rank) in enumerate(ordered):
            late[rank].append(_median_without(values, place) - value)
    return late


def _median_without(values: list[float], place: int) -> float:
    """Return the median of sorted values without the one at a place."""
    left = len(values) - 1

    def at(number: int) -> float:
        return values[number if number < place else number + 1]

    return at(left // 2) if left % 2 else (at(left // 2 - 1) + at(left // 2)) / 2


def late_ranks(waits: Mapping[int, Sequence[float]], floor: float) -> list[Lateness]:
    """Return the ranks that are late, that which costs most first.

    ``floor``: what is worth a word, in the unit of the waiting times.
    """
    if len(waits) < 2 or len(next(iter(waits.values()), ())) < LEAST_STEPS:
        return []
    late = lateness_by_rank(waits)
    noise = common_noise(late)
    found = _always_late(late, noise, floor)
    known = {each.rank for each in found}
    found += [each for each in _sometimes_late(late, noise, floor) if each.rank not in known]
    return sorted(
        (each for each in found if each.lost_ms > LEAST_LOSS * floor), key=lambda each: -each.lost_ms
    )


def _always_late(late: Mapping[int, list[float]], noise: float, floor: float) -> list[Lateness]:
    """Return the ranks whose median step is late."""
    threshold, found = max(noise, floor), []
    counts = {rank: sum(value > threshold for value in values) for rank, values in late.items()}
    for rank, values in late.items():
        chance = at_least(counts[rank], sum(counts.values()), 1 / len(late)) * len(late)
        typical = median(values)
        if typical > max(ALWAYS * noise, floor) and chance < CHANCE:
            found.append(Lateness(rank, len(values), counts[rank], typical, noise, chance))
    return found


def _sometimes_late(late: Mapping[int, list[float]], noise: float, floor: float) -> list[Lateness]:
    """Return the ranks that are late in some of the steps."""
    threshold, found = max(SOMETIMES * noise, floor), []
    over = {rank: [value for value in values if value > threshold] for rank, values in late.items()}
    moments = {rank: _moments(values, threshold) for rank, values in late.items()}
    for rank, values in over.items():
        steps = len(late[rank])
        if len(values) < max(LEAST_STEPS, LEAST_SHARE * steps):
            continue
        typical = median(values)
        alike = deviation(values) < ALIKE * typical and typical > LEVELS_APART * noise
        chance = at_least(moments[rank], sum(moments.values()), 1 / len(late)) * len(late)
        if chance < (CHANCE if alike else CHANCE_SOMETIMES):
            found.append(Lateness(rank, steps, len(values), typical, noise, chance))
    return found


def _moments(values: Sequence[float], threshold: float) -> int:
    """Return how often values rise above a threshold."""
    above = [False, *(value > threshold for value in values)]
    return sum(after and not before for before, after in pairwise(above))


def common_noise(late: Mapping[int, Sequence[float]]) -> float:
    """Return the noise of all ranks' lateness."""
    by_levels = [two_levels(values) for values in late.values()]
    separate = [level for level in by_levels if level is not None]
    usual = median(deviation(values) for values in late.values())
    return min(usual, median(separate)) if len(late) < 4 and separate else usual


def hidden_lateness(waits: Sequence[float], floor: float, ranks: int) -> Lateness | None:
    """Return the lateness of a rank that the trace does not name, from how long one rank waits per step.

    There is nothing to compare with: the waiting must be in nearly all steps, and far above its own noise.
    The last of many equal ranks is always late: of normal noise by sqrt(2 ln ranks) standard deviations,
    which is added.
    """
    steps = len(waits)
    if steps < HIDDEN_STEPS:
        return None
    typical, noise = median(waits), deviation(waits)
    over = [value for value in waits if value > max(typical / 2, floor)]
    apart = SOMETIMES + math.sqrt(2 * math.log(max(ranks, 2)))
    if len(over) >= HIDDEN_SHARE * steps and typical >= max(apart * noise, floor):
        return Lateness(None, steps, len(over), typical, noise, 0.0)
    return _hidden_level(waits, floor)


def _hidden_level(waits: Sequence[float], floor: float) -> Lateness | None:
    """Return a lateness in some of the steps, all of about the same length and far above the other steps."""
    within = two_levels(waits)
    if within is None:
        return None
    ordered = sorted(waits)
    gap, high = max((b - a, number) for number, (a, b) in enumerate(pairwise(ordered), 1))
    late = ordered[high:]
    typical = median(late)
    enough = len(late) >= max(HIDDEN_LEVEL_STEPS, 2 * LEAST_SHARE * len(waits))
    alike = max(deviation(late), within) * HIDDEN_APART < typical - median(ordered[:high])
    if not enough or not alike or typical < floor or gap < typical / 2:
        return None
    return Lateness(None, len(waits), len(late), typical, within, 0.0)


def deviation(values: Sequence[float]) -> float:
    """Return the spread around the median, as a standard deviation."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def spread(values: Sequence[float]) -> float:
    """Return the noise of values: the spread around their median, or within two levels where there are
    two."""
    levels = two_levels(values)
    return deviation(values) if levels is None else levels


def two_levels(values: Sequence[float]) -> float | None:
    """Return the spread within two levels if the values have two separate ones.

    They are divided where the variance between the two parts is largest (Otsu); each needs `LEAST_STEPS`
    values.
    """
    ordered = sorted(values)
    count, total = len(ordered), sum(ordered)
    if count < STEPS_OF_LEVELS:
        return None
    best, at, below = 0.0, 0, 0.0
    for number, value in enumerate(ordered[:-1], 1):
        below += value
        apart = below / number - (total - below) / (count - number)
        if number >= LEAST_STEPS and count - number >= LEAST_STEPS:
            between = number * (count - number) * apart * apart
            if between > best:
                best, at = between, number
    if not at:
        return None
    low, high = ordered[:at], ordered[at:]
    medians = median(low), median(high)
    within = max(deviation(low), deviation(high))
    return within if medians[1] - medians[0] > LEVELS_APART * within else None


def at_least(successes: int, trials: int, probability: float) -> float:
    """Return the probability of at least this many successes (binomial)."""
    if probability <= 0:
        return 0.0
    if probability >= 1:
        return 1.0
    logs = [
        math.lgamma(trials + 1)
        - math.lgamma(k + 1)
        - math.lgamma(trials - k + 1)
        + k * math.log(probability)
        + (trials - k) * math.log1p(-probability)
        for k in range(successes, trials + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, logs)))
