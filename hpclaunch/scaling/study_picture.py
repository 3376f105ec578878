"""A study as a picture (SVG) and as one HTML page with its table: no other file, no script. Pure."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from hpclaunch.pages.render_page import html_page, render
from hpclaunch.scaling.scaling_laws import FittedLaw
from hpclaunch.scaling.study_report import StudyDocument, as_csv, as_text, unit_name
from hpclaunch.scaling.study_table import Point

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 420, 70, 20, 40, 60
_STEPS = 60


class _Axes(NamedTuple):
    """Logarithmic axes."""

    smallest: float
    largest: float
    low: float
    high: float

    def x(self, size: float) -> float:
        share = math.log(size / self.smallest) / math.log(self.largest / self.smallest)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, seconds: float) -> float:
        share = math.log(min(max(seconds, self.low), self.high) / self.low) / math.log(self.high / self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def path(self, line: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(size):.1f},{self.y(seconds):.1f}" for size, seconds in line)


def as_svg(document: StudyDocument, law: FittedLaw | None) -> str:
    """Return the seconds per step by size: ideal line, points with error bars, fit with its band."""
    axes = _axes(document, law)
    sizes = [axes.smallest * (axes.largest / axes.smallest) ** (n / _STEPS) for n in range(_STEPS + 1)]
    first, falls = document.points[0], document.kind == "strong"
    ends = (axes.smallest, axes.largest)
    ideal = [(p, first.step_s.median * (first.size / p if falls else 1)) for p in ends]
    return render(
        "study.svg.j2",
        title=_title(document),
        document=document,
        axes=axes,
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        top=_TOP,
        bottom=_HEIGHT - _BOTTOM,
        unit=unit_name(document.points),
        ticks=_ticks(axes.low, axes.high),
        ideal=axes.path(ideal),
        law=law,
        fitted=axes.path([(size, law.step(size)) for size in sizes]) if law else "",
        band=axes.path(_band(law, sizes)) if law else "",
        highest=_top,
    )


def _title(document: StudyDocument) -> str:
    return f"{document.study}: {document.kind} scaling"


def _axes(document: StudyDocument, law: FittedLaw | None) -> _Axes:
    sizes = [point.size for point in document.points]
    times = [time for point in document.points for time in (point.step_s.min, _top(point))]
    if document.fit:
        sizes += [item.size for item in document.fit.next]
        times += [item.step_s for item in document.fit.next]
    if document.kind == "strong":
        times.append(document.points[0].step_s.median * sizes[0] / max(sizes))
    largest = max(sizes) if max(sizes) > sizes[0] else 2 * sizes[0]
    return _Axes(sizes[0], largest, min(times) / 1.3, max(times) * 1.3)


def _top(point: Point) -> float:
    return point.step_s.min + (point.step_s.spread or 0.0)


def _band(law: FittedLaw, sizes: Sequence[float]) -> list[tuple[float, float]]:
    ranges = [(p, law.range_at(p)) for p in sizes]
    return [(p, one.high) for p, one in ranges] + [(p, one.low) for p, one in reversed(ranges)]


def _ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for digit in (1, 2, 5) if low <= (tick := digit * 10.0**power) <= high]


def _gain(document: StudyDocument, name: str) -> str:
    """Return speed-up or efficiency by size, from 0 on."""
    first, speed_up = document.points[0], name == "speed-up"
    points = [
        {
            "size": point.size,
            "value": point.speedup if speed_up else point.efficiency,
            "ideal": point.size / first.size if speed_up else 1.0,
            "half": point.plus_minus,
            "odd": bool(point.remarks) or not point.comparable,
        }
        for point in document.points
    ]
    ideal = document.points[-1].size / first.size if speed_up else 1.0
    top = 1.05 * max(ideal, *(point.speedup if speed_up else point.efficiency for point in document.points))
    apart = (_WIDTH - _LEFT - _RIGHT) / max(1, len(points) - 1)
    return render(
        "study_gain.svg.j2",
        name=name,
        unit=unit_name(document.points),
        points=points,
        ticks=[top * n / 4 for n in range(5)],
        x=lambda place: _LEFT + place * apart,
        y=lambda value: 220 - 190 * min(value, top) / top,
    )


def as_html(document: StudyDocument, law: FittedLaw | None) -> str:
    """Return one page: picture, sentence, table, fit and the numbers as CSV."""
    return html_page(
        "study.html.j2",
        document,
        title=_title(document),
        picture=as_svg(document, law),
        gains=[_gain(document, name) for name in ("speed-up", "efficiency")],
        text=as_text(document),
        csv=as_csv(document),
    )
