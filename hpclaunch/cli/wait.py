"""``hpclaunch wait``: wait for a job, exit with its status."""

import click

from hpclaunch.cli._in_and_out import print_document
from hpclaunch.cli._options import options
from hpclaunch.errors import EXIT_FAILED
from hpclaunch.text_table import printable


@click.command()
@options("wait")
@click.pass_context
def command(ctx: click.Context, job: str, as_json: bool) -> None:
    """Wait for the end of JOB: its id or the start of it, its scheduler's id, or last (the default).

    The exit status is 0 if the job succeeded, else 1. Ctrl-C ends the waiting, not the job.

    Example: hpclaunch wait last && hpclaunch logs last
    """
    from hpclaunch.api import find_job
    from hpclaunch.job.job_documents import submitted_document
    from hpclaunch.job.refresh import to_stderr

    handle = find_job(job, to_stderr)
    with handle.connected():
        record = handle.wait()
        result = handle.result() if as_json else None
    if record.reason:
        click.echo(f"hpclaunch: job {record.id} {record.state}: {printable(record.reason)}", err=True)
    if as_json:
        print_document(submitted_document(record, result))
    else:
        click.echo(record.state)
    ctx.exit(0 if record.state == "done" else EXIT_FAILED)
