"""A study as a picture (SVG) and as one HTML page with its table: no other file, no script. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hpclaunch.pages.render_page import html_page, render
from hpclaunch.scaling.scaling_laws import FittedLaw
from hpclaunch.scaling.study_report import StudyDocument, advice_lines, as_csv, columns, fit_lines, unit_name
from hpclaunch.scaling.study_table import Point

_WIDTH, _LEFT, _RIGHT, _HEIGHT, _HEAD, _GAP = 640, 70, 20, 230, 40, 40
_STEPS = 60
_Quantity = Callable[[float, float], float]
"""The value that is drawn, of a size and the seconds of its step."""


class _Axes(NamedTuple):
    """The axes of a plot: sizes are logarithmic, values too where the lowest is not 0."""

    smallest: float
    largest: float
    low: float
    high: float
    top: float

    def x(self, size: float) -> float:
        share = math.log(size / self.smallest) / math.log(self.largest / self.smallest)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        share = math.log(value / self.low) / math.log(self.high / self.low) if self.low else value / self.high
        return self.top + _HEIGHT * (1 - share)

    def path(self, line: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(size):.1f},{self.y(value):.1f}" for size, value in line)

    @property
    def ticks(self) -> list[float]:
        if not self.low:
            return [n / 5 for n in range(math.floor(5 * self.high) + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [tick for tick in found if self.low <= tick <= self.high]


def as_svg(document: StudyDocument, law: FittedLaw | None) -> str:
    """Return seconds per step, speed-up and efficiency by size: ideal line, points with error bars, fit.

    A law that does not fit is not drawn.
    """
    first = document.points[0]
    drawn = law if law and law.fits else None

    def speed_up(size: float, seconds: float) -> float:
        return first.step_s.median / seconds * (size / first.size if document.kind == "weak" else 1)

    quantities: dict[str, _Quantity] = {
        "seconds per step": lambda _, seconds: seconds,
        "speed-up": speed_up,
        "efficiency": lambda size, seconds: speed_up(size, seconds) * first.size / size,
    }
    each = _HEIGHT + _GAP
    return render(
        "study.svg.j2",
        title=_title(document),
        document=document,
        plots=[
            {"name": name, **_plot(document, drawn, quantity, _HEAD + each * number)}
            for number, (name, quantity) in enumerate(quantities.items())
        ],
        width=_WIDTH,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        plot_height=_HEIGHT,
        below=_HEAD + each * len(quantities),
        unit=unit_name(document.points),
        law=drawn,
        no_law=law is not None and drawn is None,
    )


def _plot(document: StudyDocument, law: FittedLaw | None, of: _Quantity, top: float) -> dict[str, Any]:
    """Return what the template draws of one quantity."""
    axes = _axes(document, of, top)
    first, falls = document.points[0], document.kind == "strong"
    sizes = [axes.smallest * (axes.largest / axes.smallest) ** (n / _STEPS) for n in range(_STEPS + 1)]
    ideal = [(p, of(p, first.step_s.median * (first.size / p if falls else 1))) for p in sizes]
    return {
        "axes": axes,
        "ideal": axes.path(ideal),
        "fitted": axes.path((size, of(size, law.step(size))) for size in sizes) if law else "",
        "band": axes.path((p, of(p, seconds)) for p, seconds in _band(law, sizes)) if law else "",
        "values": [
            (point, *(of(point.size, time) for time in (point.step_s.median, point.step_s.min, _top(point))))
            for point in document.points
        ],
    }


def _title(document: StudyDocument) -> str:
    return f"{document.study}: {document.kind} scaling"


def _axes(document: StudyDocument, of: _Quantity, top: float) -> _Axes:
    points, ahead = document.points, document.fit.next if document.fit else ()
    sizes = [*(point.size for point in points), *(item.size for item in ahead)]
    largest = max(sizes) if max(sizes) > sizes[0] else 2 * sizes[0]
    values = [of(point.size, time) for point in points for time in (point.step_s.min, _top(point))]
    values += [of(item.size, item.step_s) for item in ahead]
    first = points[0]
    ideal = first.step_s.median * (first.size / largest if document.kind == "strong" else 1)
    values.append(of(largest, ideal))
    is_share = math.isclose(of(largest, ideal), 1) and math.isclose(of(first.size, first.step_s.median), 1)
    return _Axes(sizes[0], largest, 0 if is_share else min(values) / 1.3, max(values) * 1.1, top)


def _top(point: Point) -> float:
    return point.step_s.min + (point.step_s.spread or 0.0)


def _band(law: FittedLaw, sizes: Sequence[float]) -> list[tuple[float, float]]:
    halves = [(p, law.step(p), law.half_range(p)) for p in sizes]
    known = [(p, value, half) for p, value, half in halves if half is not None]
    above = [(p, value + half) for p, value, half in known]
    return above + [(p, max(value - half, value / 100)) for p, value, half in reversed(known)]


def as_html(document: StudyDocument, law: FittedLaw | None) -> str:
    """Return one page: picture, sentence, table, fit and the numbers as CSV."""
    header, rows = columns(document)
    numbers = [number for number, name in enumerate(header) if name != "remarks"]
    return html_page(
        "study.html.j2",
        document,
        title=_title(document),
        picture=as_svg(document, law),
        header=[header[number] for number in numbers],
        rows=[[row[number] for number in numbers] for row in rows],
        fit=fit_lines(document),
        advice=advice_lines(document),
        csv=as_csv(document),
    )
