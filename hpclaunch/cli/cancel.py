"""``hpclaunch cancel``: cancel jobs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from hpclaunch.cli._jobs import chosen, complete_job, job_filters

if TYPE_CHECKING:
    from hpclaunch.job.record import JobRecord
    from hpclaunch.job.store import Store


@click.command()
@click.argument("jobs", metavar="JOB...", shell_complete=complete_job, nargs=-1)
@click.option("--all", "every", is_flag=True, help="Cancel all jobs that have not ended.")
@job_filters
@click.pass_context
def command(
    ctx: click.Context,
    jobs: tuple[str, ...],
    every: bool,
    sites: tuple[str, ...],
    names: tuple[str, ...],
    since: str | None,
) -> None:
    """Cancel each JOB with all its ranks: an id, either end of one, the scheduler's id, a name, or last.

    With --all: all jobs that have not ended, of these the ones that --site, --name and --since choose. A job
    that cannot be cancelled does not keep the other jobs from it; the exit status is then 4.

    \b
    Examples:
      hpclaunch cancel last
      hpclaunch cancel --all --site lumi-g
    """
    from hpclaunch.errors import EXIT_REFUSED, HpclaunchError
    from hpclaunch.job.store import Store
    from hpclaunch.scheduler.scheduler_interface import FINAL_STATES

    if bool(jobs) == every:
        raise click.UsageError("name the jobs, or give --all")
    if not every and (sites or names or since):
        raise click.UsageError("--site, --name and --since choose among the jobs of --all")
    store = Store()
    if every:
        records = chosen(store.list()[0], sites, names, since)
        records = [record for record in records if record.state not in FINAL_STATES]
    else:
        records = list({(found := store.find(job)).id: found for job in jobs}.values())
    code = 0
    for record in records:
        try:
            _cancel(store, record)
        except HpclaunchError as error:
            click.echo(f"hpclaunch: {error}", err=True)
            code = EXIT_REFUSED
    ctx.exit(code)


def _cancel(store: Store, record: JobRecord) -> None:
    from hpclaunch.errors import RefusedError
    from hpclaunch.host.open_host import open_host
    from hpclaunch.job.follow_job import cancel_job
    from hpclaunch.job.refresh import refresh
    from hpclaunch.scheduler.registry import get_scheduler
    from hpclaunch.scheduler.scheduler_interface import FINAL_STATES

    scheduler = get_scheduler(record.scheduler)
    with open_host(record.host) as host:
        with suppress(RefusedError):  # what cannot be asked for may still be cancelled
            record = refresh(store, host, scheduler, record)
        if record.state in FINAL_STATES:
            click.echo(f"{record.id} was {record.state} already")
            return
        record = cancel_job(store, host, scheduler, record)
    click.echo(f"{record.id} {record.state if record.state in FINAL_STATES else 'is being cancelled'}")
