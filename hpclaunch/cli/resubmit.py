"""``hpclaunch resubmit``: submit the request of a recorded job again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._job_options import SettingsCommand, given_settings, setting_options
from hpclaunch.cli._options import options
from hpclaunch.errors import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from hpclaunch.job.record import JobRecord


@click.command(cls=SettingsCommand, params=setting_options(leave_out=("exclude_bad_nodes",)))
@options("resubmit")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    job: str,
    exclude_bad_nodes: bool,
    dry_run: bool,
    strict: bool,
    wait: bool | None,
    test_first: bool,
    here: bool | None,
    **options: Any,
) -> None:
    """Submit the request of JOB again, in the folder where it ran; options replace what it requested."""
    from hpclaunch.cli.submit import run, settings_table, show
    from hpclaunch.job.prepare import SubmitMode, repeat
    from hpclaunch.job.store import Store

    if strict and not dry_run:
        raise click.UsageError("--strict belongs to --dry-run")
    record = Store().find(job)
    bad = _bad_nodes(record) if exclude_bad_nodes else {}
    prepared = repeat(record, tuple(bad), SubmitMode(here=here), given_settings(options))
    click.echo(settings_table(prepared.settings, err=True), err=True)
    if dry_run:
        ok = show(prepared, dry_run=True)
        ctx.exit(0 if ok or not strict else EXIT_BAD_INPUT)
    wait = prepared.waits if wait is None else wait
    ctx.exit(run(prepared, wait=wait, test_first=test_first))


def _bad_nodes(record: JobRecord) -> dict[str, str]:
    """Return the nodes that failed, each with the reason, and print them."""
    from hpclaunch.host.this_machine import open_host
    from hpclaunch.job.failure_causes import bad_nodes
    from hpclaunch.job.follow_job import failed_nodes, log_text
    from hpclaunch.job.log_extract import read_traces

    with open_host(record.host) as host:
        reports = read_traces(host, [record.folder])[record.folder].log
        bad = bad_nodes(record, f"{log_text(host, record)}\n{reports}")
        bad |= {node: "it failed" for node in failed_nodes(host, record) if node not in bad}
    for node, why in bad.items():
        click.echo(f"hpclaunch: left out: {node}: {why}", err=True)
    if not bad:
        click.echo(f"hpclaunch: no node failed in job {record.id}, so none is left out", err=True)
    return bad
