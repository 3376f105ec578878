"""The summary as one HTML file: no script, nothing from the network, its pictures are SVG."""

from html import escape

import msgspec

from hpclaunch.json_document import Document, document_text
from hpclaunch.plural import counted
from hpclaunch.timeline.timeline_documents import RankSummary, TimelineDocument, Verdict
from hpclaunch.timeline.timeline_summary import SHARE_NAMES
from hpclaunch.timeline.timeline_verdicts import shown_ms

_COLOURS = {
    "computing": "#4c9f70",
    "negotiating": "#e0a030",
    "queueing": "#c9b458",
    "copying": "#8d6cab",
    "moving": "#3b7dd8",
    "waiting": "#d64545",
    "input": "#e07b39",
    "idle": "#b8b8b8",
    "unseen": "#9fb4a5",
}
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#222}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse}
td,th{padding:.15rem .8rem .15rem 0;text-align:right}td:first-child,th:first-child{text-align:left}
th{border-bottom:1px solid #999;font-weight:600}.prose td,.prose th{text-align:left;vertical-align:top}
.verdict{border-left:4px solid #d64545;padding:.2rem 1rem;margin:.8rem 0}
.none{border-color:#4c9f70}.remedy{color:#555}
.key{display:inline-block;width:.8em;height:.8em;margin-right:.4em}
svg{width:100%;height:auto}svg text{font-size:12px;fill:#444}.note{color:#777}td{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){
body{background:#16181c;color:#ddd}svg text{fill:#bbb}.remedy,.note{color:#aaa}
}
"""
_WIDTH, _HEIGHT = 900, 180
_LATE = "#d64545"


def page(document: TimelineDocument) -> str:
    """Return the page."""
    title = f"Timeline of job {document.job}" if document.job else "Timeline"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{counted(document.ranks, 'rank')}, {counted(document.steps, 'step')}"
        + (f", the first {document.first_steps} set apart" if document.first_steps else "")
        + f"; step: median <b id='median'>{_ms(document.step_ms['median'])}</b>, spread "
        f"{_ms(document.step_ms['spread'])}</p>",
        *map(_verdict, document.verdicts),
        "<h2>Where the time of a step goes</h2>",
        _shares(document),
        "<h2>Steps over time</h2>",
        _steps(document),
        "<h2>How late each rank came</h2>",
        _heat(document),
        "<h2>Ranks by waiting</h2><p>The rank that waits least is the one that the other ranks wait for.</p>",
        _ranks(document),
        "<h2>Collectives</h2>",
        _collectives(document),
        "<h2>Slowest tensors</h2>",
        _tensors(document),
        _what_if(document),
        *(f"<p class='note'>{escape(note)}</p>" for note in document.notes),
        _files(document),
    ]
    return html_page(title, parts, document)


def html_page(title: str, parts: list[str], document: Document) -> str:
    """Return a page that needs no other file; the document is in it as JSON, under the id ``document``."""
    data = document_text(document).replace("<", "\\u003c")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<link rel='icon' href='data:,'><title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + f"\n<script type='application/json' id='document'>{data}</script>\n</body></html>\n"
    )


def _ms(value: float | None) -> str:
    return "-" if value is None else shown_ms(value)


def _verdict(verdict: Verdict) -> str:
    kind = "verdict none" if verdict.kind == "none" else "verdict"
    return (
        f"<div class='{kind}'><b>{escape(verdict.kind)}</b>: {escape(verdict.evidence)}"
        f"<br><span class='remedy'>{escape(verdict.remedy)}</span></div>"
    )


def _shares(document: TimelineDocument) -> str:
    known = [(name, value) for name, value in document.shares.items() if value]
    if not known:
        return "<p>not known</p>"
    at, bars, keys = 0.0, [], []
    for name, value in known:
        width = value * _WIDTH
        label = escape(SHARE_NAMES.get(name, name))
        bars.append(
            f"<rect x='{at:.1f}' y='0' width='{width:.1f}' height='34' fill='{_COLOURS[name]}'>"
            f"<title>{label} {100 * value:.1f} %</title></rect>"
        )
        keys.append(
            f"<span class='key' style='background:{_COLOURS[name]}'></span>{label} {100 * value:.1f} % &ensp;"
        )
        at += width
    return f"{_svg(36, 'Shares of a step')}{''.join(bars)}</svg><p>{''.join(keys)}</p>"


def _svg(height: int, label: str) -> str:
    return f"<svg viewBox='0 0 {_WIDTH} {height}' role='img' aria-label='{escape(label)}'>"


def _steps(document: TimelineDocument) -> str:
    """Draw the steps' times; a first step that is far above the rest is cut at the top."""
    times = document.every_step_ms
    if len(times) < 2:
        return "<p>too few steps</p>"
    usual = sorted(times)[: max(2, int(len(times) * 0.98))]
    top = max(1.1 * usual[-1], 1e-9)
    step = (_WIDTH - 70) / (len(times) - 1)
    points = [
        (60 + number * step, _HEIGHT - 20 - min(time, top) / top * (_HEIGHT - 40))
        for number, time in enumerate(times)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f"{_svg(_HEIGHT, 'Time of each step')}<line x1='60' y1='{_HEIGHT - 20}' x2='{_WIDTH}' "
        f"y2='{_HEIGHT - 20}' stroke='#999'/><text x='0' y='26'>{escape(shown_ms(top))}</text>"
        f"<text x='40' y='{_HEIGHT - 20}'>0</text><text x='60' y='{_HEIGHT - 4}'>first step</text>"
        f"<text x='{_WIDTH - 50}' y='{_HEIGHT - 4}'>last step</text>"
        f"<polyline points='{line}' fill='none' stroke='#3b7dd8' stroke-width='1.5'/></svg>"
    )


def _heat(document: TimelineDocument) -> str:
    """Draw ranks by steps: the darker, the later a rank came than the median one."""
    known = [rank for rank in document.by_rank if rank.late_ms]
    if not known:
        return "<p>The files do not tell.</p>"
    top = max(1e-9, *(late for rank in known for late in rank.late_ms))
    groups = len(known[0].late_ms)
    width, each = (_WIDTH - 120) / groups, document.steps / groups
    cells = []
    for row, rank in enumerate(known):
        cells.append(f"<text x='0' y='{row * 16 + 13}'>{escape(_named(rank)[:16])}</text>")
        for column, late in enumerate(rank.late_ms):
            if late < 0.02 * top:
                continue
            steps = (
                f"steps {int(column * each) + 1} to {max(int(column * each) + 1, int((column + 1) * each))}"
            )
            cells.append(
                f"<rect x='{120 + column * width:.1f}' y='{row * 16 + 1}' width='{width:.1f}' height='14' "
                f"fill='{_LATE}' fill-opacity='{late / top:.2f}'>"
                f"<title>{escape(_named(rank))}, {steps}: {_ms(late)} late</title></rect>"
            )
    label = f"How late each of {counted(len(known), 'rank')} came, step by step; at most {_ms(top)}"
    return f"{_svg(16 * len(known) + 2, label)}{''.join(cells)}</svg><p class='note'>{escape(label)}.</p>"


def _named(rank: RankSummary) -> str:
    place = ", ".join(text for text in (rank.node, f"GPU {rank.gpu}" if rank.gpu else None) if text)
    return f"rank {rank.rank}{f' ({place})' if place else ''}"


def _ranks(document: TimelineDocument) -> str:
    known = [rank for rank in document.by_rank if rank.waiting_ms is not None]
    if not known:
        return "<p>The files do not tell how long each rank waits.</p>"
    known.sort(key=lambda rank: (rank.waiting_ms or 0.0, rank.rank))
    late = {verdict.rank for verdict in document.verdicts if verdict.kind == "straggler"}
    longest = max(rank.waiting_ms or 0.0 for rank in known) or 1.0
    shown = known if len(known) <= 64 else [*known[:32], *known[-32:]]
    rows = []
    for number, rank in enumerate(shown):
        width = (rank.waiting_ms or 0.0) / longest * (_WIDTH - 380)
        colour = _LATE if rank.rank in late else "#3b7dd8"
        y = number * 20
        rows.append(
            f"<text x='0' y='{y + 14}' style='fill:{colour}'>{escape(_named(rank)[:40])}</text>"
            f"<rect x='270' y='{y + 3}' width='{width:.1f}' height='14' fill='{colour}'/>"
            f"<text x='{276 + width:.0f}' y='{y + 14}'>{_ms(rank.waiting_ms)}</text>"
        )
    return f"{_svg(20 * len(shown) + 4, 'Waiting of each rank')}{''.join(rows)}</svg>"


def html_table(header: tuple[str, ...], rows: list[tuple[object, ...]], *, prose: bool = False) -> str:
    """Return a table; a cell that is not known is ``-``. ``prose``: of texts, not of numbers."""
    if not rows:
        return "<p>none</p>"
    head = "".join(f"<th scope='col'>{escape(text)}</th>" for text in header) if any(header) else ""
    body = "".join(
        "<tr>" + "".join(f"<td>{'-' if cell is None else escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    kind = " class='prose'" if prose else ""
    return f"<table{kind}><tr>{head}</tr>{body}</table>"


def _collectives(document: TimelineDocument) -> str:
    header = ("collective", "tensors", "messages", "per message", "bytes", "seconds", "bus GB/s", "site GB/s")
    return html_table(header, [tuple(msgspec.structs.astuple(one)) for one in document.collectives])


def _tensors(document: TimelineDocument) -> str:
    header = ("tensor", "times", "bytes", "mean", "longest")
    return html_table(
        header,
        [(one.name, one.count, one.bytes, _ms(one.mean_ms), _ms(one.longest_ms)) for one in document.tensors],
    )


def _what_if(document: TimelineDocument) -> str:
    what = document.what_if
    rows: list[tuple[object, ...]] = [("as it is", _ms(document.step_ms["median"]))]
    if what["no_straggler"] is not None:
        rows.append(("the last rank comes with the median one", _ms(what["no_straggler"])))
    if what["communication_hidden"] is not None:
        rows.append(("all communication hidden", _ms(what["communication_hidden"])))
    return "<h2>What if</h2>" + html_table(("", "per step"), rows)


def _files(document: TimelineDocument) -> str:
    rows: list[tuple[object, ...]] = [
        (
            one.file,
            one.format,
            ", ".join(map(str, one.ranks[:8])),
            one.events,
            "whole" if one.whole else "cut",
        )
        for one in document.files[:64]
    ]
    return "<h2>Files</h2>" + html_table(("file", "form", "ranks", "events", ""), rows)
