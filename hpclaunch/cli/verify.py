"""``hpclaunch verify``: did each rank of a job get its binding."""

from __future__ import annotations

import json
import os

import click

from hpclaunch.errors import EXIT_FAILED


@click.command()
@click.argument("job", required=False, metavar="[ID|last]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def command(ctx: click.Context, /, job: str | None, as_json: bool) -> None:
    """Show what each rank got beside what was planned; inside a job, of that job.

    Exit status 0 when every rank got its binding, 1 when one did not or has not reported.

    Example: hpclaunch verify last
    """
    from hpclaunch.host.local import LocalHost
    from hpclaunch.job.report import BindingVerdict, table, verdict
    from hpclaunch.job.run import log_text
    from hpclaunch.job.store import Store

    record = Store().find(job or os.environ.get("HPCLAUNCH_JOB_ID") or "last")
    if record.plan.get("binding") is None:
        found = BindingVerdict(
            ok=True, finding="no binding was planned: the launcher was left to it", ranks=()
        )
    else:
        found = verdict(log_text(LocalHost(), record), record.tasks)
    if as_json:
        import msgspec

        click.echo(json.dumps({"id": record.id, **msgspec.to_builtins(found)}))
    else:
        if found.ranks:
            click.echo(table(found.ranks))
        click.echo(found.finding)
    ctx.exit(0 if found.ok else EXIT_FAILED)
