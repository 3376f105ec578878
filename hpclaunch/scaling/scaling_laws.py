"""Laws of scaling fitted to a study: Amdahl or Gustafson with a latency and a bandwidth term. Pure.

A law is a sum of terms with parameters that are never negative; errors are relative to the measured times. Of
the laws of a kind the first is chosen that no later one beats with 90 % certainty. Its error is that of each
point predicted from the rest (leave-one-out).

In a strong study the bandwidth term of a ring, 2 (p - 1) / p x bytes x beta, has the shape of a serial and a
parallel part together, so no times by size can tell it apart: it is a part of ``serial``. A weak study does.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from hpclaunch.errors import note_text
from hpclaunch.scaling.calibration import Solution, nonnegative_fit, variance
from hpclaunch.scaling.learned_range import StepRange, naive_fit, range_about
from hpclaunch.scaling.measured_sizes import student
from hpclaunch.scaling.study_table import Kind, Point

Term = Callable[[float], float]
_TERMS: dict[str, Term] = {
    "serial_s": lambda p: 1.0,
    "parallel_s": lambda p: 1.0 / p,
    "alpha_ring_s": lambda p: 2.0 * (p - 1),
    "alpha_log_s": lambda p: math.log2(p),
    "exchange_s": lambda p: 2.0 * (p - 1) / p,
}
"""Parameter -> its factor at p ranks. exchange_s is bytes x beta."""


class Law(NamedTuple):
    """A sum of terms."""

    name: str
    formula: str
    terms: tuple[str, ...]


_LATENCIES = {"ring": ("2 (p - 1) alpha", "alpha_ring_s"), "tree": ("log2(p) alpha", "alpha_log_s")}


def _with_latencies(name: str, formula: str, terms: tuple[str, ...]) -> tuple[Law, ...]:
    more = (
        Law(f"{name}, {shape} latency", f"{formula} + {latency}", (*terms, term))
        for shape, (latency, term) in _LATENCIES.items()
    )
    return (Law(name, formula, terms), *more)


LAWS: dict[Kind, tuple[Law, ...]] = {
    "strong": _with_latencies("Amdahl", "serial + parallel / p", ("serial_s", "parallel_s")),
    "weak": _with_latencies("Gustafson", "constant + 2 (p - 1) / p exchange", ("serial_s", "exchange_s")),
}

NOISE = 0.02
"""Relative deviation of a time, at least: that of ``calibration`` for a measured size."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted parameter with the range of 90 %; no range where the points leave none free.

    The range includes the values of other laws that fit nearly as well.
    """

    value: float
    plus_minus: float | None


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The law's estimate for a size that was not measured."""

    size: int
    step_s: float
    low: float
    high: float
    efficiency: float


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen law."""

    law: str
    formula: str
    parameters: dict[str, Parameter]
    serial_fraction: float | None
    leave_one_out_error: float | None
    next: tuple[Estimate, ...] = ()
    remarks: tuple[str, ...] = ()


class FittedLaw:
    """A law with its parameters for these points, which predicts times."""

    def __init__(
        self, law: Law, sizes: Sequence[int], seconds: Sequence[float], noise: float = NOISE
    ) -> None:
        self.law, self.noise = law, noise
        self.sizes, self.seconds = tuple(sizes), tuple(seconds)
        self.solution = self._fit(sizes, seconds)
        self.freedom = len(sizes) - len(self.solution.free)
        self.deviation = math.sqrt((self.solution.error + noise**2) / (self.freedom + 1))
        """Relative: the noise counts as one more point, since a law may fit by chance."""
        self.left_out = self._leave_one_out()
        """Relative error of each point predicted from the rest; empty with too few points."""

    def _row(self, p: float) -> list[float]:
        return [_TERMS[term](p) for term in self.law.terms]

    def _fit(self, sizes: Sequence[int], seconds: Sequence[float]) -> Solution:
        rows = [[value / s for value in self._row(p)] for p, s in zip(sizes, seconds, strict=True)]
        return nonnegative_fit(rows, [1.0] * len(rows))

    def _value(self, p: float, solution: Solution) -> float:
        return sum(a * b for a, b in zip(self._row(p), solution.parameters, strict=True))

    def step(self, p: float) -> float:
        """Return the seconds at p."""
        return self._value(p, self.solution)

    def parameter(self, term: str) -> float:
        """Return the value of a term's parameter."""
        return self.solution.parameters[self.law.terms.index(term)]

    @property
    def left_out_error(self) -> float | None:
        """Return the mean of the relative errors, without their signs."""
        return sum(map(abs, self.left_out)) / len(self.left_out) if self.left_out else None

    @property
    def fits(self) -> bool:
        """Whether it predicts each point from the rest, as far as that can be tried."""
        return self.left_out_error is None or self.left_out_error <= 0.1

    def range_at(self, p: float) -> StepRange:
        """Return the range of 90 % at p, as that of ``predict``: next to the law a naive fit and carrying on.

        Of a strong study these are of the time of all ranks together, p times as long.
        """
        strong = "parallel_s" in self.law.terms
        times = [s * n if strong else s for n, s in zip(self.sizes, self.seconds, strict=True)]
        share, value = p if strong else 1.0, self.step(p)
        logs = [math.log(one) for one in (value * share, naive_fit(self.sizes, times, p), times[-1])]
        relative = math.sqrt(variance(self._row(p), self.solution.covariance)) / value
        return range_about(math.log(value), logs, self.deviation * math.hypot(1, relative))

    def _leave_one_out(self) -> tuple[float, ...]:
        if len(self.sizes) <= len(self.law.terms):
            return ()
        errors = []
        for n, (size, measured) in enumerate(zip(self.sizes, self.seconds, strict=True)):
            sizes, seconds = self.sizes[:n] + self.sizes[n + 1 :], self.seconds[:n] + self.seconds[n + 1 :]
            errors.append(self._value(size, self._fit(sizes, seconds)) / measured - 1)
        return tuple(errors)


