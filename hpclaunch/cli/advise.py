"""``hpclaunch advise``: what to do before a job runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hpclaunch.cli._in_and_out import printed
from hpclaunch.cli._options import options
from hpclaunch.plural import counted
from hpclaunch.units import format_bytes

if TYPE_CHECKING:
    from hpclaunch.check.io_advice import Advice
    from hpclaunch.check.io_facts import IoFacts


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Give advice on what a job uses.

    Example: hpclaunch advise io /scratch/project/train --site lumi-g
    """


@command.command(name="io")
@options("advise io")
def advise_io(path: str, site: str | None, limit_s: float) -> None:
    """Count the files of PATH, read its file system, and say how ranks should read it.

    It reads type, striping and quotas of the file system, and the room of the nodes' own storage. Advice:
    pack small files, stripe large ones, stage to the nodes, read by shares; each with its source.
    """
    import os

    from hpclaunch.check.io_advice import IoDocument
    from hpclaunch.check.io_advice import advise_io as advise
    from hpclaunch.check.io_facts import gather_io
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.site.load_profile import load_site

    profile = load_site(site) if site else None
    facts = gather_io(LocalHost(), os.path.abspath(path), profile, limit_s)
    found = advise(facts)
    if printed(IoDocument(facts=facts, advice=tuple(found))):
        return
    for line in (*_facts(facts), ""):
        click.echo(line)
    for number, one in enumerate(found, 1):
        for line in _advice(number, one):
            click.echo(line)


def _facts(facts: IoFacts) -> list[str]:
    census, local = facts.census, facts.local
    there = f"{counted(census.files, 'file', spec=',')} in {counted(census.folders, 'folder', spec=',')}"
    most = counted(census.most_in_a_folder, "entry", "entries", spec=",")
    lines = [
        f"{facts.path}: {there}, {format_bytes(census.bytes)}; {census.small_files:,} of them below 1 MiB, "
        f"{census.large_files:,} above 1 GiB, at most {most} in a folder"
    ]
    if not census.complete:
        lines.append(f"stopped after {census.seconds:.1f} s (--limit): there are more files")
    if census.unreadable:
        lines.append(f"{counted(census.unreadable, 'folder', spec=',')} cannot be listed")
    lines.append(f"file system: {facts.file_system}, mounted on {facts.mount}")
    if facts.stripes:
        layout = "progressive layout, first part " if facts.stripes.progressive else ""
        lines.append(
            f"stripes of new files: {layout}{facts.stripes.count} of {format_bytes(facts.stripes.size)}"
        )
    room = "unknown" if facts.free_bytes is None else format_bytes(facts.free_bytes)
    files = "not limited" if facts.free_files is None else counted(facts.free_files, "file", spec=",")
    lines.append(f"room: {room}, {files}{' (by quota)' if facts.quota_read else ''}")
    free = (
        "room not known from here" if local.free_bytes is None else f"{format_bytes(local.free_bytes)} free"
    )
    kind = "no disk, /tmp is memory" if local.kind == "none" else local.kind
    lines.append(f"storage of {local.where}: {local.path} ({kind}), {free}")
    return lines


def _advice(number: int, one: Advice) -> list[str]:
    return [
        f"{number}. {one.text[0].upper()}{one.text[1:]}.",
        f"   why: {one.why}",
        *(f"     {line}" for line in one.commands),
        f"   source: {one.source}",
    ]
