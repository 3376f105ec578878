"""``hpclaunch sites``: the site profiles."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from hpclaunch.amounts import counted
from hpclaunch.cli._options import options
from hpclaunch.cli._site_probe import check_probe, facts, import_file, probe_here
from hpclaunch.cli._terminal import echo_text, print_document, print_page, printed, terminal_table
from hpclaunch.cli.main import TABLE
from hpclaunch.errors import EXIT_BAD_INPUT, EXIT_FAILED, BadInputError, RefusedError, note_text

if TYPE_CHECKING:
    from hpclaunch.scheduler.cluster_facts import ClusterFacts, QueueFacts
    from hpclaunch.scheduler.scheduler_interface import Scheduler
    from hpclaunch.site.module_facts import ChangedModule
    from hpclaunch.site.schema import NodeKind, SiteProfile
    from hpclaunch.site.site_documents import SourcesDocument

_IN_HEAD = ("schema", "name", "description", "extends", "part_of", "node_kind", "sources")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@options("sites")
def command() -> None:
    """Site profiles: list, show, validate, detect, check the age of their facts."""


for _each in (probe_here, import_file, facts):
    command.add_command(_each)


@command.command(name="list")
@options("sites list")
def list_sites(as_markdown: bool, kinds: bool) -> None:
    """List the sites: live, generic and retired ones, with the files of the profiles that you wrote."""
    from hpclaunch.site.site_documents import listed_sites

    if as_markdown:
        print_page("sites")
        return
    sites = listed_sites(kinds=kinds)
    if printed(sites, indent=2):
        return
    groups: dict[str, list[tuple[str, str, str]]] = {title: [] for title in TABLE["site groups"].values()}
    whose = {"user": "yours", "centre": "your centre's"}
    for site in sites:
        rows = groups[TABLE["site groups"][site.status or "unreadable"]]
        rows.append(("", site.name, site.description or f"BROKEN: {site.error}"))
        if site.origin != "shipped":
            hides = f", hides {site.hides}" if site.hides else ""
            rows.append(("", "", f"{whose[site.origin]}: {site.file}{hides}"))
    widest = max(len(site.name) for site in sites)
    for title, rows in groups.items():
        if rows:
            echo_text(title)
            click.echo(terminal_table(("", name.ljust(widest), text) for _, name, text in rows))


@command.command()
@options("sites show")
def show(site: str) -> None:
    """Show a site's profile, merged over what it starts from, with the source and date of its facts."""
    from hpclaunch.site.load_profile import load_kind, load_merged, profile_digest
    from hpclaunch.site.yaml_tree import show_path

    shown: SiteProfile | NodeKind
    if kind := load_kind(site):
        shown, file = kind
        head = [f"{shown.node_kind}: {shown.description}", f"  file {file}"]
    else:
        loaded = load_merged(site)
        own, *others = loaded.read
        head = [f"{loaded.profile.name}: {loaded.profile.description}", f"  file {show_path(own.path)}"]
        for each in others:
            head.append(f"  {each.relation} {show_path(each.path)}")
            if each.left or each.relation == "node_kind":
                left = f"; not inherited: {_in_order(each.left)}" if each.left else ""
                head.append(f"    from {each.path.stem}: {_in_order(each.taken)}{left}")
        head.append(f"  digest {profile_digest(loaded.profile)}")
        shown = loaded.profile
    if not printed(shown, indent=2):
        click.echo(_page(shown, head), nl=False)


def _in_order(keys: Iterable[str]) -> str:
    """Return keys of a profile in the order in which they are shown, those of its head left out."""
    from hpclaunch.site.schema import SiteProfile

    shown = [key for key in SiteProfile.__struct_fields__ if key not in _IN_HEAD]
    found = [key for key in keys if key.partition(".")[0] in shown]
    return ", ".join(sorted(found, key=lambda key: ("." in key, shown.index(key.partition(".")[0]))))


def _page(profile: SiteProfile | NodeKind, head: list[str]) -> str:
    """Return a profile for reading: after ``head`` each part with its keys and the sources of its facts."""
    import msgspec

    from hpclaunch.pages.render_page import render
    from hpclaunch.site.fact_sources import unknown_facts
    from hpclaunch.site.schema import SiteProfile

    named = isinstance(profile, SiteProfile) and profile.status != "generic"
    return render(
        "site_profile.txt.j2",
        head=head,
        values={key: value for key, value in msgspec.to_builtins(profile).items() if key not in _IN_HEAD},
        unknown=unknown_facts(profile) if isinstance(profile, SiteProfile) and named else (),
        sources=profile.sources,
        parts_of=lambda value: {n: v for n, v in value.items() if n != "source" or isinstance(v, dict)},
        are_short=lambda of: all(not isinstance(v, dict | list | tuple) and len(str(v)) <= 40 for v in of),
    )


