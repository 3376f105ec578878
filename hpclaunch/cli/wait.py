"""``hpclaunch wait``: wait for a job, exit with its status."""

import click

from hpclaunch.cli._jobs import goes_on, named, up_to_date
from hpclaunch.cli._options import options, wants_document
from hpclaunch.cli._terminal import printed
from hpclaunch.errors import EXIT_FAILED
from hpclaunch.text_table import printable

_EXIT_TIME_IS_UP = 124  # as that of timeout(1)


@click.command()
@options("wait")
@click.pass_context
def command(ctx: click.Context, job: str, timeout: float | None) -> None:
    """Wait for the end of JOB: its id or the start of it, its scheduler's id, or last (the default)."""
    from hpclaunch.job.job_documents import SubmittedJobDocument, job_document

    handle = named(job)
    with handle.connected(), goes_on(handle):
        try:
            record = handle.wait(timeout=timeout)
        except TimeoutError:
            record = up_to_date(handle)
        result = handle.result() if wants_document() else None
    if record.reason:
        click.echo(f"hpclaunch: job {record.id} {record.state}: {printable(record.reason)}", err=True)
    if not printed(job_document(SubmittedJobDocument, record, result=result)):
        click.echo(record.state)
    if not handle.ended:
        click.echo(f"hpclaunch: job {record.id} has not ended after {timeout:g} s", err=True)
        ctx.exit(_EXIT_TIME_IS_UP)
    ctx.exit(0 if record.state == "done" else EXIT_FAILED)
