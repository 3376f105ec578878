"""``hpclaunch sites probe``, ``import`` and ``facts``: machines measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._options import options, wants_document
from hpclaunch.cli._terminal import echo_text, printed, terminal_table
from hpclaunch.errors import EXIT_FAILED, BadInputError
from hpclaunch.package_data import resource_dir

if TYPE_CHECKING:
    from hpclaunch.probes.compare_probe import ProbeFile, Row
    from hpclaunch.site.schema import SiteProfile


@click.command(name="probe")
@options("sites probe")
@click.pass_context
def probe_here(
    ctx: click.Context, /, site: str | None, yes: bool, output: Path | None, **options: Any
) -> None:
    """Ask this machine what it has, and compare the answers with its profile. Exit 1 where a fact is
    wrong.
    """
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.probes.compare_probe import compare, without_names, write_probe
    from hpclaunch.probes.gather_probe import ask_login, private_names
    from hpclaunch.site.detect import detect_here
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.site.site_scheduler import base_here

    name = site or detect_here().site or base_here()
    profile = load_site(name)
    found = ask_login(
        LocalHost(), profile, profile.name, lambda line: click.echo(f"asking: {line}", err=True)
    )
    account = options["account"]
    if options["on_a_node"]:
        found = _with_node(found, profile, name, (account, options["partition"]), yes=yes)
    if not options["keep_names"]:
        found = without_names(found, private_names(found, [account] if account else []))
    path = output or Path(f"{profile.name}-{found.day}.json")
    _show_contents(found, path)
    if not (yes or click.confirm("Write it?", default=True, err=True)):
        ctx.exit(EXIT_FAILED)
    write_probe(path, found)
    rows = compare(found, profile)
    _show(rows)
    if options["profile_name"]:
        _write_profile(found, options["profile_name"], path.name, profile, yes=yes)
    ctx.exit(EXIT_FAILED if any(row.verdict == "wrong" for row in rows) else 0)


def _with_node(
    found: ProbeFile, profile: SiteProfile, site: str, options: Sequence[str | None], *, yes: bool
) -> ProbeFile:
    """Return the probe with the answers of two ranks on one node."""
    from msgspec.structs import replace

    from hpclaunch.api import Job
    from hpclaunch.probes.gather_probe import node_answers, node_command

    command = node_command((resource_dir("remote") / "probe_node.sh").read_text())
    job = Job(
        command=command,
        site=site,
        account=options[0],
        queue=options[1],
        nodes=1,
        tasks_per_node=2,
        time="5m",
        name="probe",
        framework="torch",
        software="none",
        no_sample=True,
    )
    plan = job.plan()
    where = f", queue {plan.queue}" if plan.queue else ""
    price = next((text for text in plan.warnings if text.startswith("it costs")), "its price is not known")
    click.echo(f"one job: 1 node, at most 5 minutes{where}; {price}", err=True)
    if not yes and not click.confirm("Submit it?", err=True):
        return found
    handle = job.submit()
    handle.wait()
    return replace(found, node=node_answers(handle.logs().decode(errors="replace")))


def _show_contents(found: ProbeFile, path: Path) -> None:
    click.echo(f"{path} will hold:", err=True)
    for place, answers in (("login", found.login), ("node", found.node)):
        for name, answer in answers.items():
            size = len(answer.stdout) + len(answer.stderr)
            state = "no answer" if answer.exit_code is None else f"exit {answer.exit_code}"
            click.echo(f"  {place}: {name}: {size} characters, {state}", err=True)


def _show(rows: tuple[Row, ...]) -> None:
    from hpclaunch.probes.compare_probe import ProbeDocument

    if printed(ProbeDocument(facts=rows), indent=2):
        return
    shown = sorted(rows, key=lambda row: ("wrong", "new", "not seen", "right").index(row.verdict))
    texts = [[row.verdict, row.key, _text(row.profile), _text(row.measured), row.note] for row in shown]
    if texts:
        header = ("verdict", "fact", "profile", "measured", "note")
        click.echo(terminal_table(texts, header, drop=("note",)))
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("right", "wrong", "new")}
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _write_profile(found: ProbeFile, name: str, file_name: str, profile: SiteProfile, *, yes: bool) -> None:
    """Write a new or repaired profile, which must load; it is shown first, and an older file is kept."""
    import yaml

    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.probes.repair_profile import profile_of
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.site.new_profile import check_name
    from hpclaunch.site.profile_files import user_sites_folder

    check_name(name)
    path = user_sites_folder() / f"{name}.yaml"
    if path.exists() and name != profile.name:
        raise BadInputError(f"{path}: exists already", f"choose another name, or repair it: --site {name}")
    old = path.read_bytes() if path.exists() else None
    document = None if old is None else yaml.safe_load(old)
    text = profile_of(found, name, file_name, profile, document)
    click.echo(text, err=True)
    if not yes and not click.confirm(f"Write this as {path}?", default=True, err=True):
        return
    host = LocalHost()
    host.make_folder(str(path.parent))
    if old is not None:
        host.write_file(f"{path}.before-{found.day}", old)
    host.write_file(str(path), text.encode())
    load_site(str(path))  # a profile that does not load is a fault of hpclaunch: raise now
    kept = f"; the older file is {path.name}.before-{found.day}" if old is not None else ""
    click.echo(f"{path}: written{kept}", err=True)


def check_probe(file: Path) -> bool:
    """Compare a probe's file with the profile that it is of; return whether no fact is wrong."""
    from hpclaunch.probes.compare_probe import compare, read_probe
    from hpclaunch.site.load_profile import load_site

    found = read_probe(file)
    rows = compare(found, load_site(found.site))
    if not wants_document():
        echo_text(f"{file}: {found.site}, {found.origin}, {found.day}")
    _show(rows)
    return all(row.verdict != "wrong" for row in rows)


@click.command(name="import")
@options("sites import")
def import_file(file: Path, into: Path, name: str | None, origin: str | None) -> None:
    """Keep the file of a probe that a user sent, after reading it as the tests do."""
    from msgspec.structs import replace

    from hpclaunch.probes.compare_probe import compare, read_probe, write_probe
    from hpclaunch.site.load_profile import load_site

    found = read_probe(file)
    rows = compare(found, load_site(found.site))
    target = into / f"{name or file.stem}.json"
    if target.exists():
        raise BadInputError(f"{target}: exists already", "choose another name: --as")
    into.mkdir(parents=True, exist_ok=True)
    write_probe(target, replace(found, origin=origin or found.origin))
    click.echo(f"{target}: {len(found.login) + len(found.node)} answers, {len(rows)} facts")


@click.command()
@options("sites facts")
def facts(sites: tuple[str, ...]) -> None:
    """Show how each machine is known: queues, GPUs, account, ... with the day on which their pages were
    read.
    """
    from hpclaunch.site.fact_sources import SUBJECTS, counted_facts
    from hpclaunch.site.load_profile import load_all, load_site
    from hpclaunch.site.site_documents import FactsDocument

    profiles = {site: load_site(site) for site in sites} if sites else load_all()[0]
    found = {
        name: counted_facts(each) for name, each in profiles.items() if sites or each.status == "production"
    }
    if printed(FactsDocument(sites=found), indent=2):
        return
    rows = [
        (name, *each.subjects.values(), str(each.unknown), str(each.lines or "-"))
        for name, each in found.items()
    ]
    drop = ("lines", "unknown", *reversed(SUBJECTS))
    click.echo(terminal_table(rows, ("site", *SUBJECTS, "unknown", "lines"), drop=drop))
