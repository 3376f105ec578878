"""The summary as one HTML file."""

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
    )
