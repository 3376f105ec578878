"""The summary as one HTML file."""

import msgspec

from hpclaunch.pages.render_page import PALETTE, html_page
from hpclaunch.timeline.job_timeline import SHARES, Place
from hpclaunch.timeline.timeline_documents import TimelineDocument
from hpclaunch.timeline.timeline_summary import SHARE_NAMES
from hpclaunch.timeline.timeline_verdicts import shown_ms


def page(document: TimelineDocument) -> str:
    """Return the page."""
    times = document.every_step_ms
    usual = sorted(times)[: max(2, int(len(times) * 0.98))]
    late = [rank for rank in document.by_rank if rank.late_ms]
    waiting = [rank for rank in document.by_rank if rank.waiting_ms is not None]
    return html_page(
        "timeline.html.j2",
        document,
        title=f"Timeline of job {document.job}" if document.job else "Timeline",
        ms=shown_ms,
        named=lambda rank: Place(rank.node, rank.gpu).named(rank.rank),
        shares=[
            (f"{SHARE_NAMES.get(name, name)} {100 * share:.1f} %", share, colour)
            for name, colour in zip(SHARES, PALETTE["colours"], strict=True)
            if (share := document.shares[name])
        ],
        times=[(number / max(1, len(times) - 1), time) for number, time in enumerate(times)],
        # A first step that is far above the rest is cut at the top.
        top=max(1.1 * usual[-1], 1e-9) if usual else None,
        late=late,
        latest=max((1e-9, *(time for rank in late for time in rank.late_ms))),
        waiting=sorted(waiting, key=lambda rank: (rank.waiting_ms or 0.0, rank.rank)),
        stragglers={verdict.rank for verdict in document.verdicts if verdict.kind == "straggler"},
        **_tables(document),
    )


def _tables(document: TimelineDocument) -> dict[str, list[tuple[object, ...]]]:
    what = document.what_if
    ifs = {
        "as it is": document.step_ms["median"],
        "the last rank comes with the median one": what["no_straggler"],
        "all communication hidden": what["communication_hidden"],
    }
    return {
        "collectives": [msgspec.structs.astuple(one) for one in document.collectives],
        "tensors": [
            (one.name, one.count, one.bytes, shown_ms(one.mean_ms), shown_ms(one.longest_ms))
            for one in document.tensors
        ],
        "what_if": [
            (text, shown_ms(value)) for text, value in ifs.items() if value is not None or text == "as it is"
        ],
        "files": [
            (
                one.file,
                one.format,
                ", ".join(map(str, one.ranks[:8])),
                one.events,
                "whole" if one.whole else "cut",
            )
            for one in document.files[:64]
        ],
    }
