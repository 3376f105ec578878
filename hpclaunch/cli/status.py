"""``hpclaunch status``: the state of a job."""

from __future__ import annotations

import click

from hpclaunch.cli._jobs import complete_job


@click.command()
@click.argument("job", shell_complete=complete_job, default="last")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
def command(job: str, as_json: bool) -> None:
    """Show the state of JOB: its id or the start of it, its scheduler's id, or last (the default).

    Example: hpclaunch status last
    """
    from hpclaunch.cli._jobs import describe, shown_state, up_to_date
    from hpclaunch.job.store import Store
    from hpclaunch.text_table import text_table

    store = Store()
    record = up_to_date(store, store.find(job))
    if as_json:
        import json

        click.echo(json.dumps(describe(record)))
        return
    shown = {
        "job": f"{record.id} ({record.name})",
        "state": shown_state(record)
        if record.exit_code is None
        else f"{record.state}, exit code {record.exit_code}",
        "reason": record.reason,
        "site": f"{record.site} ({record.scheduler} {record.scheduler_id or 'without id'})",
        "size": f"{record.nodes} nodes, {record.tasks} ranks",
        "created": record.created,
        "started": record.started,
        "ended": record.ended,
        "folder": record.folder if record.host is None else f"{record.folder} on {record.host}",
    }
    click.echo(text_table((name, value) for name, value in shown.items() if value is not None))
    for index, of_array in sorted(record.array.items()):
        code = "" if of_array.exit_code is None else f", exit code {of_array.exit_code}"
        click.echo(
            f"  {index:<6} {of_array.state}{code}" + (f": {of_array.reason}" if of_array.reason else "")
        )
