"""``hpclaunch port``: turn a batch script for one machine into a job file and a script for another one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpclaunch.cli._options import options, read_script_file, wants_document
from hpclaunch.cli._terminal import echo_text, printed
from hpclaunch.errors import BadInputError
from hpclaunch.text_table import printable

if TYPE_CHECKING:
    from hpclaunch.site.schema import SiteProfile

_SCRIPT = "job.sh"
_LOOK_S = 60.0


@click.command()
@options("port")
def command(script: str, to: str, from_: str | None, output: Path | None, diff: bool) -> None:
    """Write a job file and the script of SCRIPT, a batch script of another machine, for the site --to."""
    from hpclaunch.json_document import document_of
    from hpclaunch.lint.finding_report import difference
    from hpclaunch.port.port_script import port_script
    from hpclaunch.port.port_text import JOB_FILE_NAME, PortDocument, prepared, rendered_port, report_text
    from hpclaunch.site.load_profile import load_site, site_reference
    from hpclaunch.site.site_scheduler import no_submission

    text = _text(script)
    target = load_site(to)
    if said := no_submission(target):
        click.echo(f"note: nothing can be submitted to {target.name}: {said}", err=True)
    source = _source(from_, text)
    try:
        ported = port_script(text, source, target, site_reference(to))
        seen = None if target.node else prepared(ported).profile
        if seen and seen.node and seen.node.gpus:
            target, ported = seen, port_script(text, source, seen, site_reference(to))
    except BadInputError as error:
        raise BadInputError(f"{script}: {error.message}", error.hint) from None
    folder = (output or Path(f"{Path(script).stem or 'script'}-{target.name}")).absolute()
    ported, new = rendered_port(ported, target)
    _write(folder, {JOB_FILE_NAME: ported.job_file, _SCRIPT: new})
    file, made = str(folder / JOB_FILE_NAME), str(folder / _SCRIPT)
    if not printed(document_of(PortDocument, ported.report, job_file=file, script=made), indent=2):
        echo_text(report_text(ported))
        click.echo(f"written: {printable(file)}, {printable(made)}")
        click.echo(f"next: hpclaunch submit --file {shlex.quote(file)} --dry-run")
    if diff:
        click.echo(difference(script, text, made, new), nl=False, err=wants_document())


def _text(script: str) -> str:
    """Return the script's text. Raises BadInputError, with the line where there is one."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.port.port_text import check_text

    text = check_text(script, read_script_file(script))
    # bash finds a quote or bracket without an end; the rest is its text
    answer = LocalHost().run(["bash", "-n"], stdin=text.encode(), timeout_s=_LOOK_S)
    found = re.search(r"line (\d+): (unexpected EOF while looking for matching .*)", answer.stderr)
    if found:
        raise BadInputError.case("port: shell syntax", script=script, line=found[1], problem=found[2])
    return text


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


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files; older ones of the same names with another content are kept under another name."""
    from hpclaunch.atomic_file import write_file

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = folder / name
            if path.exists() and path.read_bytes() != text.encode():
                number = 1
                while (kept := path.with_name(f"{path.name}.{number}")).exists():
                    number += 1
                path.rename(kept)
                click.echo(f"hpclaunch: {path} was there before; it is {kept.name} now", err=True)
            write_file(path, text.encode())
    except OSError as error:
        place = error.filename or folder
        raise BadInputError.case("port: not written", place=place, error=error) from None
