"""``hpclaunch fetch``: bring files of a job to this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpclaunch.amounts import counted
from hpclaunch.cli._options import options, wants_document
from hpclaunch.cli._terminal import printed

if TYPE_CHECKING:
    from hpclaunch.job.fetch_results import RemoteFile


@click.command()
@options("fetch")
def command(job: str, paths: tuple[str, ...], to: Path | None, force: bool) -> None:
    """Bring the results of JOB here: its id or the start of it, its scheduler's id, or last."""
    from hpclaunch.host.this_machine import open_host
    from hpclaunch.job.fetch_results import fetch, list_results
    from hpclaunch.job.job_documents import FetchDocument, FetchedFile
    from hpclaunch.job.store import Store

    record = Store().find(job)
    target = to or Path(record.id)

    def told(file: RemoteFile) -> None:
        if not wants_document():
            click.echo(f"{_plain(file.name)}  {counted(file.size, 'byte')}")

    with open_host(record.host) as host:
        found = list_results(host, record, paths)
        fetch(host, found.files, target, replace=force, done=told)
    for path in found.left_out:
        click.echo(f"hpclaunch: left out: {_plain(path)}", err=True)
    document = FetchDocument(
        id=record.id,
        host=record.host,
        folder=str(target.absolute()),
        files=[FetchedFile(name=_plain(file.name), bytes=file.size) for file in found.files],
        left_out=[_plain(path) for path in found.left_out],
    )
    if not printed(document):
        total = counted(sum(file.size for file in found.files), "byte")
        click.echo(f"hpclaunch: {counted(len(found.files), 'file')}, {total}, in {target}", err=True)


def _plain(name: str) -> str:
    """Return a name that a terminal shows and UTF-8 can write, with escapes for all other characters."""
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in shown)