@command.command()
@options("sites validate")
def validate(sites: tuple[str, ...]) -> None:
    """Check profiles and node kinds: types, sources, values that must fit. Exit 3 when one is wrong."""
    from hpclaunch.site.site_documents import validated_site

    results = [validated_site(site) for site in sites]
    for result in () if printed(results, indent=2) else results:
        if result.ok:
            click.echo(f"{result.site}: ok")
        for line in result.errors:
            click.echo(line, err=True)
    if not all(result.ok for result in results):
        raise click.exceptions.Exit(EXIT_BAD_INPUT)


@command.command(name="check")
@options("sites check")
def check_facts(sites: tuple[str, ...], days: int, page: TextIO | None) -> None:
    """List the sources of facts that were read more than a year ago. Exit 1 where there are some."""
    from hpclaunch.site.fact_sources import read_sources
    from hpclaunch.site.load_profile import load_all, load_kinds, load_site
    from hpclaunch.site.site_documents import SourcesDocument

    if len(sites) == 1 and sites[0].endswith(".json"):
        raise click.exceptions.Exit(0 if check_probe(Path(sites[0])) else EXIT_FAILED)
    if page is not None and len(sites) != 1:
        raise click.UsageError("--page is the page of one site: name it")
    profiles, broken = load_all() if not sites else ({site: load_site(site) for site in sites}, {})
    kinds = {} if sites else {name: kind for name, (kind, _) in load_kinds()[0].items()}
    sources = read_sources({**profiles, **kinds}, dt.date.today())
    old = tuple(source for source in sources if source.age_days > days)
    changed = _changed(next(iter(profiles.values())), page) if page else ()
    document = SourcesDocument(
        older_than_days=days, sources=len(sources), old=old, not_readable=broken, changed=changed
    )
    if not printed(document, indent=2):
        _show_facts(document, sources[0].checked if sources else None)
        for log in [] if page else [log for profile in profiles.values() for log in profile.changes]:
            click.echo(f"changes read up to {log.last_entry}: save the page and compare it with --page FILE")
    if old or changed:
        raise click.exceptions.Exit(EXIT_FAILED)


def _changed(profile: SiteProfile, page: TextIO) -> tuple[ChangedModule, ...]:
    from hpclaunch.site.module_facts import changed_modules, entries_of

    entries = entries_of(page.read())
    if not entries:
        raise BadInputError(f"--page {page.name}: no entry with a day is in it", "save the page of changes")
    return tuple(changed_modules(profile, entries))


def _show_facts(found: SourcesDocument, oldest: dt.date | None) -> None:
    from hpclaunch.pages.render_page import render

    click.echo(render("old_sources.txt.j2", found=found, oldest=oldest), nl=False)
    for name, error in found.not_readable.items():
        click.echo(f"profile {name} cannot be read: {error}", err=True)


@command.command()
@options("sites detect")
def detect() -> None:
    """Detect which site this is and show the evidence; "unknown" where it does not decide."""
    import socket

    from hpclaunch.json_document import document_of
    from hpclaunch.site.detect import detect_here
    from hpclaunch.site.site_documents import DetectedSite

    found = detect_here()
    more = {"site": found.site or "unknown", "hostname": socket.gethostname()}
    if printed(document_of(DetectedSite, found, **more), indent=2):
        return
    click.echo(f"{found.site or 'unknown'}: {found.reason}")
    for item in found.evidence:
        click.echo(f"  {item.strength} evidence for {item.site}: {item.what}")
    for note in found.notes:
        click.echo(f"  note: {note}")


@command.command()
@options("sites schema")
def schema(job_file: bool) -> None:
    """Print the JSON Schema of profiles, for editors."""
    from hpclaunch.plan.settings import job_file_schema
    from hpclaunch.site.profile_reference import json_schema

    print_document(job_file_schema() if job_file else json_schema(), indent=2)


