"""``hpclaunch init``: questions whose answers become a configuration and a first job file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hpclaunch.cli._job_options import SubmitCommand, command_words
from hpclaunch.cli._options import options, wants_document
from hpclaunch.cli._terminal import printed, terminal_table
from hpclaunch.errors import BadInputError, note_text

if TYPE_CHECKING:
    from hpclaunch.job.prepare import Prepared
    from hpclaunch.site.schema import SiteProfile

_PROVIDERS = ("module", "container", "venv", "conda")
"""How Python is provided, with a question for the value; ``path`` has none."""
_T = TypeVar("_T")


class Place(NamedTuple):
    """Where ``hpclaunch init`` runs."""

    site: str | None
    """The site whose jobs would be submitted from here; None: a cluster that no profile describes."""
    words: str
    """The finding, in a sentence."""


@click.command(cls=SubmitCommand)
@options("init")
@click.pass_context
def command(ctx: click.Context, /, job: str | None, job_file: Path, check: bool, **given: Any) -> None:
    """Ask for site, account and Python; write your configuration and a first job file."""
    from hpclaunch.job.job_documents import InitDocument

    with redirect_stdout(sys.stderr) if wants_document() else nullcontext():
        made = _init(ctx, job, job_file, check, given)
    click.echo(f"hpclaunch: to submit it: {made['submit']}", err=True)
    printed(InitDocument(**made))


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
    program = command_words(job, ctx.meta["tail"]) or ("mnist",)
    kind = {"is_program": program[0] != "mnist", "is_file": "is_file" in ctx.meta}

    def asked_on(site: str) -> dict[str, Any]:
        time = given["time"] or (None if starts_at_once(site) else "30m")
        return {"nodes": given["nodes"], **({"time": time} if time else {}), "command": list(program)}

    def tried(site: str, at_site: Mapping[str, object]) -> Prepared:
        return _prepared({"site": site, **at_site, **asked_on(site)}, str(job_file), kind)

    site, at_site = _answers(given, place, tried)
    is_here = _is_here(site, place)
    config, asked = config_text(site, at_site), asked_on(site)
    asked["command"] = _show_script(tried(site, at_site))
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


def _answers(
    given: Mapping[str, Any], place: Place, tried: Callable[[str, Mapping[str, object]], Prepared]
) -> tuple[str, dict[str, object]]:
    """Return the site, and the settings of its jobs; asks for what no option answers.

    ``tried`` plans the job with such settings and raises what is refused: so each answer is judged at once,
    after a job has been planned without it. Raises UsageError where a question cannot be asked.
    """
    from hpclaunch.site.load_profile import load_site

    providers = [name for name in _PROVIDERS if given[name] is not None]
    if len(providers) + (given["python_from"] == "path") > 1 or (
        providers and given["python_from"] not in (None, *providers)
    ):
        raise click.UsageError("Python comes from one of --module, --container, --venv, --conda and PATH")
    if not sys.stdin.isatty():
        given = {**given, "site": given["site"] or place.site}  # as submit takes the one that it detects
        _refuse_missing(given, providers, load_site(given["site"]) if given["site"] else None)
    site = given["site"] or _chosen("Site", _sites(), place.site, load_site)
    rule, settings = load_site(site).account, dict[str, object]()
    if given["account"] or rule.required:
        prepared = tried(site, {"account": given["account"] or rule.example or "project"})
        example = f", such as {rule.example}" if rule.example else ""
        settings["account"] = given["account"] or _asked(
            f"Project account{example}", lambda text: tried(site, {"account": text}) and text
        )
    else:
        prepared = tried(site, {})
    source = providers[0] if providers else given["python_from"] or _chosen_way(prepared)
    if source == "none":
        settings["software"] = source
    elif source in _PROVIDERS:

        def judged(text: str) -> object:
            value = text.replace(",", " ").split() if source == "module" else text
            tried(site, {**settings, source: value})
            return value

        question = note_text(f"init asks: {source}")
        settings[source] = judged(given[source]) if given[source] else _asked(question, judged)
    return site, settings


def _asked(question: str, judged: Callable[[str], _T], default: str | None = None) -> _T:
    """Ask until an answer is right, and return what ``judged`` makes of it; what is wrong is said at once."""

    def judge(text: str) -> _T:
        try:
            return judged(text)
        except BadInputError as error:
            raise click.UsageError(str(error)) from None  # click says it and asks again

    answer: _T = click.prompt(question, default=default, value_proc=judge, err=True)
    return answer


def _chosen(
    what: str, known: Mapping[str, str], default: str | None, check: Callable[[str], object] | None = None
) -> str:
    """Ask for one of a numbered list, by number or name; ``check`` judges what is neither."""
    from hpclaunch.site.validate import did_you_mean

    def judged(text: str) -> str:
        if text in known:
            return text
        if text.isdecimal() and 1 <= int(text) <= len(known):
            return list(known)[int(text) - 1]
        if check is None or text.isdecimal():
            raise BadInputError(f"{text!r} is not in the list", did_you_mean(text, known))
        check(text)
        return text

    rows = [(f"{number:3}", name, words) for number, (name, words) in enumerate(known.items(), 1)]
    click.echo(terminal_table(rows, err=True), err=True)
    return _asked(f"{what}: its number or name", judged, default)


def _sites() -> dict[str, str]:
    """Return the sites that take jobs, each with the beginning of its description."""
    from hpclaunch.site.site_documents import listed_sites

    live = [one for one in listed_sites() if one.status in ("production", "generic")]
    return {one.name: (one.description or "").partition(" (")[0] for one in live}


def _chosen_way(prepared: Prepared) -> str:
    """Ask how jobs get their Python; the default is what the site offers for the program, if it does."""
    from hpclaunch.plan.software_choice import offer_of

    ways = {name: note_text(f"init way: {name}") for name in _PROVIDERS}
    if offer_of(prepared.request, prepared.profile) is None:
        return _chosen("Python of the jobs", {**ways, "path": "as it is on PATH"}, "path")
    origin = next(each.origin for each in prepared.settings if each.name == "software")
    ways = {"site": f"what the site offers; {origin}", **ways, "none": "as it is on PATH, without the site's"}
    return _chosen("Python of the jobs", ways, "site")


def _refuse_missing(given: Mapping[str, Any], providers: list[str], profile: SiteProfile | None) -> None:
    missing = [] if given["site"] else ["--site"]
    if given["account"] is None and (profile is None or profile.account.required):
        missing.append("--account" if profile else "--account (where the site requires one)")
    if not providers and given["python_from"] is None:
        missing.append("--python-from")
    elif not providers and given["python_from"] != "path":
        missing.append(f"--{given['python_from']}")
    if missing:
        raise click.UsageError(note_text("init: no terminal", options=", ".join(missing)))


def _prepared(settings: Mapping[str, object], origin: str, kind: Mapping[str, bool]) -> Prepared:
    """Plan the job; what is refused is raised. ``kind``: how its command is meant, as in `Layer`."""
    import msgspec

    from hpclaunch.job.job_script import dry_run
    from hpclaunch.job.prepare import prepare
    from hpclaunch.plan.settings import JobSettings, Layer

    asked = msgspec.convert(settings, JobSettings)
    prepared = prepare([Layer(origin=f"job file {origin}", settings=asked, **kind)])
    dry_run(prepared)
    return prepared


def _show_script(prepared: Prepared) -> list[str]:
    """Print the script as ``hpclaunch submit --dry-run`` does; return the command as a job file has it."""
    from hpclaunch.cli.submit import show

    show(prepared, dry_run=True, only_text=True)
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
            remedy = "; ".join(found.notes) or "`hpclaunch sites new NAME` writes a profile."
            return Place(site=None, words=f"{words} {remedy}")
    tools = [tool for tool in ("nvidia-smi", "rocm-smi", "amd-smi") if shutil.which(tool)]
    kind = f"a workstation with GPUs ({tools[0]} is here)" if tools else "a laptop or workstation"
    return Place(site=THIS_MACHINE, words=f"No scheduler is here: this is {kind}.")


def _is_here(site: str, place: Place) -> bool:
    """Tell whether jobs of a site are submitted from here, also as those of a cluster without a profile."""
    from hpclaunch.site.site_scheduler import base_here

    return starts_at_once(site) or site == (place.site or base_here())


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
