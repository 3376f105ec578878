"""The report as text. Pure."""

from collections.abc import Iterator, Sequence

from hpclaunch.amounts import counted, format_bytes
from hpclaunch.package_data import package_constants
from hpclaunch.text_table import printable, text_table
from hpclaunch.usage.report_documents import ReportDocument
from hpclaunch.walltime import format_walltime

LIMIT = package_constants("usage/limits.yaml", "tables")


def shown(report: ReportDocument, width: int | None = None) -> str:
    """Return the report for a terminal of that width."""
    parts = [text_table(list(_about(report)), width=width)]
    if report.by_node:
        parts.append(_table("nodes", LIMIT.node_header, list(node_rows(report)), width))
    if report.by_rank:
        parts.append(_table("ranks", LIMIT.rank_header, list(rank_rows(report)), width))
    if report.next:
        rows = [("", one.what, one.ask or "-", one.text) for one in report.next]
        parts.append("next time\n" + text_table(rows, width=width))
    if report.unknown:
        parts.append("\n".join(["not known", *(f"  {printable(text)}" for text in report.unknown)]))
    return "\n\n".join(parts)


def _table(title: str, header: Sequence[str], rows: list[tuple[str, ...]], width: int | None) -> str:
    left = len(rows) - LIMIT.most_rows
    more = f"  ... and {left} more (--json has all)" if left > 0 else ""
    shown = [("", *row) for row in rows[: LIMIT.most_rows]]
    table = text_table(shown, ("", *header), width=width, drop=LIMIT.dropped)
    return "\n".join(filter(None, (title, table, more)))


def _about(report: ReportDocument) -> Iterator[tuple[str, str]]:
    code = "" if report.exit_code is None else f", exit code {report.exit_code}"
    yield "job", report.id if report.name == report.id else f"{report.id} ({report.name})"
    yield "state", f"{report.state}{code}"
    yield "site", f"{report.site} ({report.scheduler} {report.scheduler_id or 'without id'})"
    ranks = f", {counted(report.tasks, 'rank')}" if report.tasks is not None else ""
    jobs = f", {counted(report.jobs, 'job')} of an array" if report.jobs > 1 else ""
    yield "size", f"{counted(report.nodes, 'node')}{ranks}{jobs}"
    yield from time_rows(report)
    if report.cpu_s is not None:
        yield "CPU time", f"{format_walltime(round(report.cpu_s))} of all processes (scheduler)"
    for size, whose in ((report.rank_memory, "of the largest task"), (report.job_memory, "of all nodes")):
        if size is not None:
            yield "memory", f"{format_bytes(size)} {whose}, at its peak (scheduler)"
    before = ""
    for name, text in fact_rows(report):
        if text is not None:
            yield "" if name == before else name, text
        before = name


def fact_rows(report: ReportDocument) -> Iterator[tuple[str, str | None]]:
    """Yield energy, speed, binding and cost; None: not known."""
    for figure in report.energy:
        power = "" if figure.power_w is None else f", {figure.power_w:,.0f} W on average"
        kwh, joules = f"{figure.joules / 3.6e6:,.4g} kWh", f"{figure.joules:,.0f} J"
        amount = kwh if figure.joules >= 36_000 else joules
        yield "energy", f"{amount}{power} ({figure.source}: {figure.how})"
    if speed := report.speed:
        change = None if speed.trend is None else f"{100 * speed.trend:+.1f} %"
        trend = f"; from the first third to the last one {change}" if change else ""
        yield (
            "speed",
            f"{speed.steps_per_s:.4g} steps per second, {speed.steps} steps{trend} ({speed.source})",
        )
    else:
        yield "speed", None
    yield "binding", report.binding.finding if report.binding else None
    yield "cost", report.cost.text if report.cost else None


def time_rows(report: ReportDocument) -> Iterator[tuple[str, str]]:
    """Yield the rows about time."""
    times = report.times
    of = "" if times.limit_s is None else f" of {format_walltime(times.limit_s)}"
    for name, seconds, more in (
        ("in the queue", times.queue_s, ""),
        ("start-up", times.start_up_s, ", until the first rank started"),
        ("ranks ran", times.run_s, ""),
        ("altogether", times.wall_s, f"{of}{', the longest job' if report.jobs > 1 else ''}"),
    ):
        yield name, "not known" if seconds is None else f"{duration(seconds)}{more}"
    if times.restarts:
        gaps = "" if times.between_runs_s is None else f", {duration(times.between_runs_s)} without ranks"
        yield "restarts", f"{times.restarts}{gaps}; work lost: {times.lost}"


def duration(seconds: float) -> str:
    """Write a time for people: HH:MM:SS, short ones in seconds."""
    return format_walltime(round(seconds)) if seconds >= 60 else f"{seconds:.1f} s"


def size_text(size: int | None) -> str | None:
    """Write bytes; None: they are not known."""
    return None if size is None else format_bytes(size)


def node_rows(report: ReportDocument) -> Iterator[tuple[str, ...]]:
    """Yield a row per node."""
    for node in report.by_node:
        busy = [gpu.busy for gpu in node.gpus if gpu.busy is not None]
        memory = [gpu.memory_peak for gpu in node.gpus if gpu.memory_peak is not None]
        yield (
            node.node if node.index is None else f"{node.node} [{node.index}]",
            str(node.looks),
            _number(node.cpus_busy, ".1f"),
            str(node.cpus),
            size_text(node.memory_peak) or "-",
            size_text(node.memory_of) or "-",
            node.memory_source or "-",
            f"{sum(busy) / len(busy):.0f} %" if busy else "-",
            size_text(max(memory, default=None)) or "-",
            next((f"{f.power_w:.0f} W ({f.source})" for f in node.energy if f.power_w is not None), "-"),
        )


def rank_rows(report: ReportDocument) -> Iterator[tuple[str, ...]]:
    """Yield a row per rank."""
    for rank in report.by_rank:
        number = str(rank.rank) if rank.index is None else f"{rank.rank} [{rank.index}]"
        yield (
            number,
            rank.node,
            _number(rank.cpus_busy, ".2f"),
            _number(rank.cpus_most, ".2f"),
            "-" if rank.cpus_bound is None else counted(rank.cpus_bound, "CPU"),
            size_text(rank.memory_peak) or "-",
            "-" if rank.gpu_busy is None else f"{rank.gpu_busy:.0f} %",
            "-" if rank.waiting_ms is None else f"{rank.waiting_ms:.1f} ms",
        )


def _number(value: float | None, spec: str) -> str:
    return "-" if value is None else format(value, spec)
