"""A study as a picture (SVG) and as one HTML page with its table: no other file, no script. Pure."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from hpclaunch.scaling.scaling_laws import FittedLaw
from hpclaunch.scaling.study_report import StudyDocument, as_csv, as_text, unit_name
from hpclaunch.scaling.study_table import Kind, Point

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


def as_svg(document: StudyDocument, law: FittedLaw | None) -> str:
    """Return the seconds per step by size: ideal line, points with error bars, fit with its band."""
    axes = _axes(document, law)
    title = f"{document.study}: {document.kind} scaling"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{escape(title)}</text>',
        *_grid(axes, document),
        *(_band(axes, law) if law else []),
        _line(
            axes,
            _ideal(document.points, document.kind, axes),
            'stroke="#888" stroke-dasharray="5 4"',
            "ideal",
        ),
        *([_line(axes, [(p, law.step(p)) for p in _sizes(axes)], 'stroke="#1f5fbf"', "fit")] if law else []),
        *(_point(axes, point) for point in document.points),
        *_legend(law),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


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


def _sizes(axes: _Axes) -> list[float]:
    return [axes.smallest * (axes.largest / axes.smallest) ** (n / _STEPS) for n in range(_STEPS + 1)]


def _ideal(points: Sequence[Point], kind: Kind, axes: _Axes) -> list[tuple[float, float]]:
    first = points[0]
    falls = kind == "strong"
    return [
        (p, first.step_s.median * (first.size / p if falls else 1)) for p in (axes.smallest, axes.largest)
    ]


def _line(axes: _Axes, line: Sequence[tuple[float, float]], style: str, name: str) -> str:
    path = " ".join(f"{axes.x(p):.1f},{axes.y(t):.1f}" for p, t in line)
    return f'<polyline class="{name}" points="{path}" fill="none" stroke-width="1.5" {style}/>'


def _band(axes: _Axes, law: FittedLaw) -> list[str]:
    halves = [(p, law.step(p), law.half_range(p)) for p in _sizes(axes)]
    known = [(p, value, half) for p, value, half in halves if half is not None]
    if not known:
        return []
    edge = [(p, value + half) for p, value, half in known] + [
        (p, max(value - half, axes.low)) for p, value, half in reversed(known)
    ]
    path = " ".join(f"{axes.x(p):.1f},{axes.y(t):.1f}" for p, t in edge)
    return [f'<polygon class="band" points="{path}" fill="#1f5fbf" fill-opacity="0.15"/>']


def _point(axes: _Axes, point: Point) -> str:
    x, y = axes.x(point.size), axes.y(point.step_s.median)
    colour = "#c0392b" if point.remarks or not point.comparable else "#111"
    bar = ""
    if point.step_s.spread:
        ends = f'y1="{axes.y(point.step_s.min):.1f}" y2="{axes.y(_top(point)):.1f}"'
        bar = f'<line x1="{x:.1f}" x2="{x:.1f}" {ends} stroke="{colour}"/>'
    says = escape("; ".join((f"{point.size}: {point.step_s.median:.4g} s", *point.remarks)))
    circle = f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">'
    return f"{bar}{circle}<title>{says}</title></circle>"


def _grid(axes: _Axes, document: StudyDocument) -> list[str]:
    """Return a vertical line per size, a horizontal one per 1, 2 and 5, and the names of the axes."""
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    sizes = [point.size for point in document.points]
    sizes += [item.size for item in document.fit.next] if document.fit else []
    parts = []
    for size in sizes:
        x = axes.x(size)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="#eee"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{size}</text>')
    for seconds in _ticks(axes.low, axes.high):
        y = axes.y(seconds)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eee"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{seconds:g}</text>')
    middle = (_TOP + bottom) / 2
    turned = f'text-anchor="middle" transform="rotate(-90 16 {middle})"'
    return [
        *parts,
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 14}" text-anchor="middle">{unit_name(document.points)}</text>',
        f'<text x="16" y="{middle}" {turned}>seconds per step</text>',
    ]


def _ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for digit in (1, 2, 5) if low <= (tick := digit * 10.0**power) <= high]


def _legend(law: FittedLaw | None) -> list[str]:
    texts = ["grey, dashed: ideal", "black: measured; red: with a remark"]
    texts += [f"blue: {law.law.name}, range of 90 %"] if law else []
    return [
        f'<text x="{_LEFT + 10}" y="{_HEIGHT - _BOTTOM - 12 - 15 * n}" fill="#444">{escape(text)}</text>'
        for n, text in enumerate(texts)
    ]


def as_html(document: StudyDocument, law: FittedLaw | None) -> str:
    """Return one page: picture, sentence, table, fit and the numbers as CSV."""
    title = escape(f"{document.study}: {document.kind} scaling")
    head, *_ = as_csv(document).splitlines()
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body {{ font-family: sans-serif; max-width: 60em; margin: 2em auto; }}
pre {{ background: #f6f6f6; padding: 1em; white-space: pre-wrap; }}</style></head>
<body>
<h1>{title}</h1>
{as_svg(document, law)}
<pre>{escape(as_text(document))}</pre>
<details><summary>CSV: {escape(head)}</summary><pre>{escape(as_csv(document))}</pre></details>
</body></html>
"""