@command.command()
@options("sites new")
def new(
    name: str, base: str | None, output: str | None, folder: str | None, queues_file: TextIO | None
) -> None:
    """Write a profile that describes this node; run it on a compute node."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.site.load_profile import load_site, site_names
    from hpclaunch.site.new_profile import check_name
    from hpclaunch.site.profile_files import user_sites_folder
    from hpclaunch.site.site_scheduler import base_here, base_profiles

    check_name(name)
    file = Path(output) if output else user_sites_folder() / f"{name}.yaml"
    if file.stem != name:
        raise BadInputError(f"--output {file}: the file of site {name} must be named {name}.yaml")
    if file.exists():
        raise BadInputError(f"{file}: exists already", "remove it, or choose another name")
    bases = base_profiles()
    base = base or base_here()
    if base not in bases:
        raise BadInputError(f"--extends {base}: it must be one of {', '.join(bases)}")
    text = _new_text(name, base, bases[base], folder, queues_file)
    hidden = None if output else site_names().get(name)
    host = LocalHost()
    host.make_folder(str(file.parent.absolute()))
    host.write_file(str(file.absolute()), text.encode())
    # a profile that does not load is a fault of hpclaunch: raise now
    queues = load_site(str(file.absolute())).queues
    listed = f" with {counted(len(queues), 'queue')} of {bases[base].title}" if queues else ""
    rest = "account, modules and fabric" if queues else "account, queues, modules and fabric"
    click.echo(f"{file}: written{listed}, extends {base}; read it, and add {rest}")
    if hidden is not None:
        click.echo(f"  it hides the profile {hidden} that hpclaunch ships; another NAME would keep both")


def _new_text(
    name: str, base: str, scheduler: Scheduler, folder: str | None, queues_file: TextIO | None
) -> str:
    """Return the new profile: of a folder's node, of this one, or of those that the scheduler describes."""
    import socket

    from hpclaunch.site.asked_cluster import is_one_of
    from hpclaunch.site.new_profile import cpu_model, of_cluster, profile_text
    from hpclaunch.topology.sources import read_folder, read_live

    cpuinfo = Path(os.environ.get("HPCLAUNCH_SYSROOT") or "/") / "proc" / "cpuinfo"
    known = folder is None and cpuinfo.exists()
    model = cpu_model(cpuinfo.read_text(errors="replace") if known else "")
    topology = read_live() if folder is None else read_folder(Path(folder))
    facts = _facts_here(scheduler) if folder is None else None
    cluster = of_cluster(facts, _unknown_cluster() if facts else None)
    if facts and facts.nodes and not queues_file and not is_one_of(topology, facts):
        has = f"{counted(len(topology.cores), 'core')} and {counted(len(topology.gpus), 'GPU')}"
        click.echo(f"note: this node has {has}, as none of {scheduler.title}'s nodes has", err=True)
        return _described_text(name, base, facts, scheduler, cluster)
    queues = _queues_of(scheduler, queues_file) if queues_file else facts.queues if facts else ()
    measured = folder or socket.gethostname()
    return profile_text(name, base, topology, model, measured, dt.date.today(), queues, cluster)


def _unknown_cluster() -> str | None:
    """Return Slurm's name of this cluster; None where a profile has it already: of two none would count."""
    from hpclaunch.site.detect import detect_here, gather

    return None if detect_here().site else gather().cluster_name


def _described_text(
    name: str, base: str, facts: ClusterFacts, scheduler: Scheduler, cluster: Mapping[str, Any]
) -> str:
    """Return a profile of the nodes that the scheduler describes, those with GPUs first."""
    from msgspec.structs import replace

    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.job.find_out import words_of_asking
    from hpclaunch.site.asked_cluster import Wanted, cluster_profile
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.site.new_profile import described_text

    want = Wanted(nodes=1, queue=None, gpu_type=None, gpus=True)
    asked = cluster_profile(load_site(base), facts, want, words_of_asking(LocalHost(), scheduler))
    if asked is None or asked.profile.node is None:
        raise BadInputError.case("sites new: no node", scheduler=scheduler)
    node = asked.profile.node
    counts = counted(node.count or 1, "node"), counted(node.cores, "core"), counted(len(node.gpus), "GPU")
    click.echo(note_text("sites new: described", counts=counts, scheduler=scheduler), err=True)
    profile = replace(asked.profile, node=replace(node, source=None))  # the new file has its own source
    return described_text(name, base, profile, dt.date.today(), facts.queues, cluster)


def _queues_of(scheduler: Scheduler, file: TextIO) -> tuple[QueueFacts, ...]:
    from hpclaunch.command_result import CommandResult

    command = scheduler.facts_commands.get("queues")
    if not command:
        raise BadInputError(f"--queues: queues of {scheduler.title} cannot be read", "leave it out")
    answer = CommandResult(exit_code=0, stdout=file.read(), stderr="")
    found = scheduler.parse_facts({"queues": answer}).queues
    if not found:
        raise BadInputError.case("sites new: no queue", file=file, command=" ".join(command))
    return found


def _facts_here(scheduler: Scheduler) -> ClusterFacts | None:
    """Return what the scheduler here tells of nodes and queues; None, noted, where it does not answer."""
    import shutil

    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.job.find_out import cluster_facts

    programs = {command[0] for command in scheduler.facts_commands.values()}
    if not programs or not all(map(shutil.which, programs)):
        return None
    try:
        return cluster_facts(LocalHost(), scheduler)
    except RefusedError as error:
        click.echo(f"note: no nodes and queues: {error.message}", err=True)
        return None
