"""``hpclaunch sites``: the site profiles."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.errors import EXIT_BAD_INPUT, BadInputError

if TYPE_CHECKING:
    from hpclaunch.site.load_profile import Loaded

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Site profiles: list, show, validate, detect.

    Example: hpclaunch sites show lumi-g
    """


def _complete_site(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from hpclaunch.site.load_profile import site_names

    return [name for name in site_names() if name.startswith(incomplete)]


def _print_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=2))


@command.command(name="list")
@_JSON
def list_sites(as_json: bool) -> None:
    """List the sites, with the files of the profiles that you wrote.

    Your profile hides a shipped profile of the same name; the list shows which.

    Example: hpclaunch sites list
    """
    from hpclaunch.cli._terminal import terminal_table

    sites = _all_sites()
    if as_json:
        _print_json(sites)
        return
    rows: list[tuple[str, str]] = []
    for site in sites:
        rows.append((site["name"], site["description"] or f"BROKEN: {site['error']}"))
        if site["origin"] == "user":
            hides = f", hides {site['hides']}" if site["hides"] else ""
            rows.append(("", f"yours: {site['file']}{hides}"))
    click.echo(terminal_table(rows))


def _all_sites() -> list[dict[str, Any]]:
    """Return the facts about each profile that ``--json`` prints."""
    from hpclaunch.site.load_profile import hidden_sites, load_all, site_names, user_sites_folder

    hidden, (profiles, broken) = hidden_sites(), load_all()
    return [
        {
            "name": name,
            "file": str(path),
            "origin": "user" if path.parent == user_sites_folder() else "shipped",
            "hides": str(hidden[name]) if name in hidden else None,
            # A broken profile has none of these.
            **{key: getattr(profiles.get(name), key, None) for key in ("extends", "status", "description")},
            "error": broken.get(name),
        }
        for name, path in site_names().items()
    ]


@command.command()
@click.argument("site", shell_complete=_complete_site)
@_JSON
def show(site: str, as_json: bool) -> None:
    """Show a site's profile, merged over what it extends, with the source and date of its facts.

    SITE is a name or the path of a YAML file.

    Example: hpclaunch sites show daint
    """
    import msgspec

    from hpclaunch.site.load_profile import load_merged

    loaded = load_merged(site)
    if as_json:
        _print_json(msgspec.to_builtins(loaded.profile))
    else:
        click.echo(_page(loaded))


def _page(loaded: Loaded) -> str:
    """Return a profile for reading: each part with its keys and the sources of its facts."""
    import msgspec

    from hpclaunch.site.load_profile import profile_digest
    from hpclaunch.site.yaml_tree import show_path

    profile = loaded.profile
    file, *bases = map(show_path, loaded.files)
    lines = [f"{profile.name}: {profile.description}", f"  file {file}"]
    lines += [f"  extends {base}" for base in bases]
    lines += [f"  digest {profile_digest(profile)}"]
    for key, value in msgspec.to_builtins(profile).items():
        if key not in ("schema", "name", "description", "extends", "sources"):
            lines += ["", *_lines(key, value, may_be_short=False)]
    lines += ["", "sources (named by the marks in brackets)"]
    for name, source in profile.sources.items():
        doubt = "" if source.evidence == "documented" else f", {source.evidence.upper()}"
        lines.append(f"  [{name}] {source.url}, read {source.checked}{doubt}")
        if source.note:
            lines.append(f"    {source.note}")
    return "\n".join(lines)


def _lines(key: str, value: Any, *, may_be_short: bool = True) -> list[str]:
    """Return the lines of one key: short values on its line, longer ones below it; its source in brackets.

    ``may_be_short``: a mapping may be written on the line of its key.
    """
    label = "-" if key == "-" else f"{key}:"
    if isinstance(value, dict) and "reason" in value:
        return [f"{_variable(key, value)}{_mark(value)}", f"    {value['reason']}"]
    if isinstance(value, dict):
        return _mapping_lines(label, value, may_be_short)
    if not isinstance(value, list | tuple):
        return [f"{label} {_scalar(value)}"]
    if _are_short(value):
        return [f"{label} {', '.join(map(_scalar, value))}"]
    return [label, *_below(("-", item) for item in value)]


def _mapping_lines(label: str, value: dict[str, Any], may_be_short: bool) -> list[str]:
    parts = [(name, item) for name, item in value.items() if name != "source" or isinstance(item, dict)]
    if may_be_short and _are_short(item for _, item in parts):
        text = ", ".join(f"{name} {_scalar(item)}" for name, item in parts)
        return [f"{label} {text}{_mark(value)}"]
    return [f"{label}{_mark(value)}", *_below(parts)]


