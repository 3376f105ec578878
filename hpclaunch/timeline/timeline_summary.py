"""The summary of a job's timelines: one document for ``--json``, the text and the page."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from hpclaunch.amounts import grouped, rounded
from hpclaunch.json_document import document_of
from hpclaunch.package_data import package_constants
from hpclaunch.site.schema import AllreduceFigure
from hpclaunch.text_table import printable, text_table
from hpclaunch.timeline import job_timeline, timeline_documents
from hpclaunch.timeline.late_ranks import lateness_by_rank
from hpclaunch.timeline.rank_trace import Tensor, bus_factor
from hpclaunch.timeline.timeline_verdicts import nearest_figure, sequence_notes, shown_ms, verdicts

LIMIT = package_constants("timeline/limits.yaml", "summary")


def summarised(
    job: job_timeline.JobTimeline,
    places: Mapping[int, job_timeline.Place] | None = None,
    figures: Sequence[AllreduceFigure] = (),
    name: str | None = None,
) -> timeline_documents.TimelineDocument:
    """Return the summary; ``places`` and ``figures``: what the job's record and its site tell."""
    hosts = {rank: job_timeline.Place(trace.host) for rank, trace in job.traces.items() if trace.host}
    where = {**hosts, **(places or {})}
    every = job.times[:: max(1, -(-len(job.times) // LIMIT.points))]
    tensors = [median(columns["tensors"]) for columns in job.columns.values() if columns["tensors"]]
    return timeline_documents.TimelineDocument(
        files=tuple(
            document_of(
                timeline_documents.FileSummary,
                file,
                file=file.name,
                format=file.form,
                ranks=tuple(trace.rank for trace in file.traces),
            )
            for file in job.files
        ),
        job=name,
        ranks=job.ranks,
        steps=job.steps,
        first_steps=job.first,
        step_ms={key: rounded(value) for key, value in job_timeline.step_times(job).items()},
        shares={key: rounded(value, 4) for key, value in job_timeline.shares(job).items()},
        hidden=rounded(job_timeline.hidden_share(job), 4),
        collectives=tuple(_collectives(job, figures)),
        tensors=tuple(_slowest(job)),
        tensors_per_step=max(tensors, default=None),
        by_rank=tuple(_ranks(job, where)),
        what_if={key: rounded(value) for key, value in _what_if(job).items()},
        verdicts=verdicts(job, where, figures),
        notes=(*_notes(job), *sequence_notes(job.traces)),
        every_step_ms=tuple(round(value, 3) for value in every),
    )


def _collectives(
    job: job_timeline.JobTimeline, figures: Sequence[AllreduceFigure]
) -> list[timeline_documents.CollectiveSummary]:
    kinds = [pair for trace in job.traces.values() for pair in trace.collectives.kinds.items()]
    by_kind = grouped((kind, sums) for kind, sums in kinds if sums.count)
    found = []
    for kind, each in by_kind.items():
        timed = [sums for sums in each if sums.messages]
        sums = min(timed, key=lambda one: one.seconds, default=max(each, key=lambda one: one.count))
        known = sums.bytes and not sums.unknown
        rate = None
        if known and sums.seconds > 0 and job.ranks > 1:
            rate = sums.bytes / sums.seconds / 1e9 * bus_factor(kind, job.ranks)
        figure = None
        if figures and kind == "allreduce":
            figure = nearest_figure(figures, sums.bytes / max(sums.messages, 1))
        found.append(
            timeline_documents.CollectiveSummary(
                name=kind,
                count=sums.count,
                messages=sums.messages or None,
                tensors_per_message=rounded(sums.count / sums.messages, 1) if sums.messages else None,
                bytes=sums.bytes if known else None,
                seconds=rounded(sums.seconds, 6) if sums.messages else None,
                bus_gb_s=rounded(rate, 6),
                site_bus_gb_s=figure.bus_gb_s if figure else None,
            )
        )
    return sorted(found, key=lambda one: -(one.seconds or 0))


def _slowest(job: job_timeline.JobTimeline) -> list[timeline_documents.TensorSummary]:
    tensors: dict[str, Tensor] = {}
    for trace in job.traces.values():
        for name, tensor in trace.collectives.tensors.items():
            if name not in tensors or tensor.total_us > tensors[name].total_us:
                tensors[name] = tensor
    steady = [(name, one) for name, one in tensors.items() if one.count > 1 or len(tensors) < LIMIT.slowest]
    steady.sort(key=lambda pair: -pair[1].total_us / pair[1].count)
    return [
        timeline_documents.TensorSummary(
            name=printable(name),
            count=one.count,
            bytes=one.bytes or None,
            mean_ms=round(one.total_us / one.count / 1e3, 3),
            longest_ms=round(one.longest_us / 1e3, 3),
        )
        for name, one in steady[: LIMIT.slowest]
    ]


def _ranks(
    job: job_timeline.JobTimeline, places: Mapping[int, job_timeline.Place]
) -> list[timeline_documents.RankSummary]:
    found = []
    late = _late(job.waits)
    for rank in sorted({*job.traces, *job.waits}):
        place = places.get(rank, job_timeline.Place())
        waits, columns = job.waits.get(rank), job.columns.get(rank)
        found.append(
            timeline_documents.RankSummary(
                rank=rank,
                node=place.node,
                gpu=place.gpu,
                waiting_ms=round(median(waits), 3) if waits else None,
                step_ms=round(median(columns["time"]), 3) if columns and columns["time"] else None,
                late_ms=late.get(rank, ()),
            )
        )
    return found


def _late(waits: Mapping[int, Sequence[float]]) -> dict[int, tuple[float, ...]]:
    """Return of the latest ranks by how many ms they were late in each group of steps, at most."""
    if len(waits) < 2:
        return {}
    late = lateness_by_rank(waits)
    latest = sorted(late, key=lambda rank: -max(late[rank], default=0.0))[: LIMIT.rows]
    size = max(1, -(-len(late[latest[0]]) // LIMIT.groups))
    return {
        rank: tuple(round(max(late[rank][at : at + size]), 3) for at in range(0, len(late[rank]), size))
        for rank in latest
    }


def _what_if(job: job_timeline.JobTimeline) -> dict[str, float | None]:
    """Return a step's median time if the last rank came with the median one, and without communication."""
    answers: dict[str, float | None] = {"no_straggler": None, "communication_hidden": None}
    if not job.steady:
        return answers
    if job.waits:
        typical = max if len(job.waits) == 2 else median
        longest = [typical(values) for values in zip(*job.waits.values(), strict=True)]
        answers["no_straggler"] = median(max(a - b, 0.0) for a, b in zip(job.steady, longest, strict=True))
    exposed = [
        [sum(parts) for parts in zip(*(columns[name] for name in LIMIT.communicating), strict=True)]
        for columns in job.columns.values()
    ]
    least = [min(values) for values in zip(*exposed, strict=True)]  # what is waiting stays
    answers["communication_hidden"] = median(max(a - b, 0.0) for a, b in zip(job.steady, least, strict=True))
    return answers


def _notes(job: job_timeline.JobTimeline) -> list[str]:
    found = []
    for file in job.files:
        if not file.whole or file.repaired:
            damage = _damage(file.whole, file.repaired, file.lost)
            found.append(f"{file.name}: {damage}; --repair OUT writes a whole one")
    missing = job.ranks - len(job.traces)
    if missing > 0 and not any(trace.form == "horovod" for trace in job.traces.values()):
        found.append(f"{missing} of {job.ranks} ranks have no trace here")
    stride = max((trace.steps.stride for trace in job.traces.values()), default=1)
    if stride > 1:
        found.append(f"the trace is long: every {stride}th step is judged")
    measured = job_timeline.allreduce_gb_s(job)
    if measured is None and any(
        sums.unknown for t in job.traces.values() for sums in t.collectives.kinds.values()
    ):
        found.append("bus bandwidth is not known: the traces do not tell the bytes of each collective")
    return found


def _damage(whole: bool, repaired: int, lost: int) -> str:
    parts = [
        "it is cut or was never closed" if not whole else "",
        f"names with quotes that were not escaped: {repaired}" if repaired else "",
        f"damaged places that were passed over: {lost}" if lost else "",
    ]
    return ", ".join(part for part in parts if part)


def shown(document: timeline_documents.TimelineDocument, width: int | None = None) -> str:
    """Return the summary as text; ``width``: of the terminal."""
    from hpclaunch.pages.render_page import render  # it loads jinja2

    parts = [
        (f"{100 * value:5.1f} %", SHARE_NAMES.get(name, name))
        for name, value in document.shares.items()
        if value is not None
    ]
    return render(
        "timeline.txt.j2",
        document=document,
        forms=sorted({file.format for file in document.files}),
        shares=text_table(parts, width=width),
        tables=list(_tables(document, width)),
        ms=shown_ms,
        printable=printable,
    ).rstrip("\n")


SHARE_NAMES = {"unseen": "computing, input or idle: not told apart here"}


def _tables(document: timeline_documents.TimelineDocument, width: int | None) -> Iterator[str]:
    if document.collectives:
        rows = [
            (one.name, *(_cell(getattr(one, key)) for key in LIMIT.columns.values()))
            for one in document.collectives
        ]
        yield text_table(rows, ("collective", *LIMIT.columns), width=width, drop=LIMIT.dropped)
    if len(document.by_rank) > 1:
        by_wait = sorted(document.by_rank, key=lambda one: (one.waiting_ms is None, one.waiting_ms, one.rank))
        ranks = [
            (str(one.rank), one.node or "-", one.gpu or "-", shown_ms(one.waiting_ms), shown_ms(one.step_ms))
            for one in by_wait[:20]
        ]
        more = f"\n... and {len(by_wait) - 20} ranks that wait longer" if len(by_wait) > 20 else ""
        yield text_table(ranks, ("rank", "node", "GPU", "waits per step", "step"), width=width) + more
    if document.tensors:
        tensors = [
            (one.name[:60], str(one.count), _cell(one.bytes), shown_ms(one.mean_ms), shown_ms(one.longest_ms))
            for one in document.tensors[:5]
        ]
        header = ("slowest tensors", "times", "bytes", "mean", "longest")
        yield text_table(tensors, header, width=width, drop=("bytes", "times"))


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def page(document: timeline_documents.TimelineDocument) -> str:
    """Return the summary as one HTML file."""
    from hpclaunch.pages.render_page import PALETTE, html_page  # it loads Jinja, which the text does not need

    times = document.every_step_ms
    usual = sorted(times)[: max(2, int(len(times) * 0.98))]
    late = [rank for rank in document.by_rank if rank.late_ms]
    waiting = [rank for rank in document.by_rank if rank.waiting_ms is not None]
    return html_page(
        "timeline.html.j2",
        document,
        title=f"Timeline of job {document.job}" if document.job else "Timeline",
        ms=shown_ms,
        named=lambda rank: job_timeline.Place(rank.node, rank.gpu).named(rank.rank),
        shares=[
            (f"{SHARE_NAMES.get(name, name)} {100 * share:.1f} %", share, colour)
            for name, colour in zip(job_timeline.SHARES, PALETTE["colours"], strict=True)
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
