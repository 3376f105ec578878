"""``hpclaunch status``: the state of a job, and why it is so."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from hpclaunch.amounts import counted
from hpclaunch.cli._jobs import named, shown_state, up_to_date
from hpclaunch.cli._options import is_asked, options, wants_document
from hpclaunch.cli._terminal import print_document, terminal_table
from hpclaunch.walltime import format_walltime

if TYPE_CHECKING:
    from hpclaunch.job.record import Failure, JobRecord


@click.command()
@options("status")
def command(job: str, watch: float | None) -> None:
    """Show the state of JOB, and why it failed: the rank, the node, the decisive lines of the log, a
    remedy.
    """
    from hpclaunch.job.job_documents import JobDocument, job_document

    if watch and wants_document():
        raise click.UsageError(f"--watch and --{'csv' if is_asked('csv') else 'json'} exclude each other")
    handle = named(job)
    if wants_document():
        document = job_document(JobDocument, up_to_date(handle))
        print_document([document] if is_asked("csv") else document)
        return
    with handle.connected() if watch else nullcontext():
        while True:
            record = up_to_date(handle)
            if watch:
                click.clear()  # a terminal only
            click.echo(terminal_table([*_why(record), *_what(record)], states=1, only="state"))
            if not watch or handle.ended:
                return
            time.sleep(watch)


def _why(record: JobRecord) -> Iterator[tuple[str, str]]:
    yield "job", f"{record.id} ({record.name})"
    yield "state", shown_state(record) + _end(record.exit_code, signals=False)
    if record.reason:
        yield "reason", record.reason
    of_array = ((f"job {index}: ", job.hang) for index, job in sorted(record.array.items()))
    for whose, hang in (("", record.hang), *of_array):
        if hang:
            yield "hung at", whose + hang.finding
            if hang.remedy:
                yield "remedy", hang.remedy
    if record.failure:
        yield from _failed(record.failure, record.tasks)


def _failed(failure: Failure, ranks: int) -> Iterator[tuple[str, str]]:
    yield from _who(failure, ranks)
    if failure.where:
        yield "where", failure.where
    stderr = f"in stderr of rank {failure.stderr_rank}" if failure.candidates else "in stderr"
    file = failure.file or ""
    shown = f"in {'...' * (len(file) > 50)}{file[-50:]}" * bool(file)
    first = shown or (stderr if failure.stderr_lines else "in log")
    names = {failure.stderr_lines or failure.file_lines: "in log", 0: first}
    for number, line in enumerate(failure.lines):
        yield names.get(number, ""), line
    if failure.remedy:
        yield "remedy", f"{failure.cause}: {failure.remedy}"


def _who(failure: Failure, ranks: int) -> Iterator[tuple[str, str]]:
    """Yield the rows about the rank that failed first, and how many failed alike."""
    rank = failure.rank
    if failure.candidates:
        rank = f"not known, any of {failure.candidates} may have failed first"
    if rank is not None or failure.node:
        where = f" on {failure.node}" if failure.node else ""
        yield "rank", f"{rank or ''}{where}{_end(failure.exit_code, signals=True)}".strip()
    elif failure.stderr_lines:
        yield "rank", f"not known; the stderr of rank {failure.stderr_rank} has these lines"
    if failure.ranks_alike and ranks > 1:
        yield "alike", f"{failure.ranks_alike} of {counted(ranks, 'rank')} wrote this error"


def _what(record: JobRecord) -> Iterator[tuple[str, str]]:
    limit, restarts = record.limit_s, record.worker_restarts
    of = f" of {format_walltime(limit)}" if isinstance(limit, int) else ""
    rows = {
        "site": f"{record.site} ({record.scheduler} {record.scheduler_id or 'without id'}"
        f"{f' on {record.cluster}' if record.cluster else ''})",
        "queue": record.queue,
        "size": f"{counted(record.nodes, 'node')}, {counted(record.tasks, 'rank')}",
        "nodes": ", ".join(record.node_names or ()),
        "time": None if record.elapsed_s is None else f"{format_walltime(record.elapsed_s)}{of}",
        "restarts": str(record.restarts or ""),
        "workers": f"started again by torchrun, {counted(restarts, 'time')}" if restarts else None,
        "binding": record.binding.finding if record.binding else None,
        "created": record.created,
        "started": record.started,
        "ended": record.ended,
        "folder": record.folder if record.host is None else f"{record.folder} on {record.host}",
        "log": record.log,
    }
    yield from ((name, text) for name, text in rows.items() if text)
    for index, of_array in sorted(record.array.items()):
        reason = f": {of_array.reason}" if of_array.reason else ""
        yield f"  {index}", f"{of_array.state}{_end(of_array.exit_code, signals=False)}{reason}"


def _end(code: int | None, *, signals: bool) -> str:
    """Return an exit code in words; ``signals``: of a rank, with the signal that it stands for."""
    if code is None:
        return ""
    by = code - 128
    named = signals and by in signal.valid_signals()
    return f", exit code {code}" + (f" ({signal.Signals(by).name})" if named else "")
