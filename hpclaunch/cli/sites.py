"""``hpclaunch sites``: the site profiles."""

from __future__ import annotations

import json
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
    """List the sites and where their profiles are.

    Your own profiles hide shipped ones of the same name, and say so here.

    Example: hpclaunch sites list
    """
    from hpclaunch.site.load_profile import hidden_sites, load_all, site_names, user_sites_folder
    from hpclaunch.text_table import text_table

    files, hidden, (profiles, broken) = site_names(), hidden_sites(), load_all()
    rows = []
    for name, path in files.items():
        profile = profiles.get(name)
        rows.append(
            {
                "name": name,
                "file": str(path),
                "origin": "user" if path.parent == user_sites_folder() else "shipped",
                "hides": str(hidden[name]) if name in hidden else None,
                "extends": profile.extends if profile else None,
                "status": profile.status if profile else None,
                "description": profile.description if profile else None,
                "error": broken.get(name),
            }
        )
    if as_json:
        _print_json(rows)
        return
    lines: list[tuple[str, str]] = []
    for row in rows:
        lines.append((str(row["name"]), row["description"] or f"BROKEN: {row['error']}"))
        if row["origin"] == "user":
            hides = f", hides {row['hides']}" if row["hides"] else ""
            lines.append(("", f"yours: {row['file']}{hides}"))
    click.echo(text_table(lines))


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
    """Lay a profile out for reading: each part with its keys, and where its facts come from."""
    import msgspec

    from hpclaunch.site.load_profile import profile_digest
    from hpclaunch.site.yaml_tree import show_path

    profile = loaded.profile
    body = msgspec.to_builtins(profile)
    lines = [f"{profile.name}: {profile.description}"]
    words = ["file", *("extends" for _ in loaded.files[1:])]
    lines += [f"  {word} {show_path(path)}" for word, path in zip(words, loaded.files, strict=True)]
    lines += [f"  digest {profile_digest(profile)}"]
    for key, value in body.items():
        if key not in ("schema", "name", "description", "extends", "sources"):
            lines += ["", *_lines(key, value, 0)]
    lines += ["", "sources (as the marks in brackets name them)"]
    for name, source in profile.sources.items():
        doubt = "" if source.evidence == "documented" else f", {source.evidence.upper()}"
        lines.append(f"  [{name}] {source.url}, read {source.checked}{doubt}")
        if source.note:
            lines.append(f"    {source.note}")
    return "\n".join(lines)


def _lines(key: str, value: Any, depth: int) -> list[str]:
    """Lay out one key: short values on its line, longer ones below it; its source as a mark in brackets."""
    pad = "  " * depth
    label = "-" if key == "-" else f"{key}:"
    if isinstance(value, dict) and "reason" in value:
        return [f"{pad}{_variable(key, value)}{_mark(value)}", f"{pad}    {value['reason']}"]
    if isinstance(value, dict):
        inner = {
            name: item for name, item in value.items() if not (name == "source" and isinstance(item, str))
        }
        if depth and not any(_is_long(item) for item in inner.values()):
            text = ", ".join(f"{name} {_scalar(item)}" for name, item in inner.items())
            return [f"{pad}{label} {text}{_mark(value)}"]
        below = [line for name, item in inner.items() for line in _lines(name, item, depth + 1)]
        return [f"{pad}{label}{_mark(value)}", *below]
    if isinstance(value, list | tuple):
        if not any(_is_long(item) for item in value):
            return [f"{pad}{label} {', '.join(map(_scalar, value))}"]
        return [f"{pad}{label}", *(line for item in value for line in _lines("-", item, depth + 1))]
    return [f"{pad}{label} {_scalar(value)}"]


def _variable(key: str, value: dict[str, Any]) -> str:
    """Write an environment variable or a line of the job."""
    if "text" in value:
        return f"{key} {value['text']}"
    return f"unset {key}" if value["value"] is None else f"{key}={value['value']}"


def _mark(value: dict[str, Any]) -> str:
    return f"  [{value['source']}]" if isinstance(value.get("source"), str) else ""


def _is_long(value: Any) -> bool:
    return isinstance(value, dict | list | tuple) or len(str(value)) > 40


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


@command.command()
@click.argument("sites", nargs=-1, required=True, metavar="PATH_OR_NAME...", shell_complete=_complete_site)
@_JSON
def validate(sites: tuple[str, ...], as_json: bool) -> None:
    """Check profiles: types, sources, and what must fit together. Exit 3 when one is wrong.

    Example: hpclaunch sites validate my-site.yaml
    """
    from hpclaunch.site.load_profile import load_merged, profile_digest

    results: list[dict[str, Any]] = []
    for site in sites:
        try:
            profile = load_merged(site).profile
        except BadInputError as error:
            results.append({"site": site, "ok": False, "errors": str(error).splitlines()})
        else:
            results.append(
                {
                    "site": site,
                    "ok": True,
                    "name": profile.name,
                    "digest": profile_digest(profile),
                    "errors": [],
                }
            )
    if as_json:
        _print_json(results)
    for result in results:
        if as_json:
            continue
        if result["ok"]:
            click.echo(f"{result['site']}: ok")
        for line in result["errors"]:
            click.echo(line, err=True)
    if not all(result["ok"] for result in results):
        raise click.exceptions.Exit(EXIT_BAD_INPUT)


@command.command()
@_JSON
def detect(as_json: bool) -> None:
    """Say which site this is, and by which evidence; "unknown" rather than a guess.

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
@click.option("--markdown", "as_markdown", is_flag=True, help="The reference page instead.")
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
    help="What queues and starts jobs. Default: the scheduler whose commands are here.",
)
@click.option("--output", type=click.Path(), help="File. Default: NAME.yaml among your profiles.")
def new(name: str, base: str | None, output: str | None) -> None:
    """Write a profile from the live node; run it on a compute node.

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
        raise BadInputError(f"--output {file}: the file of site {name} is called {name}.yaml")
    if file.exists():
        raise BadInputError(f"{file}: exists already", "remove it, or choose another name")
    bases = base_profiles()
    found = next(name for name, scheduler in bases.items() if shutil.which(scheduler.submit_program))
    if base is not None and base not in bases:
        raise click.UsageError(f"--extends {base}: it must be one of {', '.join(bases)}")
    root = Path(os.environ.get("HPCLAUNCH_SYSROOT") or "/")
    cpuinfo = root / "proc" / "cpuinfo"
    model = cpu_model(cpuinfo.read_text(errors="replace") if cpuinfo.exists() else "")
    text = profile_text(name, base or found, read_live(), model, socket.gethostname(), dt.date.today())
    host = LocalHost()
    host.make_folder(str(file.parent.absolute()))
    host.write_file(str(file.absolute()), text.encode())
    load_site(str(file.absolute()))  # a profile of ours that does not load is our fault: say so at once
    click.echo(f"{file}: written, extends {base or found}; read it, and add what only people know")
