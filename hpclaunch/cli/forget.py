"""``hpclaunch forget``: remove the records of ended jobs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._jobs import act, named_or_all, up_to_date
from hpclaunch.cli._options import options
from hpclaunch.errors import EXIT_BAD_INPUT, BadInputError

if TYPE_CHECKING:
    from hpclaunch.api import JobHandle


@click.command()
@options("forget")
@click.pass_context
def command(ctx: click.Context, /, jobs: tuple[str, ...], every: bool, force: bool, **among: Any) -> None:
    """Remove the folder of each JOB on this machine: its record, script, log and result."""
    if every and force:
        raise click.UsageError("--force is for jobs that are named, not for --all")
    found = named_or_all(jobs, every, **among)
    handles = [handle for handle in found if handle.ended or not every]
    ctx.exit(0 if act(handles, partial(_forget, force=force)) else EXIT_BAD_INPUT)


def _forget(handle: JobHandle, *, force: bool) -> str:
    """Remove a job's folder and return what was done. Raises BadInputError where the job has not ended."""
    record = handle.record if force else up_to_date(handle)
    if not handle.ended and not force:
        raise BadInputError.case("forget: not over", record=record)
    handle.forget()
    there = f"; its folder on {record.host} stays: {record.folder}" if record.host else ""
    return f"{record.id} forgotten{there}"
