"""``hpclaunch jobs``: the jobs that were submitted from here."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._jobs import age, chosen, shown_state
from hpclaunch.cli._options import options, wants_document
from hpclaunch.cli._terminal import print_document, terminal_table
from hpclaunch.text_table import to_stderr

if TYPE_CHECKING:
    from hpclaunch.job.record import JobRecord


@click.command()
@options("jobs")
def command(newest: int | None, states: tuple[str, ...], **among: Any) -> None:
    """List the jobs that were submitted from here, the newest last."""
    from hpclaunch import api

    filtered = bool(states) or any(among.values())
    handles = chosen(api.jobs(None if filtered else newest, to_stderr), **among)
    if newest and not states:
        handles = handles[-newest:]
    api.update(handles, to_stderr)
    records = [handle.record for handle in handles if not states or handle.record.state in states]
    if newest:
        records = records[-newest:]
    if wants_document():
        from hpclaunch.job.job_documents import JobDocument, job_document

        print_document([job_document(JobDocument, record) for record in records])
    elif records:
        click.echo(_table(records))
    elif filtered:
        click.echo("no job fits", err=True)
    else:
        click.echo("no jobs yet: submit one with hpclaunch submit", err=True)


def _table(records: list[JobRecord]) -> str:
    now = dt.datetime.now(dt.timezone.utc)
    rows = [
        (
            record.id,
            record.scheduler_id or "",
            record.name,
            record.site,
            shown_state(record),
            "" if record.exit_code is None else str(record.exit_code),
            f"{record.nodes} x {record.tasks // max(record.nodes, 1)}",
            age(record.created, now),
        )
        for record in records
    ]
    header = ("ID", "JOBID", "NAME", "SITE", "STATE", "EXIT", "NODES x RANKS", "AGE")
    drop = ("NODES x RANKS", "AGE", "JOBID", "EXIT", "SITE")
    return terminal_table(rows, header, drop=drop, states=4)
