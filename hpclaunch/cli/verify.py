"""``hpclaunch verify``: check that each rank of a job got its binding."""

from __future__ import annotations

import os

import click

from hpclaunch.cli._documents import print_document
from hpclaunch.errors import EXIT_FAILED


@click.command()
@click.argument("job", required=False, metavar="[ID|last]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
@click.pass_context
def command(ctx: click.Context, /, job: str | None, as_json: bool) -> None:
    """Compare the binding that each rank got with the plan; inside a job, for that job.

    The exit status is 0 if every rank got its binding, 1 if a rank did not get it or has not reported.

    Example: hpclaunch verify last
    """
    from hpclaunch.host.open_host import open_host
    from hpclaunch.job.binding_report import NOT_SEEN, BindingVerdict, table
    from hpclaunch.job.refresh import binding_verdict
    from hpclaunch.job.store import Store

    record = Store().find(job or os.environ.get("HPCLAUNCH_JOB_ID") or "last")
    with open_host(record.host) as host:
        found = binding_verdict(host, record) or BindingVerdict(
            ok=True, finding="no binding was planned: it was left to the launcher", ranks=()
        )
    if as_json:
        from hpclaunch.job.job_documents import VerifyDocument

        note = NOT_SEEN if found.ranks else None
        document = VerifyDocument(
            id=record.id, ok=found.ok, finding=found.finding, ranks=found.ranks, note=note
        )
        print_document(document)
    else:
        if found.ranks:
            click.echo(table(found.ranks))
        click.echo(found.finding)
        if found.ranks:
            click.echo(NOT_SEEN)
    ctx.exit(0 if found.ok else EXIT_FAILED)
