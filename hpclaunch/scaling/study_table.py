"""The table of a scaling study: speed-up, efficiency and Karp-Flatt's fraction by size, with remarks. Pure.

Everything is relative to the smallest measured size. Super-linear and collapsed points are named, not
believed.
"""

import math
from statistics import median
from typing import Literal

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.errors import note_text
from hpclaunch.package_data import package_constants
from hpclaunch.scaling.measured_sizes import MeasuredSize, Unit, deviation_of_repeats, half_width

Kind = Literal["strong", "weak"]
UNIT_NAMES: dict[Unit, str] = {"gpus": "GPUs", "ranks": "ranks"}

LIMIT = package_constants("scaling/constants.yaml", "study")


class StepSeconds(msgspec.Struct, frozen=True, kw_only=True):
    """The repeats of one size."""

    median: float
    min: float
    spread: float | None
    deviation: float | None = None
    plus_minus: float | None = None
    seconds: tuple[float, ...] = ()


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One size of a study."""

    nodes: int | None
    ranks: int
    gpus: int | None
    step_s: StepSeconds
    throughput: float | None
    speedup: float
    efficiency: float
    plus_minus: float | None = None
    karp_flatt: float | None
    comparable: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Return what the study is by: GPUs where the ranks compute on them, else ranks."""
        return self.ranks if self.gpus is None else self.gpus


class Boundaries(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes at which a job leaves a part of the machine."""

    gpus_per_node: int | None = None
    nodes_per_group: int | None = None

    def crossed(self, before: int, size: int) -> str | None:
        """Return what lies between two sizes: the node, the group; None where nothing known does."""
        node = self.gpus_per_node
        if node and before <= node < size:
            return f"the node of {node}"
        group = node * self.nodes_per_group if node and self.nodes_per_group else None
        if group and before <= group < size:
            return f"the group of {self.nodes_per_group} nodes"
        return None


def study_points(
    sizes: tuple[MeasuredSize, ...],
    kind: Kind,
    unit: Unit,
    boundaries: Boundaries = Boundaries(),  # noqa: B008
    work: float | None = None,
) -> tuple[Point, ...]:
    """Return the points, smallest first. ``work``: what one step at the smallest size does (images)."""
    points: list[Point] = []
    first, per_node = sizes[0], boundaries.gpus_per_node
    for measured in sizes:
        factor = measured.size / first.size
        seconds = median(measured.seconds)
        gain = median(first.seconds) / seconds
        speedup = gain if kind == "strong" else gain * factor
        done = None if work is None else work * (factor if kind == "weak" else 1)
        divided = kind == "strong" and factor > 1
        step = _seconds(measured)
        point = Point(
            nodes=measured.nodes or (-(-measured.size // per_node) if per_node else None),
            ranks=measured.ranks or measured.size,
            gpus=measured.size if unit == "gpus" else None,
            step_s=step,
            throughput=None if done is None else done / seconds,
            speedup=speedup,
            efficiency=speedup / factor,
            plus_minus=ratio_half(step, points[0].step_s) if points else None,
            karp_flatt=(1 / speedup - 1 / factor) / (1 - 1 / factor) if divided else None,
        )
        notable = _notable(points[-1], point, boundaries) if points else []
        remarks = (*_outliers(measured.seconds), *notable)
        points.append(msgspec.structs.replace(point, remarks=remarks))
    return tuple(points)


def _seconds(size: MeasuredSize) -> StepSeconds:
    several, seconds = len(size.seconds) > 1, size.seconds
    return StepSeconds(
        median=median(seconds),
        min=min(seconds),
        spread=max(seconds) - min(seconds) if several else None,
        deviation=deviation_of_repeats((size,)) if several else None,
        plus_minus=half_width(size),
        seconds=seconds,
    )


def ratio_half(one: StepSeconds, other: StepSeconds) -> float | None:
    """Return half the relative interval of the ratio of two times; None: one was measured once."""
    if one.plus_minus is None or other.plus_minus is None:
        return None
    return math.hypot(one.plus_minus, other.plus_minus)


def _outliers(seconds: tuple[float, ...]) -> list[str]:
    """Name repeats far from the rest; fewer than three do not show which one is odd."""
    if len(seconds) < 3:
        return []
    middle = median(seconds)
    usual = max(1.4826 * median(abs(value - middle) for value in seconds), 0.01 * middle)
    odd = [value for value in seconds if abs(value - middle) > LIMIT.outlier * usual]
    return [f"outlier: {value:.4g} s, {value / middle - 1:+.0%} of the median" for value in odd]


def _notable(before: Point, point: Point, boundaries: Boundaries) -> list[str]:
    """Name what no law of scaling gives and no noise explains: more than linear, or a collapse, and where."""
    size, efficiency, unit = point.size, point.efficiency, "ranks" if point.gpus is None else "GPUs"
    crossed = boundaries.crossed(before.size, size)
    where = f"; between {before.size} and {size} {unit} the job crosses {crossed}" if crossed else ""
    if efficiency > LIMIT.more_than_linear * math.exp(point.plus_minus or 0.0):
        return [
            f"super-linear: check what else differs from the smallest size (caches, input, other jobs){where}"
        ]
    left, noise = efficiency / before.efficiency, ratio_half(point.step_s, before.step_s) or 0.0
    change, smaller = point.step_s.median / before.step_s.median, counted(before.size, unit[:-1])
    if left * LIMIT.collapse > math.exp(noise):
        return [f"more than linear: {1 / change:.2f} times as fast as {smaller}: was that slowed down?"]
    if left * math.exp(noise) >= LIMIT.collapse > left:
        return [note_text("study: not told apart", left=left, before=before)]
    if left < LIMIT.collapse:
        return [f"collapse: {change:.2f} times the time with {smaller}{where}"]
    return []
