"""``hpclaunch verify``: check that each rank of a job got its binding."""

import os
from pathlib import Path

import click

from hpclaunch.cli._in_and_out import check_picture_name, print_document, write_picture
from hpclaunch.cli._options import options
from hpclaunch.errors import EXIT_FAILED


@click.command()
@options("verify")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    job: str | None,
    attach: str | None,
    site: str | None,
    summary: bool,
    as_json: bool,
    picture: Path | None,
    node: str | None,
) -> None:
    """Compare the binding that each rank got with the plan; inside a job, for that job.

    With --attach it reads on the nodes what the ranks of a running job have, and judges it for the site's
    node. The exit status is 0 if every rank got its binding, 1 if a rank did not get it or has not reported.

    \b
    Examples:
      hpclaunch verify last
      hpclaunch verify last --picture got.svg
      hpclaunch verify --attach 123456 --site lumi-g
    """
    if attach is not None:
        from hpclaunch.cli._attached_job import verify_attached

        given = {"JOB": job, "--picture": picture, "--node": node}
        if others := [name for name, value in given.items() if value is not None]:
            raise click.UsageError(f"--attach does not go with {others[0]}")
        ctx.exit(0 if verify_attached(attach, site, as_json=as_json, summary=summary) else EXIT_FAILED)
    _refuse_without_attach(site, summary)
    if node is not None and picture is None:
        raise click.UsageError("--node: it is the node of --picture")
    check_picture_name(picture)
    ctx.exit(0 if _recorded(job, picture, node, as_json=as_json) else EXIT_FAILED)


def _refuse_without_attach(site: str | None, summary: bool) -> None:
    if summary:
        raise click.UsageError("--summary goes with --attach")
    if site is not None:
        raise click.UsageError("--site goes with --attach: a job of hpclaunch is verified for its own site")


def _recorded(job: str | None, picture: Path | None, node: str | None, *, as_json: bool) -> bool:
    """Print the verdict on a job of hpclaunch; return whether every rank got its binding."""
    from hpclaunch.api import find_job
    from hpclaunch.job.binding_report import NOT_SEEN, BindingVerdict, table
    from hpclaunch.job.refresh import to_stderr

    handle = find_job(job or os.environ.get("HPCLAUNCH_JOB_ID") or "last", to_stderr)
    record = handle.record
    found = handle.binding() or BindingVerdict(
        ok=True, finding="no binding was planned: it was left to the launcher", ranks=()
    )
    if as_json:
        from hpclaunch.job.job_documents import VerifyDocument
        from hpclaunch.json_document import document_of

        note = NOT_SEEN if found.ranks else None
        print_document(document_of(VerifyDocument, found, id=record.id, note=note))
    else:
        if found.ranks:
            click.echo(table(found.ranks))
        click.echo(found.finding)
        if found.ranks:
            click.echo(NOT_SEEN)
    if picture is not None:
        from hpclaunch.job.binding_picture import binding_picture

        drawing, drawn = binding_picture(record, found.ranks, node)
        write_picture(picture, drawing, f" of {drawn}")
    return found.ok
