"""``hpclaunch advise``: what to do before a job runs."""

import os

import click

from hpclaunch.amounts import counted, format_bytes
from hpclaunch.cli._options import options
from hpclaunch.cli._terminal import printed


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@options("advise")
def command() -> None:
    """Give advice on what a job uses."""


@command.command(name="io")
@options("advise io")
def advise_io(path: str, site: str | None, limit_s: float) -> None:
    """Count the files of PATH, read its file system, and say how ranks should read it."""
    from hpclaunch.check.io_facts import IoDocument, gather_io
    from hpclaunch.check.io_facts import advise_io as advise
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.site.load_profile import load_site

    profile = load_site(site) if site else None
    facts = gather_io(LocalHost(), os.path.abspath(path), profile, limit_s)
    document = IoDocument(facts=facts, advice=tuple(advise(facts)))
    if not printed(document):
        from hpclaunch.pages.render_page import render  # slow to load

        about = {"facts": facts, "advice": document.advice, "count": counted, "size": format_bytes}
        click.echo(render("io_advice.txt.j2", **about), nl=False)
