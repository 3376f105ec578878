"""Which rank is late, by how long the ranks wait: the one that waits least keeps the other ranks waiting.

A rank's lateness in a step is by how much it comes after the median of the other ranks. It is named

- as late in most steps, if it comes last in more steps than chance, which prefers no rank, would give it
  (a sign test), and its median lateness is above a floor at any place of its interval, by the bootstrap;
- as late in some steps, if of the late moments of all ranks it has more than chance would give it. Looked at
  are moments above several multiples of the noise. Where its late steps come at equal distances, the chance
  of that counts, too: each 10th step is a checkpoint, not a busy machine.

Every probability is multiplied by the ranks, and by the multiples, that were looked at, and must be below
``CHANCE``, or below ``CHANCE_CLEAR`` where the lateness is far above the noise. Steps one after the other
are not independent on a busy machine, which disturbs a rank for a while: the sign test counts fewer steps
where the last rank of a step is often that of the step before (by the autocorrelation at lag 1, von Storch
and Zwiers, Statistical Analysis in Climate Research, 6.6), the bootstrap draws blocks of neighbouring steps
(Kunsch 1989), and late steps one after the other are one moment.

The noise is the median over the ranks of the spread of a rank's lateness (1.4826 x the median absolute
deviation, which is the standard deviation of a normal distribution), or within two levels where the lateness
has two. It is printed, and no rule for a rank late in most steps depends on it.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

CHANCE = 0.001
MULTIPLES = (3.0, 5.0, 10.0)
"""Of the noise, above which moments are late."""
LEAST_SHARE = 0.04
"""Of steps; a rank that is late in fewer is not named."""
LEAST_STEPS = 3
LEAST_LOSS = 0.2
"""Of the floor: what a rank's lateness costs per step, on average."""
ALIKE = 0.2
"""Late steps are alike if they differ by less than this part of the lateness (standard deviation)."""
CHANCE_CLEAR = 0.01
"""Of a rank whose lateness is above ``LEVELS_APART`` times the noise, and alike in its late steps."""
DRAWS = 400
"""Of the bootstrap."""
OUTSIDE = 0.025
"""Of the draws, below and above the interval each."""
GROWS = 1.5
"""Times: the lateness of the last third of the steps against the first third."""
LEVELS_APART = 5.0
"""Two levels are separate if their medians differ by this many times the spread within them."""
STEPS_OF_LEVELS = 20
"""Steps from which two levels are taken for more than noise."""
APART = 3.0
"""How many times its noise the waiting for a rank that the trace does not name must be."""
HIDDEN_SHARE = 0.8
"""Of steps in which rank 0 waits for a rank that the trace does not name."""
HIDDEN_STEPS = 6
HIDDEN_LEVEL_STEPS = 5
HIDDEN_APART = 10.0
"""How many times their spread two levels of such waiting must be apart."""
_MOST_VALUES = 400_000
"""Ranks x steps that are compared; of more, every n-th step is."""
_MOST_DRAWN = 1000
"""Steps of which the bootstrap draws; of more, every n-th one is taken."""


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
    interval_ms: tuple[float, float] | None = None
    """Of the median lateness, of a rank that is late in most steps."""
    every: int | None = None
    """Steps from one late step to the next, where they come at equal distances."""
    grows_ms: tuple[float, float] | None = None
    """The median lateness of the first and of the last third of the steps, where it grows."""

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
    found = _mostly_late(waits, late, noise, floor)
    known = {each.rank for each in found}
    found += [each for each in _sometimes_late(late, noise, floor) if each.rank not in known]
    return sorted(
        (each for each in found if each.lost_ms > LEAST_LOSS * floor), key=lambda each: -each.lost_ms
    )


def _mostly_late(
    waits: Mapping[int, Sequence[float]], late: Mapping[int, list[float]], noise: float, floor: float
) -> list[Lateness]:
    """Return the ranks that come last in most steps; of the ranks without those, again."""
    found: list[Lateness] = []
    left = dict(waits)
    while len(left) > 1:
        last = _who_is_last(lateness_by_rank(left))
        chances = {rank: _sign_test([each == rank for each in last], 1 / len(left)) for rank in left}
        rank = min(left, key=lambda rank: chances[rank])
        values, chance = late[rank], chances[rank] * len(late)
        low, high = _interval(values) if chance < CHANCE_CLEAR and median(values) > floor else (0.0, 0.0)
        if low <= floor or (chance > CHANCE and low <= LEVELS_APART * noise):
            break
        over = sum(value > floor for value in values)
        each = Lateness(rank, len(values), over, median(values), noise, chance, (low, high))
        found.append(replace(each, grows_ms=_growth(values, floor)))
        del left[rank]
    return found


