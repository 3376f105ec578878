"""``hpclaunch init``: questions whose answers become a configuration and a first job file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hpclaunch.cli._in_and_out import print_document
from hpclaunch.cli._options import options
from hpclaunch.cli.submit import SubmitCommand, command_words
from hpclaunch.errors import BadInputError

if TYPE_CHECKING:
    from hpclaunch.site.schema import SiteProfile

_PROVIDERS = {
    "module": "Modules that provide Python, such as PyTorch/2.7",
    "container": "Container image (a SIF file, or an address such as docker://...)",
    "venv": "Folder of the virtual environment",
    "conda": "Name or path of the conda environment",
}
"""How Python is provided -> the question for the value; ``path`` has none."""


class Place(NamedTuple):
    """Where ``hpclaunch init`` runs."""

    site: str | None
    """The site whose jobs would be submitted from here; None: a cluster that no profile describes."""
    words: str
    """The finding, in a sentence."""


@click.command(cls=SubmitCommand)
@options("init")
@click.pass_context
def command(
    ctx: click.Context, /, job: str | None, job_file: Path, check: bool, as_json: bool, **given: Any
) -> None:
    """Ask for site, account and Python; write your configuration and a first job file.

    What an option answers is not asked. Without a terminal every question needs its option. Then the job's
    requirements are checked and its script is shown; nothing is submitted. Without a FILE or command the job
    is the bundled training.

    Example: hpclaunch init train.py
    """
    from hpclaunch.job.job_documents import InitDocument

    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        made = _init(ctx, job, job_file, check, given)
    click.echo(f"hpclaunch: to submit it: {made['submit']}", err=True)
    if as_json:
        print_document(InitDocument(**made))


def _init(
    ctx: click.Context, job: str | None, job_file: Path, check: bool, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Ask, write the files, show the script and check; return the fields of the document."""
    from hpclaunch.atomic_file import write_new_file
    from hpclaunch.job.settings_files import config_path

    if job_file.exists():
        raise BadInputError(f"{job_file} exists and is not changed", "--job-file names another file")
    if not os.access(job_file.parent, os.W_OK | os.X_OK):
        raise BadInputError(f"--job-file {job_file}: its folder does not exist or cannot be written to")
    place = look()
    click.echo(place.words, err=True)
    site, at_site = _answers(given, place)
    without_queue = starts_at_once(site)
    is_here = site == place.site or without_queue
    config = config_text(site, at_site)
    time = given["time"] or (None if without_queue else "30m")
    program = command_words(job, ctx.meta["tail"]) or ("mnist",)
    asked = {
        "nodes": given["nodes"],
        **({"time": time} if time else {}),
        "command": list(program),
    }
    settings = {"site": site, **at_site, **asked}
    kind = {"is_program": program[0] != "mnist", "is_file": "is_file" in ctx.meta}
    asked["command"] = _show_script(settings, str(job_file), kind)
    if config is None:  # the user has one, which stays: the job file says it all
        click.echo(f"hpclaunch: {config_path()} exists and is not changed", err=True)
        asked = {"site": site, **at_site, **asked}
    else:
        config_path().parent.mkdir(parents=True, exist_ok=True)
        write_new_file(config_path(), config)
        click.echo(f"hpclaunch: wrote {config_path()}", err=True)
    write_new_file(job_file, job_text(asked))
    click.echo(f"hpclaunch: wrote {job_file}", err=True)
    if check and is_here:
        _check(ctx, site)
    elif check:
        click.echo(f"hpclaunch: not checked, since this is not {site}: run hpclaunch check there", err=True)
    submit = f"hpclaunch submit --file {job_file}{'' if is_here else f' --host {site}'}"
    written = str(config_path()) if config is not None else None
    return {"site": site, "config": written, "job_file": str(job_file), "submit": submit}


def _answers(given: Mapping[str, Any], place: Place) -> tuple[str, dict[str, object]]:
    """Return the site, and the settings of its jobs; asks for what no option answers.

    Raises UsageError where a question cannot be asked.
    """
    from hpclaunch.site.load_profile import load_site

    providers = [name for name in _PROVIDERS if given[name] is not None]
    if len(providers) + (given["python_from"] == "path") > 1 or (
        providers and given["python_from"] not in (None, *providers)
    ):
        raise click.UsageError("Python comes from one of --module, --container, --venv, --conda and PATH")
    if not sys.stdin.isatty():
        _refuse_missing(given, providers, load_site(given["site"]) if given["site"] else None)
    site = given["site"] or click.prompt("Site (hpclaunch sites list)", default=place.site, err=True)
    profile, settings = load_site(site), dict[str, object]()
    if given["account"] or profile.account.required:
        settings["account"] = given["account"] or click.prompt(_account_question(profile), err=True)
    source = providers[0] if providers else given["python_from"]
    kinds = click.Choice([*_PROVIDERS, "path"])
    source = source or click.prompt("How do jobs get their Python?", type=kinds, default="path", err=True)
    if source in _PROVIDERS:
        value = given[source] or click.prompt(_PROVIDERS[source], err=True)
        settings[source] = value.replace(",", " ").split() if source == "module" else value
    return site, settings


