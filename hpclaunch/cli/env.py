"""``hpclaunch env``: the software that a job needs on a site."""

from __future__ import annotations

from pathlib import Path

import click

from hpclaunch.cli._documents import print_document
from hpclaunch.cli._site_names import complete_site

# Constants here, so that --help imports no other module; a test compares them with the originals.
GOALS = ("horovod-tensorflow", "horovod-torch")
ROUTES = ("site", "easybuild", "eessi", "container", "pip")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Plan the installation of the software that a job needs on a site.

    Example: hpclaunch env plan --site olivia --for horovod-torch
    """


@command.command(name="plan")
@click.option("--site", required=True, shell_complete=complete_site, help="Site profile.")
@click.option("--for", "goal", required=True, type=click.Choice(GOALS), help="What to install.")
@click.option("--route", type=click.Choice(ROUTES), help="Use this way instead of the best one.")
@click.option(
    "--write", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write the steps as a script."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def plan_software(site: str, goal: str, route: str | None, file: Path | None, as_json: bool) -> None:
    """List the ways to install Horovod for a framework on a site, and why some do not work here.

    Ways: the site's own installation, EasyBuild, EESSI, a container, pip.

    Example: hpclaunch env plan --site lumi-g --for horovod-torch --write install.sh
    """
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.software.install_plan import plan_install, script

    found = plan_install(load_site(site), goal)
    taken = found.route(route)
    if file is not None:
        LocalHost().write_file(str(file), script(found, taken).encode(), mode=0o755)
        click.echo(f"wrote {file}: the way {taken.name}", err=True)
    if as_json:
        import msgspec

        print_document(msgspec.structs.replace(found, chosen=taken.name))
        return
    click.echo(f"{goal} on {found.site}")
    for each in found.routes:
        mark = "*" if each.name == taken.name else " "
        click.echo(f"{mark} {each.name}: {'' if each.possible else 'does not work here: '}{each.why}")
    click.echo(f"\nThe way {taken.name}:")
    for number, step in enumerate(taken.steps, 1):
        click.echo(f"{number}. {step.reason}")
        for line in step.text.splitlines():
            click.echo(f"     {line}")
