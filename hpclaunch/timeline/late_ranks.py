"""Which rank is late, by how long the ranks wait: the one that waits least keeps the other ranks waiting.

The questions, their error rates and the sources are in docs/explanation/timelines.md, "The derivation".
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from hpclaunch.package_data import package_constants

LIMIT = package_constants("timeline/limits.yaml", "late_ranks")
LEAST_STEPS = 3


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
    stride = max(1, len(ranks) * count // LIMIT.most_values)
    late: dict[int, list[float]] = {rank: [] for rank in ranks}
    for step in range(0, count, stride):
        ordered = sorted((waits[rank][step], rank) for rank in ranks)
        values = [value for value, _ in ordered]
        for place, (value, rank) in enumerate(ordered):
            late[rank].append(_median_without(values, place) - value)
    return late


def _median_without(values: list[float], place: int) -> float:
    left = len(values) - 1

    def at(number: int) -> float:
        return values[number if number < place else number + 1]

    return at(left // 2) if left % 2 else (at(left // 2 - 1) + at(left // 2)) / 2


def late_ranks(waits: Mapping[int, Sequence[float]], floor: float) -> list[Lateness]:
    """Return the late ranks, the costliest first; ``floor``: what is worth a word, in the times' unit."""
    if len(waits) < 2 or len(next(iter(waits.values()), ())) < LEAST_STEPS:
        return []
    late = lateness_by_rank(waits)
    noise = common_noise(late)
    found = _mostly_late(waits, late, noise, floor)
    known = {each.rank for each in found}
    left = {rank: values for rank, values in waits.items() if rank not in known}
    if len(left) > 1:
        found += _sometimes_late(lateness_by_rank(left), noise, floor)
    return sorted(
        (one for one in found if one.lost_ms > LIMIT.least_loss * floor), key=lambda one: -one.lost_ms
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
        low, high = (
            _interval(values) if chance < LIMIT.chance_clear and median(values) > floor else (0.0, 0.0)
        )
        if low <= (floor if chance < LIMIT.chance_most else max(floor, LIMIT.clear * noise)):
            break
        over = sum(value > floor for value in values)
        each = Lateness(rank, len(values), over, median(values), noise, (low, high))
        found.append(replace(each, grows_ms=growth(values, floor)))
        del left[rank]
    return found


def _who_is_last(late: Mapping[int, Sequence[float]]) -> list[int]:
    ranks = list(late)
    return [max(ranks, key=lambda rank: late[rank][step]) for step in range(len(late[ranks[0]]))]


def _sign_test(signs: Sequence[bool], probability: float) -> float:
    """Return the probability of as many signs by chance, where neighbouring ones may depend on each other."""
    count, share = len(signs), sum(signs) / len(signs)
    middle = (count - 1) / 2
    slope = sum((step - middle) * sign for step, sign in enumerate(signs)) / (count * (count**2 - 1) / 12)
    rest = [sign - share - slope * (step - middle) for step, sign in enumerate(signs)]
    together, alone = sum(a * b for a, b in pairwise(rest)), sum(a * a for a in rest)
    lag = min(max(together / alone, 0.0), 0.9) if alone > 1e-9 else 0.0
    steps = max(1, round(count * (1 - lag) / (1 + lag)))
    return at_least(round(share * steps), steps, probability)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median: blocks of neighbouring steps are drawn, always the same ones."""
    taken = values[:: max(1, -(-len(values) // LIMIT.most_drawn))]
    size = max(1, round(len(taken) ** (1 / 3)))
    draw = random.Random(0)  # noqa: S311  # the same answer for the same file
    medians = []
    for _ in range(LIMIT.draws):
        drawn: list[float] = []
        while len(drawn) < len(taken):
            start = draw.randrange(len(taken) - size + 1)
            drawn += taken[start : start + size]
        medians.append(median(drawn))
    medians.sort()
    outside = int(LIMIT.outside * LIMIT.draws)
    return medians[outside], medians[-1 - outside]


def growth(values: Sequence[float], floor: float, times: float = LIMIT.grows) -> tuple[float, float] | None:
    """Return the first and the last third's median, where the values grow by more than ``floor``."""
    third = len(values) // 3
    if third < LEAST_STEPS:
        return None
    parts = [median(values[at : at + third]) for at in (0, third, len(values) - third)]
    grows = parts[0] <= parts[1] <= parts[2] and parts[2] > times * max(parts[0], 0.0)
    return (parts[0], parts[2]) if grows and parts[2] - parts[0] > floor else None


def _sometimes_late(late: Mapping[int, list[float]], noise: float, floor: float) -> list[Lateness]:
    """Return the ranks that are late in some of the steps."""
    last = _who_is_last(late)
    size = [late[rank][step] for step, rank in enumerate(last)]
    moments = sorted(_moments(last, size, floor), reverse=True)[: LIMIT.most_moments]
    if not moments:
        return []
    rank = max(late, key=lambda rank: sum(cost for cost, whose in moments if whose == rank))
    by_rank = _share_test(moments, rank, len(late))
    count, by_size = long_ones(size)
    least = sorted(size, reverse=True)[count]
    over, long = (_steps_of(rank, last, size, above) for above in (floor, max(floor, least)))
    every, by_time = _period(long, len(size))
    chance = 2 * min(by_rank, _fisher(by_rank, min(1.0, 2 * min(by_size, by_time))))
    if chance > LIMIT.chance_some or min(by_rank, _fisher(by_rank, by_time)) > LIMIT.chance_pauses:
        return []
    over = long if min(by_size, by_time) < LIMIT.chance_pauses else over
    every = every if by_time < LIMIT.chance_pauses else None
    return [Lateness(rank, len(size), len(over), median(size[step] for step in over), noise, every=every)]


def _steps_of(rank: int, last: Sequence[int], size: Sequence[float], above: float) -> list[int]:
    return [step for step, value in enumerate(size) if last[step] == rank and value > above]


def _moments(last: Sequence[int], size: Sequence[float], floor: float) -> list[tuple[float, int]]:
    """Return what each late moment costs, and whose it is; of one rank, steps one after the other are one."""
    found: list[tuple[float, int]] = []
    goes_on = False
    for rank, value in zip(last, size, strict=True):
        if value > floor and goes_on and found[-1][1] == rank:
            found[-1] = (found[-1][0] + value, rank)
        elif value > floor:
            found.append((value, rank))
        goes_on = value > floor
    return found


def _share_test(moments: Sequence[tuple[float, int]], rank: int, ranks: int) -> float:
    """Return the probability that chance gives any of the ranks as much of the moments' time as this one has.

    Times are rounded to parts of their sum, in the statistic as in its distribution, which stays exact.
    """
    whole = sum(cost for cost, _ in moments) / max(LIMIT.parts, 4 * len(moments))
    parts = [(round(cost / whole), whose) for cost, whose in moments]
    mine = sum(part for part, whose in parts if whose == rank)
    chances = [1.0] + [0.0] * sum(part for part, _ in parts)
    for part, _ in parts:
        if part:
            moved = [0.0] * part + chances[:-part]
            chances = [a + (b - a) / ranks for a, b in zip(chances, moved, strict=True)]
    return min(1.0, ranks * math.fsum(chances[mine:]))


def long_ones(values: Sequence[float]) -> tuple[int, float]:
    """Return how many values are above the widest gap, and the probability of a gap that wide for its place.

    In a sample of a power law (Lomax), j x ln((X_j + c) / (X_(j+1) + c)) of the j-th largest values are
    independent and exponential with one mean (Renyi), so that one of them, over the sum of m below it,
    exceeds x with the probability (1 + x)^-m: the test of Pisarenko and Sornette (Eur. Phys. J. Special
    Topics 205, 2012) for outliers of power laws. The scale c is the median, as in a law without a mean;
    lighter tails, such as those of exponential delays, have smaller gaps. The m are those of the larger half.
    Multiplied by the places where the widest gap may be.
    """
    ordered = sorted((value for value in values if value > 0), reverse=True)[: len(values) // 2 + 1]
    places = range(LEAST_STEPS, len(ordered) - LEAST_STEPS)
    if not places:
        return 0, 1.0
    at = max(places, key=lambda place: ordered[place - 1] - ordered[place])
    logs = [math.log(value + ordered[-1]) for value in ordered]
    below = sum(logs[at + 1 : -1]) + (at + 1) * logs[at] - (len(logs) - 1) * logs[-1]
    wide = at * (logs[at - 1] - logs[at])
    chance = math.exp((at + 1 - len(logs)) * math.log1p(wide / below)) if below > 0 else 0.0
    return at, min(1.0, len(places) * chance)


def _fisher(one: float, other: float) -> float:
    product = one * other
    return product * (1 - math.log(product)) if product > 0 else 0.0


def _period(steps: Sequence[int], count: int) -> tuple[int | None, float]:
    """Return the distance at which steps come over the whole run, and the chance of as many of them there.

    The chance is hypergeometric: of all ways to choose this many of ``count`` steps, those with as many in
    the places of one distance and first step, multiplied by the distances and first steps.
    """
    if len(steps) < LEAST_STEPS:
        return None, 1.0
    distance = round(median(b - a for a, b in pairwise(steps)))
    first, hits = Counter(step % max(distance, 1) for step in steps).most_common(1)[0]
    places = range(first, count, max(distance, 1))
    if distance < 2 or len(places) < LEAST_STEPS:
        return None, 1.0
    most = min(len(steps), len(places))
    ways = [
        _log_ways(len(places), k) + _log_ways(count - len(places), len(steps) - k)
        for k in range(hits, most + 1)
    ]
    total = _log_ways(count, len(steps))
    tried = (count // LEAST_STEPS) ** 2 / 2
    return distance, min(1.0, tried * math.fsum(math.exp(way - total) for way in ways))


def _log_ways(count: int, chosen: int) -> float:
    if chosen > count:
        return -math.inf
    return math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)


def common_noise(late: Mapping[int, Sequence[float]]) -> float:
    """Return the noise of all ranks' lateness."""
    return median(map(deviation, late.values()))


def hidden_lateness(waits: Sequence[float], floor: float, ranks: int, step: float) -> Lateness | None:
    """Return the lateness of a rank that the trace does not name, from how long the ranks wait per step.

    There is nothing to compare with: the waiting must be half of a ``step``, for one rank or another, or far
    above its own noise, in most steps or in long ones that the tail of the other steps does not explain. The
    last of many equal ranks is always late: the range of n normal values is near 2 sqrt(2 ln n), and its
    deviation pi / sqrt(6 ln n) at most (Gumbel; Cramer, Mathematical Methods of Statistics, 28.6), so that
    the range is 2.2 ln n times its deviation; once the deviation is added.
    """
    steps = len(waits)
    if steps < 2 * LEAST_STEPS:
        return None
    grows = growth(waits, floor)
    slope = (grows[1] - grows[0]) / (2 * steps / 3) if grows else 0.0
    typical, noise = median(waits), deviation([value - slope * step for step, value in enumerate(waits)])
    if typical >= max(min((1 + 2.2 * math.log(max(ranks, 2))) * noise, step / 2), floor):
        over = sum(value > max(typical / 2, floor) for value in waits)
        return Lateness(None, steps, over, typical, noise, grows_ms=grows)
    count, by_size = long_ones(waits)
    least = max(sorted(waits, reverse=True)[count], floor)
    long = [step for step, value in enumerate(waits) if value > least]
    every, by_time = _period(long, steps)
    if 2 * min(by_size, by_time) > LIMIT.chance_some or len(long) < LEAST_STEPS:
        return None
    every = every if by_time < LIMIT.chance_pauses else None
    return Lateness(None, steps, len(long), median(waits[step] for step in long), noise, every=every)


def deviation(values: Sequence[float]) -> float:
    """Return the spread around the median, as a standard deviation."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def at_least(successes: int, trials: int, probability: float) -> float:
    """Return the probability of at least this many successes (binomial)."""
    if probability <= 0:
        return 0.0
    if probability >= 1:
        return 1.0
    logs = [
        _log_ways(trials, k) + k * math.log(probability) + (trials - k) * math.log1p(-probability)
        for k in range(successes, trials + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, logs)))
