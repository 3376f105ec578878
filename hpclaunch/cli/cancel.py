"""``hpclaunch cancel``: cancel jobs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._jobs import act, named_or_all
from hpclaunch.cli._options import options
from hpclaunch.errors import EXIT_REFUSED, RefusedError

if TYPE_CHECKING:
    from hpclaunch.api import JobHandle


@click.command()
@options("cancel")
@click.pass_context
def command(ctx: click.Context, /, jobs: tuple[str, ...], every: bool, **among: Any) -> None:
    """Cancel each JOB with all its ranks: an id, either end of one, the scheduler's id, a name, or last."""
    found = named_or_all(jobs, every, **among)
    handles = [handle for handle in found if not (every and handle.ended)]
    ctx.exit(0 if act(handles, _cancel) else EXIT_REFUSED)


def _cancel(handle: JobHandle) -> str:
    """Cancel a job and return what was done. Raises HpclaunchError."""
    with handle.connected():
        with suppress(RefusedError):  # what cannot be asked for may still be cancelled
            handle.status()
        before = handle.record.state
        ended = handle.ended
        handle.cancel()
    if ended and handle.record.state == before:
        return f"{handle.id} was {before} already"
    return f"{handle.id} {handle.record.state if handle.ended else 'is being cancelled'}"
