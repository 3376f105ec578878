"""Parameters from a few measured sizes: what these cannot determine keeps its value and its origin. Pure.

A step is a sum of seven terms: computation, latency and bandwidth within and between nodes, waiting for the
slowest rank, and growth by log2 p. Each has a factor, 1 by the parameters' origins with their uncertainty,
that of the growth 0. The factors that fit best to both, the measured sizes and the origins, are found, none
negative. A factor whose uncertainty the measurement did not reduce stays 1.
"""

import math
import operator
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec

from hpclaunch.package_data import package_constants

Rows = Sequence[Sequence[float]]

LIMIT = package_constants("scaling/constants.yaml", "calibration")
TERMS: dict[str, str] = LIMIT.terms
_ORIGIN = (1.0,) * 6 + (0.0,)
"""Factors by the origins: nothing is known to grow."""

Matrix = list[list[float]]


class Solution(NamedTuple):
    """The parameters, and how exactly they are known if each row has a standard deviation of 1."""

    parameters: tuple[float, ...]
    error: float
    """Sum of the squared differences of the rows."""
    free: tuple[int, ...]
    """Numbers of the parameters above zero; the rest were held at zero."""
    covariance: tuple[tuple[float, ...], ...]
    """Of the free parameters, zero elsewhere."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Factors of the terms, and how well they are known."""

    factors: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    determined: tuple[bool, ...]
    errors: tuple[float, ...] = ()

    def seconds(self, terms: Sequence[float]) -> float:
        """Return the seconds of a step with these terms."""
        return sum(factor * term for factor, term in zip(self.factors, terms, strict=True))

    def deviation(self, terms: Sequence[float]) -> float:
        """Return the relative standard deviation of that, as far as it is known from the factors."""
        return math.sqrt(variance(terms, self.covariance)) / self.seconds(terms)


def variance(row: Sequence[float], covariance: Rows) -> float:
    """Return the variance of ``row`` times the parameters."""
    n = range(len(row))
    return max(0.0, sum(row[i] * covariance[i][j] * row[j] for i in n for j in n))


def not_calibrated(uncertainties: Sequence[float]) -> Calibration:
    """Return factors of 1 with the uncertainties of the parameters' origins."""
    n = range(len(uncertainties))
    return Calibration(
        factors=_ORIGIN[: len(n)],
        covariance=tuple(tuple(uncertainties[i] ** 2 if i == j else 0.0 for j in n) for i in n),
        determined=tuple(False for _ in n),
    )


def calibrate(
    terms: Rows, seconds: Sequence[float], uncertainties: Sequence[float], repeats: float = 0.0
) -> Calibration:
    """Return the factors for measured seconds; ``terms``: of each size, ``repeats``: their deviation.

    Where the origins are so far off that no factors near them give the measured times, the uncertainties of
    the terms in them are doubled until the measured sizes are neither too high nor too low on average.
    """
    before = [max(uncertainty, LIMIT.floor) for uncertainty in uncertainties]
    for _ in range(LIMIT.doublings):
        errors = _errors(
            terms, seconds, _all_free(terms, seconds, before, max(LIMIT.noise, repeats)).parameters
        )
        deviation = _root_mean_square(errors)
        noise = max(LIMIT.noise, repeats, deviation)
        free = _all_free(terms, seconds, before, noise)  # the origins count more where sizes scatter
        if not (_biased(errors) or _biased(_errors(terms, seconds, free.parameters))):
            break
        measured = [any(size[i] for size in terms) for i in range(len(before))]
        before = [2 * wide if seen else wide for wide, seen in zip(before, measured, strict=True)]
    factors, determined = _only_determined(terms, seconds, before, noise, free)
    errors = _errors(terms, seconds, factors)
    if _root_mean_square(errors) > deviation + LIMIT.noise:  # not without the rest
        factors = free.parameters
        determined = tuple(any(size[i] for size in terms) for i in range(len(before)))
        errors = _errors(terms, seconds, factors)
    return Calibration(
        factors=tuple(factors), covariance=free.covariance, determined=tuple(determined), errors=tuple(errors)
    )


def _biased(errors: Sequence[float]) -> bool:
    """Return whether the errors are off on average by more than their scatter explains."""
    count = len(errors)
    mean = sum(errors) / count
    scatter = math.sqrt(sum((error - mean) ** 2 for error in errors) / max(1, count - 1))
    return bool(abs(mean) > max(LIMIT.bias, scatter / math.sqrt(count)))


def _errors(terms: Rows, seconds: Sequence[float], factors: Sequence[float]) -> list[float]:
    model = [sum(map(operator.mul, factors, size)) for size in terms]
    return [measured / value - 1 for measured, value in zip(seconds, model, strict=True)]


