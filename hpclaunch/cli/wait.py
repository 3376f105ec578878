"""``hpclaunch wait``: wait for a job, exit with its status."""

from __future__ import annotations

import click

from hpclaunch.cli._jobs import complete_job
from hpclaunch.errors import EXIT_FAILED
from hpclaunch.text_table import printable


@click.command()
@click.argument("job", shell_complete=complete_job, default="last")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document: id, state, exit_code, result."
)
@click.pass_context
def command(ctx: click.Context, job: str, as_json: bool) -> None:
    """Wait for the end of JOB: its id or the start of it, its scheduler's id, or last (the default).

    The exit status is 0 if the job succeeded, else 1. Ctrl-C ends the waiting, not the job.

    Example: hpclaunch wait last && hpclaunch logs last
    """
    from hpclaunch.cli._documents import print_document
    from hpclaunch.host.open_host import open_host
    from hpclaunch.job.follow_job import result_of, wait_job
    from hpclaunch.job.job_documents import submitted_document
    from hpclaunch.job.store import Store
    from hpclaunch.scheduler.registry import get_scheduler

    store = Store()
    record = store.find(job)
    with open_host(record.host) as host:
        record = wait_job(store, host, get_scheduler(record.scheduler), record)
        result = result_of(host, record) if as_json else None
    if record.reason:
        click.echo(f"hpclaunch: job {record.id} {record.state}: {printable(record.reason)}", err=True)
    if as_json:
        print_document(submitted_document(record, result))
    else:
        click.echo(record.state)
    ctx.exit(0 if record.state == "done" else EXIT_FAILED)
