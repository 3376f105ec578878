"""``hpclaunch cancel``: cancel jobs."""

from __future__ import annotations

import click

from hpclaunch.cli._jobs import complete_job


@click.command()
@click.argument("jobs", metavar="JOB...", shell_complete=complete_job, nargs=-1, required=True)
def command(jobs: tuple[str, ...]) -> None:
    """Cancel each JOB with all its ranks: its id or the start of it, its scheduler's id, or last.

    Example: hpclaunch cancel last
    """
    from hpclaunch.host.open_host import open_host
    from hpclaunch.job.follow_job import cancel_job
    from hpclaunch.job.refresh import refresh
    from hpclaunch.job.store import Store
    from hpclaunch.scheduler.registry import get_scheduler
    from hpclaunch.scheduler.scheduler_interface import FINAL_STATES

    store = Store()
    for record in [store.find(job) for job in jobs]:
        scheduler = get_scheduler(record.scheduler)
        with open_host(record.host) as host:
            record = refresh(store, host, scheduler, record)
            if record.state in FINAL_STATES:
                click.echo(f"{record.id} was {record.state} already")
                continue
            record = cancel_job(store, host, scheduler, record)
        click.echo(f"{record.id} {record.state if record.state in FINAL_STATES else 'is being cancelled'}")
