"""The report as one HTML file. Pure."""

from collections.abc import Iterator
from typing import Any

from hpclaunch.amounts import counted
from hpclaunch.package_data import package_constants
from hpclaunch.pages.render_page import PALETTE, html_page
from hpclaunch.usage import report_text
from hpclaunch.usage.report_documents import ReportDocument

LIMIT = package_constants("usage/limits.yaml", "page")


def page(report: ReportDocument) -> str:
    """Return the page."""
    code = "" if report.exit_code is None else f", exit code {report.exit_code}"
    return html_page(
        "report.html.j2",
        report,
        title=f"Report of job {report.id}",
        about=f"{report.name}, {report.state}{code}; {report.site}, {counted(report.nodes, 'node')}",
        bar=_bar(report),
        times=list(report_text.time_rows(report)),
        facts=list(report_text.fact_rows(report)),
        next=[(one.what, one.ask, one.text) for one in report.next],
        pictures=list(_pictures(report)),
        node_header=report_text.LIMIT.node_header,
        nodes=list(report_text.node_rows(report)),
        rank_header=report_text.LIMIT.rank_header,
        ranks=list(report_text.rank_rows(report)),
        gpus=[(node.node, gpu) for node in report.by_node for gpu in node.gpus],
        size=report_text.size_text,
    )


def _bar(report: ReportDocument) -> list[tuple[str, float, str]]:
    spans = zip(LIMIT.parts, PALETTE["colours"], strict=False)
    parts = [(label, getattr(report.times, name), colour) for (name, label), colour in spans]
    known = [(label, seconds, colour) for label, seconds, colour in parts if seconds is not None]
    total = sum(seconds for _, seconds, _ in known)
    return [(f"{label} {s:.0f} s", s / total, colour) for label, s, colour in known] if total else []


def _pictures(report: ReportDocument) -> Iterator[dict[str, Any]]:
    """Yield what the template needs to draw each quantity that was seen at least twice."""
    for field, title, divisor, unit in LIMIT.series:
        points = [(point.second, getattr(point, field)) for point in report.over_time]
        known = [(second, value / divisor) for second, value in points if value is not None]
        if len(known) > 1:
            values = [value for _, value in known]
            top, length = max(values) * 1.1 or 1.0, known[-1][0] or 1
            yield {
                "label": title,
                "height": 130,
                "heading": f"{title}: {sum(values) / len(values):.4g}{unit} on average",
                "points": [(second / length, value) for second, value in known],
                "top": top,
                "top_text": f"{top:.4g}{unit}",
                "first": "0",
                "last": f"{length} s",
            }
