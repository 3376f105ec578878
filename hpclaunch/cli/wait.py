"""``hpclaunch wait``: wait for a job, exit with its status."""

import click

from hpclaunch.cli._in_and_out import print_document
from hpclaunch.cli._options import options
from hpclaunch.errors import EXIT_FAILED
from hpclaunch.text_table import printable

_EXIT_TIME_IS_UP = 124  # as that of timeout(1)


@click.command()
@options("wait")
@click.pass_context
def command(ctx: click.Context, job: str, timeout: float | None, as_json: bool) -> None:
    """Wait for the end of JOB: its id or the start of it, its scheduler's id, or last (the default).

    The exit status is 0 if the job succeeded, 124 if it has not ended when --timeout is over, else 1. Ctrl-C
    ends the waiting, not the job.
    """
    from hpclaunch.api import find_job
    from hpclaunch.cli._jobs import goes_on, up_to_date
    from hpclaunch.job.job_documents import submitted_document
    from hpclaunch.job.refresh import to_stderr

    handle = find_job(job, to_stderr)
    with handle.connected(), goes_on(handle):
        try:
            record = handle.wait(timeout=timeout)
        except TimeoutError:
            record = up_to_date(handle)
        result = handle.result() if as_json else None
    if record.reason:
        click.echo(f"hpclaunch: job {record.id} {record.state}: {printable(record.reason)}", err=True)
    if as_json:
        print_document(submitted_document(record, result))
    else:
        click.echo(record.state)
    if not handle.ended:
        click.echo(f"hpclaunch: job {record.id} has not ended after {timeout:g} s", err=True)
        ctx.exit(_EXIT_TIME_IS_UP)
    ctx.exit(0 if record.state == "done" else EXIT_FAILED)