def _below(parts: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the lines of several keys, indented."""
    return [f"  {line}" for key, value in parts for line in _lines(key, value)]


def _variable(key: str, value: dict[str, Any]) -> str:
    """Return an environment variable or a line of the job as text."""
    if "text" in value:
        return f"{key} {value['text']}"
    return f"unset {key}" if value["value"] is None else f"{key}={value['value']}"


def _mark(value: dict[str, Any]) -> str:
    return f"  [{value['source']}]" if isinstance(value.get("source"), str) else ""


def _are_short(values: Iterable[Any]) -> bool:
    return all(not isinstance(value, dict | list | tuple) and len(str(value)) <= 40 for value in values)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


@command.command()
@click.argument("sites", nargs=-1, required=True, metavar="PATH_OR_NAME...", shell_complete=_complete_site)
@_JSON
def validate(sites: tuple[str, ...], as_json: bool) -> None:
    """Check profiles: types, sources, and values that must fit together. Exit 3 when one is wrong.

    Example: hpclaunch sites validate my-site.yaml
    """
    results = [_validated(site) for site in sites]
    if as_json:
        _print_json(results)
    else:
        for result in results:
            if result["ok"]:
                click.echo(f"{result['site']}: ok")
            for line in result["errors"]:
                click.echo(line, err=True)
    if not all(result["ok"] for result in results):
        raise click.exceptions.Exit(EXIT_BAD_INPUT)


def _validated(site: str) -> dict[str, Any]:
    from hpclaunch.site.load_profile import load_merged, profile_digest

    try:
        profile = load_merged(site).profile
    except BadInputError as error:
        return {"site": site, "ok": False, "errors": str(error).splitlines()}
    digest = profile_digest(profile)
    return {"site": site, "ok": True, "name": profile.name, "digest": digest, "errors": []}


@command.command()
@_JSON
def detect(as_json: bool) -> None:
    """Detect which site this is and show the evidence; "unknown" where it does not decide.

    Example: hpclaunch sites detect
    """
    import socket

    import msgspec

    from hpclaunch.site.detect import detect_here

    found = detect_here()
    if as_json:
        known = {"site": found.site or "unknown", "hostname": socket.gethostname()}
        _print_json({**msgspec.to_builtins(found), **known})
        return
    click.echo(f"{found.site or 'unknown'}: {found.reason}")
    for item in found.evidence:
        click.echo(f"  {item.strength} evidence for {item.site}: {item.what}")
    for note in found.notes:
        click.echo(f"  note: {note}")


@command.command()
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the reference page instead.")
def schema(as_markdown: bool) -> None:
    """Print the JSON Schema of profiles, for editors.

    Example: hpclaunch sites schema > site-profile.schema.json
    """
    from hpclaunch.site.profile_reference import json_schema, markdown

    if as_markdown:
        click.echo(markdown(), nl=False)
    else:
        _print_json(json_schema())


@command.command()
@click.argument("name")
@click.option(
    "--extends",
    "base",
    metavar="PROFILE",
    help="Profile to extend. Default: the one for the scheduler whose commands are here.",
)
@click.option("--output", type=click.Path(), help="File to write. Default: NAME.yaml among your profiles.")
def new(name: str, base: str | None, output: str | None) -> None:
    """Write a profile that describes this node; run it on a compute node.

    Example: srun --nodes 1 hpclaunch sites new mycluster
    """
    import datetime as dt
    import os
    import shutil
    import socket
    from pathlib import Path

    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.site.load_profile import load_site, user_sites_folder
    from hpclaunch.site.new_profile import base_profiles, cpu_model, profile_text
    from hpclaunch.topology.sources import read_live

    file = Path(output) if output else user_sites_folder() / f"{name}.yaml"
    if file.stem != name:
        raise BadInputError(f"--output {file}: the file of site {name} must be named {name}.yaml")
    if file.exists():
        raise BadInputError(f"{file}: exists already", "remove it, or choose another name")
    bases = base_profiles()
    base = base or next(
        name for name, its in bases.items() if its.starts_at_once or shutil.which(its.submit_program)
    )
    if base not in bases:
        raise click.UsageError(f"--extends {base}: it must be one of {', '.join(bases)}")
    root = Path(os.environ.get("HPCLAUNCH_SYSROOT") or "/")
    cpuinfo = root / "proc" / "cpuinfo"
    model = cpu_model(cpuinfo.read_text(errors="replace") if cpuinfo.exists() else "")
    text = profile_text(name, base, read_live(), model, socket.gethostname(), dt.date.today())
    host = LocalHost()
    host.make_folder(str(file.parent.absolute()))
    host.write_file(str(file.absolute()), text.encode())
    load_site(str(file.absolute()))  # a profile that does not load is a fault of hpclaunch: raise now
    click.echo(f"{file}: written, extends {base}; read it, and add account, queues, modules and fabric")