def fitted_law(points: Sequence[Point], kind: Kind) -> FittedLaw | None:
    """Return the law that fits best; None with fewer than two comparable points."""
    use = [point for point in points if point.comparable]
    if len(use) < 2:
        return None
    sizes, seconds = [point.size for point in use], [point.step_s.median for point in use]
    spread = max((point.step_s.deviation or 0.0 for point in use), default=0.0)
    best = FittedLaw(LAWS[kind][0], sizes, seconds, max(NOISE, spread))
    for law in LAWS[kind][1:]:
        other = FittedLaw(law, sizes, seconds, best.noise)
        if _is_better(other, best):
            best = other
    return best


def _is_better(other: FittedLaw, best: FittedLaw) -> bool:
    """Return whether a law with one term more, or with another last term, fits better with 90 % certainty."""
    if other.freedom <= 0 or best.freedom <= 0:
        return False
    quantile = student(other.freedom)
    if len(other.law.terms) > len(best.law.terms):  # the square of Student's quantile is that of F
        gained = best.solution.error - other.solution.error
        return gained > quantile**2 * other.solution.error / other.freedom + 1e-18
    return other.solution.error * quantile**2 < best.solution.error


def _rivals(law: FittedLaw, kind: Kind) -> list[FittedLaw]:
    """Return the laws with as many terms that the points cannot tell from the chosen one."""
    if law.freedom <= 0:
        return []
    others = [FittedLaw(rival, law.sizes, law.seconds, law.noise) for rival in LAWS[kind] if rival != law.law]
    bound = student(law.freedom) ** 2 * max(law.solution.error, law.freedom * law.noise**2)
    return [
        other
        for other in others
        if len(other.law.terms) == len(law.law.terms) and other.solution.error <= bound
    ]


def describe_fit(law: FittedLaw, points: Sequence[Point], kind: Kind) -> Fit:
    """Return the law with its parameters, the next two sizes and what does not fit."""
    scale = student(law.freedom + 1) * law.deviation if law.freedom > 0 else None
    parameters = {}
    rivals = _rivals(law, kind)
    for n, term in enumerate(law.law.terms):
        value = law.solution.parameters[n]
        error = None
        if scale is not None and n in law.solution.free:
            others = [abs(other.parameter(term) - value) for other in rivals if term in other.law.terms]
            error = max(scale * math.sqrt(law.solution.covariance[n][n]), *others, 0.0)
        parameters[term] = Parameter(value=value, plus_minus=error)
    values = {term: parameter.value for term, parameter in parameters.items()}
    both = values.get("serial_s", 0.0) + values.get("parallel_s", 0.0)
    return Fit(
        law=law.law.name,
        formula=law.law.formula,
        parameters=parameters,
        serial_fraction=values["serial_s"] / both if kind == "strong" and both else None,
        leave_one_out_error=law.left_out_error,
        next=_next_two(law, rivals, points, kind),
        remarks=(*_doubts(law), *map(_named, rivals)),
    )


def _next_two(
    law: FittedLaw, rivals: Sequence[FittedLaw], points: Sequence[Point], kind: Kind
) -> tuple[Estimate, ...]:
    last, before = law.sizes[-1], law.sizes[-2]
    sizes = (round(last * (last / before) ** times) for times in (1, 2))
    return tuple(estimate(law, points, kind, size, rivals) for size in sizes)


def estimate(
    law: FittedLaw, points: Sequence[Point], kind: Kind, size: int, rivals: Sequence[FittedLaw] = ()
) -> Estimate:
    """Return the time at a size with its range, which has the values of the ``rivals`` in it."""
    step, others = law.range_at(size), [rival.step(size) for rival in rivals]
    low, high = min([step.low, *others]), max([step.high, *others])
    first = points[0]
    work = first.step_s.median * (first.size / size if kind == "strong" else 1)
    return Estimate(size=size, step_s=step.value, low=low, high=high, efficiency=work / step.value)


def _named(rival: FittedLaw) -> str:
    values = zip(rival.law.terms, rival.solution.parameters, strict=True)
    text = ", ".join(f"{name} {value:.4g}" for name, value in values)
    return f"{rival.law.name} fits nearly as well: {text}"


def _doubts(law: FittedLaw) -> tuple[str, ...]:
    found = []
    if not law.left_out:
        found.append(f"{len(law.sizes)} points are too few to test this law: measure more sizes")
    elif not law.fits:
        found.append(note_text("study: no law", law=law))
    for size, seconds in zip(law.sizes, law.seconds, strict=True):
        error = seconds / law.step(size) - 1
        others = [abs(s / law.step(p) - 1) for p, s in zip(law.sizes, law.seconds, strict=True) if p != size]
        if abs(error) > max(0.1, 3 * sum(others) / len(others)):
            found.append(f"the point at {size} does not fit: measured {error:+.0%} of what the law gives")
    return tuple(found)