def _who_is_last(late: Mapping[int, Sequence[float]]) -> list[int]:
    """Return the rank that comes last in each step."""
    ranks = list(late)
    return [max(ranks, key=lambda rank: late[rank][step]) for step in range(len(late[ranks[0]]))]


def _sign_test(signs: Sequence[bool], probability: float) -> float:
    """Return the probability of as many signs by chance, where neighbouring ones may depend on each other."""
    share = sum(signs) / len(signs)
    spread_of_signs = share * (1 - share)
    lag = 0.0
    if spread_of_signs:
        together = sum((a - share) * (b - share) for a, b in pairwise(signs)) / len(signs)
        lag = min(max(together / spread_of_signs, 0.0), 0.9)
    steps = max(1, round(len(signs) * (1 - lag) / (1 + lag)))
    return at_least(round(share * steps), steps, probability)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median: blocks of neighbouring steps are drawn, always the same ones."""
    taken = values[:: max(1, -(-len(values) // _MOST_DRAWN))]
    size = max(1, round(len(taken) ** (1 / 3)))
    draw = random.Random(0)  # noqa: S311  # the same answer for the same file
    medians = []
    for _ in range(DRAWS):
        drawn: list[float] = []
        while len(drawn) < len(taken):
            start = draw.randrange(len(taken) - size + 1)
            drawn += taken[start : start + size]
        medians.append(median(drawn))
    medians.sort()
    outside = int(OUTSIDE * DRAWS)
    return medians[outside], medians[-1 - outside]


def _growth(values: Sequence[float], floor: float) -> tuple[float, float] | None:
    """Return the lateness of the first and of the last third of the steps, where it grows."""
    third = len(values) // 3
    if third < LEAST_STEPS:
        return None
    parts = [median(values[at : at + third]) for at in (0, third, len(values) - third)]
    grows = parts[0] <= parts[1] <= parts[2] and parts[2] > GROWS * max(parts[0], 0.0)
    return (parts[0], parts[2]) if grows and parts[2] - parts[0] > floor else None


def _sometimes_late(late: Mapping[int, list[float]], noise: float, floor: float) -> list[Lateness]:
    """Return the ranks that are late in some of the steps, each with the least likely of its findings."""
    best: dict[int, Lateness] = {}
    for multiple in MULTIPLES:
        threshold = max(multiple * noise, floor)
        moments = sum(_moments(values, threshold) for values in late.values())
        for rank, values in late.items():
            by_moments = at_least(_moments(values, threshold), moments, 1 / len(late))
            each = _late_above(rank, values, threshold, noise, by_moments * len(late) * len(MULTIPLES))
            if each and (rank not in best or each.chance < best[rank].chance):
                best[rank] = each
    return list(best.values())


def _late_above(
    rank: int, values: Sequence[float], threshold: float, noise: float, chance: float
) -> Lateness | None:
    """Return the lateness of a rank in the steps above a threshold, None where chance would give it.

    ``chance``: of as many late moments, whenever they come.
    """
    over = [step for step, value in enumerate(values) if value > threshold]
    if len(over) < max(LEAST_STEPS, LEAST_SHARE * len(values)):
        return None
    typical = median(values[step] for step in over)
    alike = deviation([values[step] for step in over]) < ALIKE * typical > LEVELS_APART * noise
    every, by_distance = _period(over, len(values))
    chance *= by_distance
    if chance > (CHANCE_CLEAR if alike else CHANCE):
        return None
    return Lateness(rank, len(values), len(over), typical, noise, chance, every=every)


def _period(steps: Sequence[int], count: int) -> tuple[int | None, float]:
    """Return the distance of steps that come at equal distances over the whole run, and the chance of that.

    Of all ways to choose this many of ``count`` steps, those at equal distances are few.
    """
    distances = {after - before for before, after in pairwise(steps)}
    if len(distances) != 1 or len(steps) < LEAST_STEPS:
        return None, 1.0
    (distance,) = distances
    whole = steps[0] - distance < 0 and steps[-1] + distance >= count
    if distance < 2 or not whole:
        return None, 1.0
    ways = count * (count - 1) // 2  # a distance, and a first step before it
    return distance, min(1.0, ways / math.comb(count, len(steps)))


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
    apart = APART + math.sqrt(2 * math.log(max(ranks, 2)))
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