def _root_mean_square(errors: Sequence[float]) -> float:
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def _rows(terms: Rows, seconds: Sequence[float], noise: float) -> list[list[float]]:
    sizes = zip(terms, seconds, strict=True)
    return [[term / (noise * measured) for term in size] for size, measured in sizes]


def _all_free(terms: Rows, seconds: Sequence[float], before: Sequence[float], noise: float) -> Solution:
    """Return the factors that fit best to the measured sizes and the origins."""
    origins = [[float(i == j) / wide for j in range(len(before))] for i, wide in enumerate(before)]
    values = [1 / noise] * len(seconds) + [_ORIGIN[i] / wide for i, wide in enumerate(before)]
    return nonnegative_fit([*_rows(terms, seconds, noise), *origins], values)


def _only_determined(
    terms: Rows, seconds: Sequence[float], before: Sequence[float], noise: float, free: Solution
) -> tuple[tuple[float, ...], tuple[bool, ...]]:
    """Return the factors, those of the origins where the uncertainty was not reduced, and where it was."""
    everything = range(len(before))
    after = [math.sqrt(free.covariance[i][i]) for i in everything]
    some = [i for i in everything if after[i] < LIMIT.determined * before[i]]
    factors = list(_ORIGIN[: len(before)])
    if some:
        rows = _rows(terms, seconds, noise)
        rest = [1 / noise - sum(factors[i] * row[i] for i in everything if i not in some) for row in rows]
        origins = [[float(i == j) / before[i] for j in some] for i in some]
        values = [*rest, *(factors[i] / before[i] for i in some)]
        fitted = nonnegative_fit([*([row[i] for i in some] for row in rows), *origins], values)
        for i, factor in zip(some, fitted.parameters, strict=True):
            factors[i] = factor
    return tuple(factors), tuple(i in some for i in everything)


def nonnegative_fit(rows: Rows, values: Sequence[float]) -> Solution:
    """Return the parameters x >= 0 with the least sum of (row . x - value)^2.

    Each subset of the parameters is solved for; of the solutions without a negative parameter the one with
    the least error is the answer. That is exact, and with seven parameters it is 127 small systems.
    """
    count = len(rows[0])
    zeros = tuple(map(tuple, _zeros(count)))
    best = Solution((0.0,) * count, sum(value * value for value in values), (), zeros)
    for size in range(1, min(count, len(rows)) + 1):
        for free in combinations(range(count), size):
            found = _solve_free(rows, values, free)
            if found is not None and found.error < best.error - 1e-15 * (1 + best.error):
                best = found
    return best


def _solve_free(rows: Rows, values: Sequence[float], free: tuple[int, ...]) -> Solution | None:
    """Return the least-squares solution with only these parameters; None: singular or negative."""
    count = len(rows[0])
    # Columns differ by many powers of ten (a latency, a fraction): each is scaled to length 1.
    lengths = [sum(row[i] ** 2 for row in rows) ** 0.5 for i in free]
    if 0.0 in lengths:
        return None
    scaled = [[row[i] / length for i, length in zip(free, lengths, strict=True)] for row in rows]
    normal = [[sum(row[i] * row[j] for row in scaled) for j in range(len(free))] for i in range(len(free))]
    inverse = _inverse(normal)
    if inverse is None:
        return None
    right = [sum(row[i] * value for row, value in zip(scaled, values, strict=True)) for i in range(len(free))]
    some = [sum(a * b for a, b in zip(line, right, strict=True)) for line in inverse]
    if min(some) < 0:
        return None
    parameters, covariance = [0.0] * count, _zeros(count)
    for i, number in enumerate(free):
        parameters[number] = some[i] / lengths[i]
        for j, other in enumerate(free):
            covariance[number][other] = inverse[i][j] / (lengths[i] * lengths[j])
    error = sum(
        (sum(map(float.__mul__, map(float, row), parameters)) - value) ** 2
        for row, value in zip(rows, values, strict=True)
    )
    return Solution(tuple(parameters), error, free, tuple(map(tuple, covariance)))


def _zeros(count: int) -> Matrix:
    return [[0.0] * count for _ in range(count)]


def _inverse(matrix: Matrix) -> Matrix | None:
    """Return the inverse by Gauss and Jordan with the largest pivot; None where there is none."""
    size = len(matrix)
    work = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda line: abs(work[line][column]))
        if abs(work[pivot][column]) < 1e-12:
            return None
        work[column], work[pivot] = work[pivot], work[column]
        work[column] = [value / work[column][column] for value in work[column]]
        for line in range(size):
            if line != column and work[line][column]:
                factor = work[line][column]
                work[line] = [a - factor * b for a, b in zip(work[line], work[column], strict=True)]
    return [row[size:] for row in work]
