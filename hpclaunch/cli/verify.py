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
    from hpclaunch.job.report import judge, read_report, table
    from hpclaunch.job.run import read_log
    from hpclaunch.job.store import Store

    record = Store().find(job or os.environ.get("HPCLAUNCH_JOB_ID") or "last")
    chunks: list[bytes] = []
    read_log(LocalHost(), record, chunks.append)
    reports = read_report(b"".join(chunks).decode(errors="replace"))
    if record.plan.get("binding") is None:
        good, finding = True, "no binding was planned: it was left to the launcher"
    else:
        good, finding = judge(reports, record.tasks)
    if as_json:
        import msgspec

        rows = [msgspec.to_builtins(report) for report in reports]
        click.echo(json.dumps({"id": record.id, "ok": good, "finding": finding, "ranks": rows}))
    else:
        if reports:
            click.echo(table(reports))
        click.echo(finding)
    ctx.exit(0 if good else EXIT_FAILED)
