"""``hpclaunch jobs``: the jobs that were submitted from here."""

from __future__ import annotations

import json

import click


@click.command()
@click.option("-n", "newest", type=click.IntRange(min=1), help="List only the N newest jobs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout: a list of jobs.")
def command(newest: int | None, as_json: bool) -> None:
    """List the jobs that were submitted from here, the newest last.

    Each scheduler, on this machine or another host, is asked once for all its jobs.

    Example: hpclaunch jobs -n 10
    """
    import datetime as dt

    from hpclaunch.cli._jobs import age, describe
    from hpclaunch.errors import RefusedError
    from hpclaunch.host.open_host import open_host
    from hpclaunch.job.refresh import refresh_all
    from hpclaunch.job.store import Store
    from hpclaunch.scheduler.scheduler_interface import FINAL_STATES
    from hpclaunch.text_table import text_table

    store = Store()
    records, damaged = store.list(newest)
    for sentence in damaged:
        click.echo(f"hpclaunch: {sentence}", err=True)
    fresh = {record.id: record for record in records}
    for name in sorted({record.host for record in records if record.state not in FINAL_STATES}, key=str):
        try:
            with open_host(name) as host:
                there = [record for record in records if record.host == name]
                fresh |= {record.id: record for record in refresh_all(store, host, there)}
        except RefusedError as error:
            click.echo(f"hpclaunch: jobs on {name} are shown in their last known state: {error}", err=True)
    records = [fresh[record.id] for record in records]
    if as_json:
        click.echo(json.dumps([describe(record) for record in records]))
        return
    if not records:
        click.echo("no jobs yet: submit one with hpclaunch submit", err=True)
        return
    now = dt.datetime.now(dt.timezone.utc)
    rows = []
    for record in records:
        code = "" if record.exit_code is None else str(record.exit_code)
        ranks = f"{record.nodes} x {record.tasks // max(record.nodes, 1)}"
        rows.append(
            (record.id, record.name, record.site, record.state, code, ranks, age(record.created, now))
        )
    click.echo(text_table(rows, ("ID", "NAME", "SITE", "STATE", "EXIT", "NODES x RANKS", "AGE")))