def _account_question(profile: SiteProfile) -> str:
    example = f", such as {profile.account.example}" if profile.account.example else ""
    return f"Project account{example}"


def _refuse_missing(given: Mapping[str, Any], providers: list[str], profile: SiteProfile | None) -> None:
    missing = [] if given["site"] else ["--site"]
    if given["account"] is None and (profile is None or profile.account.required):
        missing.append("--account" if profile else "--account (where the site requires one)")
    if not providers and given["python_from"] is None:
        missing.append("--python-from")
    elif not providers and given["python_from"] != "path":
        missing.append(f"--{given['python_from']}")
    if missing:
        raise click.UsageError(
            f"no terminal to ask on; these options answer what is missing: {', '.join(missing)}"
        )


def _show_script(settings: Mapping[str, object], origin: str, kind: Mapping[str, bool]) -> list[str]:
    """Print the script of the job, as ``hpclaunch submit --dry-run`` does; what is refused is raised.

    Returns the command as a job file has it; ``kind``: how it is meant, as in `Layer`.
    """
    import msgspec

    from hpclaunch.cli.submit import show
    from hpclaunch.job.prepare import prepare
    from hpclaunch.plan.settings import JobSettings, Layer

    asked = msgspec.convert(settings, JobSettings)
    prepared = prepare([Layer(origin=f"job file {origin}", settings=asked, **kind)])
    show(prepared, dry_run=True, explain=False, as_json=False)
    command = prepared.request.command
    return [*(("mnist",) if command.bundled else ()), *command.argv]


def _check(ctx: click.Context, site: str) -> None:
    """Run ``hpclaunch check``, whose status is not that of init."""
    from hpclaunch.cli.check import command as check

    try:
        ctx.invoke(check, site=site)
    except click.exceptions.Exit:
        click.echo("hpclaunch: not all checks are met; the job can be submitted all the same", err=True)


def look() -> Place:
    """Find out whether this is a known site, another cluster, or a laptop or workstation."""
    from hpclaunch.scheduler.registry import THIS_MACHINE, schedulers
    from hpclaunch.site.detect import detect_here

    found = detect_here()
    if found.site:
        return Place(site=found.site, words=f"This is {found.site}: {found.reason}.")
    for scheduler in schedulers():
        if not scheduler.starts_at_once and shutil.which(scheduler.submit_program):
            words = f"{scheduler.submit_program} is here, but no site profile describes this machine."
            return Place(site=None, words=f"{words} `hpclaunch sites new NAME` writes a profile.")
    tools = [tool for tool in ("nvidia-smi", "rocm-smi", "amd-smi") if shutil.which(tool)]
    kind = f"a workstation with GPUs ({tools[0]} is here)" if tools else "a laptop or workstation"
    return Place(site=THIS_MACHINE, words=f"No scheduler is here: this is {kind}.")


def starts_at_once(site: str) -> bool:
    """Return whether the site has no queue: its jobs run on this machine. Raises BadInputError."""
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.site.site_scheduler import site_scheduler

    return site_scheduler(load_site(site)).starts_at_once


def config_text(site: str, settings: Mapping[str, object]) -> bytes | None:
    """Return a configuration with the site and its settings; None if the user has one already."""
    from hpclaunch.job.settings_files import config_path

    if config_path().exists():
        return None
    head = (
        "# Defaults for all your jobs. An option or a job file overrides them: hpclaunch submit --explain\n"
    )
    return _yaml(head, {"site": site, **({"sites": {site: dict(settings)}} if settings else {})})


def job_text(settings: Mapping[str, object]) -> bytes:
    """Return a job file with these settings."""
    head = "# Submit this job: hpclaunch submit --file FILE. All keys: hpclaunch docs reference/job\n"
    return _yaml(head, settings)


def _yaml(head: str, settings: Mapping[str, object]) -> bytes:
    import yaml

    return (head + yaml.safe_dump(dict(settings), sort_keys=False, allow_unicode=True)).encode()
