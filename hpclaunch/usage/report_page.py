"""The report as one HTML file: no script, nothing from the network, its pictures are SVG. Pure."""

from collections.abc import Sequence
from html import escape

from hpclaunch.plural import counted
from hpclaunch.timeline.timeline_page import html_page, html_table
from hpclaunch.usage.node_samples import GIB
from hpclaunch.usage.report_documents import ReportDocument
from hpclaunch.usage.report_text import (
    NODE_HEADER,
    RANK_HEADER,
    energy_text,
    node_rows,
    rank_rows,
    speed_text,
    time_rows,
)

_WIDTH, _HEIGHT, _LEFT = 900, 130, 70
_SERIES = (
    ("cpus_busy", "CPUs busy per node", "#4c9f70", 1.0, ""),
    ("memory", "memory in use per node", "#3b7dd8", float(GIB), " GiB"),
    ("gpu_busy", "GPUs busy", "#e07b39", 1.0, " %"),
    ("power_w", "power per node", "#8d6cab", 1.0, " W"),
)
"""Field, title, colour, divisor, unit."""
_MOST_ROWS = 512
_PARTS = (
    ("queue_s", "in the queue", "#b8b8b8"),
    ("start_up_s", "start-up", "#e0a030"),
    ("run_s", "ranks ran", "#4c9f70"),
)


def page(report: ReportDocument) -> str:
    """Return the page."""
    title = f"Report of job {report.id}"
    code = "" if report.exit_code is None else f", exit code {report.exit_code}"
    about = f"{report.name}, {report.state}{code}; {report.site}, {counted(report.nodes, 'node')}"
    parts = [
        f"<h1>{escape(title)}</h1><p>{escape(about)}</p>",
        "<h2>Time</h2>",
        _bar(report),
        html_table(("", ""), [(name, text) for name, text in time_rows(report)], prose=True),
        "<h2>Energy, speed, binding, cost</h2>",
        html_table(("", ""), list(_facts(report)), prose=True),
        "<h2>Next time</h2>",
        html_table(
            ("", "ask for", "why"), [(one.what, one.ask, one.text) for one in report.next], prose=True
        ),
        "<h2>Over time</h2>",
        *_pictures(report),
        "<h2>Nodes</h2>",
        _cut(NODE_HEADER, list(node_rows(report))),
        "<h2>Ranks</h2>",
        _cut(RANK_HEADER, list(rank_rows(report))),
        "<h2>GPUs</h2>",
        _cut(("GPU", "node", "ranks", "busy", "memory peak", "of", "power", "by"), list(_gpus(report))),
        *(["<h2>Not known</h2>"] if report.unknown else []),
        *(f"<p class='note'>{escape(text)}</p>" for text in report.unknown),
    ]
    return html_page(title, parts, report)


def _facts(report: ReportDocument) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [("energy", energy_text(figure)) for figure in report.energy]
    rows.append(("speed", speed_text(report) or None))
    rows.append(("binding", report.binding.finding if report.binding else None))
    rows.append(("cost", report.cost.text if report.cost else None))
    return rows


def _cut(header: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    more = len(rows) - _MOST_ROWS
    note = f"<p class='note'>and {more} more: hpclaunch report --json has all</p>" if more > 0 else ""
    return html_table(header, list(rows[:_MOST_ROWS])) + note


def _gpus(report: ReportDocument) -> list[tuple[object, ...]]:
    return [
        (
            gpu.name,
            node.node,
            ", ".join(map(str, gpu.ranks)) or None,
            None if gpu.busy is None else f"{gpu.busy:.0f} %",
            None if gpu.memory_peak is None else f"{gpu.memory_peak / GIB:.1f} GiB",
            None if gpu.memory_of is None else f"{gpu.memory_of / GIB:.1f} GiB",
            None if gpu.power_w is None else f"{gpu.power_w:.0f} W",
            gpu.source,
        )
        for node in report.by_node
        for gpu in node.gpus
    ]


def _bar(report: ReportDocument) -> str:
    """Draw queue, start-up and run in proportion."""
    known = [(label, getattr(report.times, name) or 0.0, colour) for name, label, colour in _PARTS]
    total = sum(seconds for _, seconds, _ in known)
    if not total:
        return ""
    at, bars, keys = 0.0, [], []
    for label, seconds, colour in known:
        width = seconds / total * _WIDTH
        bars.append(
            f"<rect x='{at:.1f}' y='0' width='{width:.1f}' height='24' fill='{colour}'>"
            f"<title>{label} {seconds:.0f} s</title></rect>"
        )
        keys.append(f"<span class='key' style='background:{colour}'></span>{label} &ensp;")
        at += width
    return f"<svg viewBox='0 0 {_WIDTH} 26' role='img'>{''.join(bars)}</svg><p>{''.join(keys)}</p>"


def _pictures(report: ReportDocument) -> list[str]:
    drawn = [
        picture
        for field, title, colour, divisor, unit in _SERIES
        if (picture := _picture(report, field, title, colour, divisor, unit))
    ]
    return drawn or ["<p>The job was not looked at twice, so that there is no line to draw.</p>"]


def _picture(report: ReportDocument, field: str, title: str, colour: str, divisor: float, unit: str) -> str:
    points = [(point.second, getattr(point, field)) for point in report.over_time]
    known = [(second, value / divisor) for second, value in points if value is not None]
    if len(known) < 2:
        return ""
    top = max(value for _, value in known) * 1.1 or 1.0
    length = max(second for second, _ in known) or 1
    line = " ".join(
        f"{_LEFT + second / length * (_WIDTH - _LEFT):.1f},{_HEIGHT - 20 - value / top * (_HEIGHT - 44):.1f}"
        for second, value in known
    )
    average = sum(value for _, value in known) / len(known)
    return (
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img'>"
        f"<text x='{_LEFT}' y='14'>{escape(title)}: {average:.4g}{unit} on average</text>"
        f"<text x='0' y='34'>{top:.4g}{unit}</text><text x='40' y='{_HEIGHT - 20}'>0</text>"
        f"<line x1='{_LEFT}' y1='{_HEIGHT - 20}' x2='{_WIDTH}' y2='{_HEIGHT - 20}' stroke='#999'/>"
        f"<text x='{_LEFT}' y='{_HEIGHT - 4}'>0</text>"
        f"<text x='{_WIDTH}' y='{_HEIGHT - 4}' text-anchor='end'>{length} s</text>"
        f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='1.5'/></svg>"
    )
