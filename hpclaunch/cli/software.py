"""``hpclaunch software``: what a site has, and how to install what it has not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpclaunch.cli._options import options
from hpclaunch.cli._terminal import echo_text, printed
from hpclaunch.errors import EXIT_FAILED

if TYPE_CHECKING:
    from hpclaunch.site.schema import SiteProfile
    from hpclaunch.software.install_plan import InstallPlan, Route


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@options("software")
def command() -> None:
    """Show what software a site has for its jobs, and plan the installation of what it has not."""


@command.command()
@options("software show")
def show(sites: tuple[str, ...]) -> None:
    """Tell what a site has for each framework: version, since when, and from which page that is known."""
    from hpclaunch.site.load_profile import load_all, load_site
    from hpclaunch.software.site_software import SoftwareDocument, live, site_software

    profiles = {site: load_site(site) for site in sites} or live(load_all()[0])
    rows = {name: site_software(profile) for name, profile in profiles.items()}
    if printed(SoftwareDocument(sites=rows)):
        return
    for name, found in rows.items():
        echo_text("\n".join([name, *(line for row in found for line in row.lines)]))


@command.command(name="plan")
@options("software plan")
@click.pass_context
def plan_software(
    ctx: click.Context,
    site: str,
    goal: str,
    route: str | None,
    prefix: str | None,
    account: str | None,
    file: Path | None,
) -> None:
    """List the ways to get a framework on a site, and why some do not work there."""
    import msgspec

    from hpclaunch.site.load_profile import load_site
    from hpclaunch.software.install_plan import plan_install, settings_text

    profile = load_site(site)
    found = plan_install(profile, goal, _folder(prefix) or _of_project(profile, goal, account))
    none_known = route is None and found.chosen is None
    taken = None if none_known else found.route(route)
    if file is not None:
        _write(found, taken or found.route(), file)
    if not printed(msgspec.structs.replace(found, chosen=taken.name if taken else None)):
        from hpclaunch.pages.render_page import render  # slow to load

        about = {"plan": found, "taken": taken, "settings_text": settings_text}
        click.echo(render("install_plan.txt.j2", **about), nl=False)
    ctx.exit(0 if taken else EXIT_FAILED)


def _of_project(profile: SiteProfile, goal: str, account: str | None) -> str | None:
    """Return the folder in the project's storage; None: no project is named, or no storage is known."""
    if account is None or profile.software.prefix is None:
        return None
    return f"{profile.software.prefix}/hpclaunch-{goal}".replace("$SLURM_JOB_ACCOUNT", account)


def _folder(prefix: str | None) -> str | None:
    """Return the folder as a shell of another machine reads it: ``~`` is the home folder there."""
    if prefix is None or not prefix.startswith("~/"):
        return prefix
    return f"$HOME{prefix[1:]}"


def _write(plan: InstallPlan, route: Route, file: Path) -> None:
    """Write the script, unless nothing has to be installed, and the job file next to it."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.software.install_plan import job_text, script

    job = file.with_suffix(".yaml")
    host = LocalHost()
    if route.steps:
        host.write_file(str(file), script(plan, route, job.name).encode(), mode=0o755)
        click.echo(f"wrote {file}: the way {route.name}", err=True)
    else:
        click.echo(f"no script is needed: with the way {route.name} nothing has to be installed", err=True)
    host.write_file(str(job), job_text(plan, route, job.name).encode())
    click.echo(f"wrote {job}: a job that uses it; hpclaunch submit --file {job}", err=True)
