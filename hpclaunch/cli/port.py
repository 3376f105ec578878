"""``hpclaunch port``: turn a batch script for one machine into a job file and a script for another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpclaunch.cli._script_file import read_script_file
from hpclaunch.cli._site_names import complete_site
from hpclaunch.errors import BadInputError

if TYPE_CHECKING:
    from hpclaunch.port.port_script import Ported
    from hpclaunch.site.schema import SiteProfile

_EPILOG = """\b
Examples:
  hpclaunch port job.sh --to polaris
  hpclaunch port job.sh --from lumi-g --to olivia --output ported --diff
"""
_JOB_FILE, _SCRIPT = "job.yaml", "job.sh"


@click.command(epilog=_EPILOG)
@click.argument("script", type=click.Path())
@click.option("--to", "to", required=True, shell_complete=complete_site, help="Site that the job is for.")
@click.option(
    "--from",
    "from_",
    shell_complete=complete_site,
    help="Site that the script is for. Default: the one whose account and queue it names.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for job.yaml and job.sh. Default: SCRIPT's name and the site's, here.",
)
@click.option("--diff", is_flag=True, help="Show the difference between SCRIPT and the new script.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(script: str, to: str, from_: str | None, output: Path | None, diff: bool, as_json: bool) -> None:
    """Write a job file and the script of SCRIPT, a batch script of another machine, for the site --to.

    Every line of SCRIPT is listed as kept, changed (to what, why, source) or left out (why). What cannot be
    known is left open, and listed. Exit status: 0, also where lines are undecided; 3 if SCRIPT cannot be read.
    """
    from hpclaunch.port.port_script import port_script
    from hpclaunch.site.load_profile import load_site

    text = _text(script)
    target = load_site(to)
    source = _source(from_, text)
    try:
        ported = port_script(text, source, target)
    except BadInputError as error:
        raise BadInputError(f"{script}: {error.message}", error.hint) from None
    folder = (output or Path(f"{Path(script).stem or 'script'}-{target.name}")).absolute()
    files = {_JOB_FILE: ported.job_file, _SCRIPT: _render(ported, to)}
    _write(folder, files)
    if as_json:
        _print_json(ported, folder)
    else:
        _print(script, ported, folder, target)
    if diff:
        from hpclaunch.lint.finding_report import difference

        click.echo(difference(script, text, str(folder / _SCRIPT), files[_SCRIPT]), nl=False, err=as_json)


def _text(script: str) -> str:
    """Return the script's text. Raises BadInputError, with the line where there is one."""
    from hpclaunch.port.script_check import check_text

    data = read_script_file(script)
    return check_text(script, data)


def _source(name: str | None, text: str) -> SiteProfile | None:
    """Return the site of --from, else that of the script's directives; None: it is not known."""
    from hpclaunch.lint.batch_script import read_script
    from hpclaunch.lint.lint_script import site_of
    from hpclaunch.site.load_profile import load_all, load_site

    if name is not None:
        return load_site(name)
    profiles, _ = load_all()
    found = site_of(read_script(text), profiles)
    return profiles[found] if found is not None else None


def _render(ported: Ported, to: str) -> str:
    """Return the script of the job file, as ``submit --file job.yaml --dry-run`` prints it."""
    from hpclaunch.job.prepare import SubmitMode, dry_run, prepare
    from hpclaunch.job.settings_files import layers_of_text

    prepared = prepare(layers_of_text(ported.job_file, _JOB_FILE, site=to), SubmitMode(here=False))
    return dry_run(prepared)[1]


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files; older ones of the same names with another content are kept under another name."""
    from hpclaunch.atomic_file import write_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = folder / name
            if path.exists() and path.read_bytes() != text.encode():
                kept = _free_name(path)
                path.rename(kept)
                click.echo(f"hpclaunch: {path} was there before; it is {kept.name} now", err=True)
            write_file(path, text.encode())
    except OSError as error:
        place = error.filename or folder
        raise BadInputError(
            f"--output {place}: {error.strerror}", "name a folder that can be written"
        ) from None


def _free_name(path: Path) -> Path:
    number = 1
    while (found := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return found


def _print_json(ported: Ported, folder: Path) -> None:
    import msgspec

    document = {
        **msgspec.to_builtins(ported.report),
        "job_file": str(folder / _JOB_FILE),
        "script": str(folder / _SCRIPT),
    }
    click.echo(json.dumps(document, indent=2))


def _print(script: str, ported: Ported, folder: Path, target: SiteProfile) -> None:
    from hpclaunch.port.port_text import report_text

    click.echo(report_text(ported))
    click.echo(f"written: {folder / _JOB_FILE}, {folder / _SCRIPT}")
    click.echo(f"next: hpclaunch submit --file {folder / _JOB_FILE} --dry-run")
