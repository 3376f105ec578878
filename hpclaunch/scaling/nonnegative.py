"""Least squares whose parameters are never negative, for the few parameters of a scaling law. Pure.

Each subset of the parameters is solved for; of the solutions without a negative parameter the one with the
least error is the answer. That is exact, and with at most six parameters it is at most 63 small systems.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

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

    def variance_of(self, row: Sequence[float]) -> float:
        """Return the variance of ``row`` times the parameters."""
        n = range(len(row))
        return max(0.0, sum(row[i] * self.covariance[i][j] * row[j] for i in n for j in n))


def nonnegative_fit(rows: Sequence[Sequence[float]], values: Sequence[float]) -> Solution:
    """Return the parameters x >= 0 with the least sum of (row . x - value)^2."""
    count = len(rows[0])
    zeros = tuple(map(tuple, _zeros(count)))
    best = Solution((0.0,) * count, sum(value * value for value in values), (), zeros)
    for size in range(1, min(count, len(rows)) + 1):
        for free in combinations(range(count), size):
            found = _solve_free(rows, values, free)
            if found is not None and found.error < best.error - 1e-15 * (1 + best.error):
                best = found
    return best


def _solve_free(
    rows: Sequence[Sequence[float]], values: Sequence[float], free: tuple[int, ...]
) -> Solution | None:
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
