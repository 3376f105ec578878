"""A study as a picture (SVG) and as one HTML page with its table: no other file, no script. Pure."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hpclaunch.pages.render_page import html_page, render
from hpclaunch.scaling.scaling_laws import FittedLaw
from hpclaunch.scaling.study_report import StudyDocument, advice_lines, as_csv, columns, fit_lines, unit_name
from hpclaunch.scaling.study_table import Point

_WIDTH, _LEFT, _RIGHT, _HEIGHT, _HEAD, _GAP = 640, 70, 20, 230, 40, 40
_STEPS = 60
_Quantity = Callable[[float, float], float]
"""The value that is drawn, of a size and the seconds of its step."""
_Line = list[tuple[float, float]]


class Axes(NamedTuple):
    """The axes of a plot: sizes are logarithmic, values too where the lowest is not 0."""

    smallest: float
    largest: float
    low: float
    high: float
    top: float

    def x(self, size: float) -> float:
        """Return the place of a size, from the left."""
        share = math.log(size / self.smallest) / math.log(self.largest / self.smallest)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Return the place of a value, from the top; one outside of the axes is at their end."""
        value = min(max(value, self.low), self.high)
        share = math.log(value / self.low) / math.log(self.high / self.low) if self.low else value / self.high
        return self.top + _HEIGHT * (1 - share)

    def path(self, line: Iterable[tuple[float, float]]) -> str:
        """Return the points of a line."""
        return " ".join(f"{self.x(size):.1f},{self.y(value):.1f}" for size, value in line)

    @property
    def ticks(self) -> list[float]:
        """1, 2 and 5 times the powers of ten, or fifths where the lowest value is 0."""
        if not self.low:
            return [n / 5 for n in range(math.floor(5 * self.high) + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [tick for tick in found if self.low <= tick <= self.high]


def one_plot(low: float, high: float, sizes: Sequence[float], legend: int) -> dict[str, Any]:
    """Return axes and places of a picture of one plot; ``legend``: the width to the right of it."""
    return {
        "axes": Axes(sizes[0], max(sizes[-1], 2 * sizes[0]), low / 1.3, high * 1.3, _HEAD),
        "width": _WIDTH + legend,
        "height": _HEAD + _HEIGHT + 60,
        "left": _LEFT,
        "right": _WIDTH - _RIGHT,
        "top": _HEAD,
        "bottom": _HEAD + _HEIGHT,
    }


def as_svg(document: StudyDocument, law: FittedLaw | None) -> str:
    """Return seconds per step, speed-up and efficiency by size: ideal line, error bars, a law that fits."""
    drawn = law if law and law.fits else None
    marks = [point.size for point in document.points]
    marks += [item.size for item in document.fit.next] if drawn and document.fit else []
    lines, each = _lines(document, drawn, max(marks)), _HEIGHT + _GAP
    first, grows = document.points[0], document.kind == "weak"

    def speed_up(size: float, seconds: float) -> float:
        return first.step_s.median / seconds * (size / first.size if grows else 1)

    quantities = {
        "seconds per step": lambda _, seconds: seconds,
        "speed-up": speed_up,
        "efficiency": lambda size, seconds: speed_up(size, seconds) * first.size / size,
    }
    return render(
        "study.svg.j2",
        title=_title(document),
        plots=[
            _plot(document.points, lines, name, quantity, _HEAD + each * number)
            for number, (name, quantity) in enumerate(quantities.items())
        ],
        sizes=marks,
        width=_WIDTH,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        plot_height=_HEIGHT,
        below=_HEAD + each * len(quantities),
        unit=unit_name(document.points),
        law=drawn,
        no_law=law is not None and drawn is None,
    )


def _lines(document: StudyDocument, law: FittedLaw | None, largest: int) -> dict[str, _Line]:
    """Return the lines that are drawn, in seconds per step."""
    first, falls = document.points[0], document.kind == "strong"
    ratio = largest / first.size if largest > first.size else 2
    sizes = [first.size * ratio ** (n / _STEPS) for n in range(_STEPS + 1)]
    curve = [(p, law.step(p), law.range_at(p)) for p in sizes] if law else []
    return {
        "ideal": [(p, first.step_s.median * (first.size / p if falls else 1)) for p in sizes],
        "fitted": [(p, seconds) for p, seconds, _ in curve],
        "band": [(p, one.high) for p, _, one in curve] + [(p, one.low) for p, _, one in reversed(curve)],
    }


def _plot(
    measured: Sequence[Point], lines: Mapping[str, _Line], name: str, of: _Quantity, top: float
) -> dict[str, Any]:
    """Return what the template draws of one quantity; ``lines``: in seconds per step."""
    drawn = {key: [(p, of(p, seconds)) for p, seconds in line] for key, line in lines.items()}
    points = [(point, *(of(point.size, time) for time in _times(point))) for point in measured]
    values = [of(point.size, time) for point in measured for time in _times(point)]
    values += [value for _, value in (*drawn["ideal"], *drawn["fitted"])]
    low = 0 if name == "efficiency" else min(values) / 1.3
    axes = Axes(drawn["ideal"][0][0], drawn["ideal"][-1][0], low, max(values) * 1.1, top)
    paths = {key: axes.path(line) for key, line in drawn.items()}
    return {"name": name, "axes": axes, "points": points, **paths}


def _times(point: Point) -> tuple[float, float, float]:
    """Return the median, the fastest and the slowest repeat."""
    step = point.step_s
    return step.median, step.min, step.min + (step.spread or 0.0)


def _title(document: StudyDocument) -> str:
    return f"{document.study}: {document.kind} scaling"


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
