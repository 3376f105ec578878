"""Input and output that several commands share: scripts, JSON documents, pictures. No command."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from hpclaunch.cli._options import is_asked
from hpclaunch.cli._terminal import echo_text, terminal_width
from hpclaunch.errors import BadInputError
from hpclaunch.package_data import resource_dir

_Document = TypeVar("_Document")
_MAX_BYTES = 4 << 20  # Slurm takes no larger script by default (man slurm.conf, max_script_size)


def wants_document() -> bool:
    """Return whether the command that runs is to print its document, as JSON or as CSV."""
    return is_asked("json") or is_asked("csv")


def print_reference_page(name: str) -> None:
    """Print a page of ``docs/reference`` as it is; ``packaging/reference_pages.py`` writes it."""
    click.echo((resource_dir("docs") / "reference" / f"{name}.md").read_text("utf-8"), nl=False)


def print_document(document: object, indent: int | None = None) -> None:
    """Print one JSON document, or a list of them (docs/reference/json); with ``--csv`` its tables."""
    from hpclaunch.json_document import document_csv, document_text

    if is_asked("csv"):
        click.echo(document_csv(document), nl=False)
    else:
        click.echo(document_text(document, indent))


def printed(document: object, indent: int | None = None) -> bool:
    """Print the document where it is wanted; return whether it was."""
    if wants_document():
        print_document(document, indent)
    return wants_document()


def show(
    document: _Document, as_text: Callable[[_Document, int | None], str], indent: int | None = None
) -> None:
    """Print the document where it is wanted, else the text that is made of it for the terminal's width."""
    if not printed(document, indent):
        echo_text(as_text(document, terminal_width()))


def read_script_file(script: str) -> bytes:
    """Return the script's bytes, of ``-`` standard input; raise BadInputError where it cannot be read."""
    try:
        if script == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(script).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInputError(f"{script}: cannot be read: {reason}", "give a batch script") from None
    if len(data) > _MAX_BYTES:
        raise BadInputError(f"{script}: larger than {_MAX_BYTES} bytes", "give a batch script")
    if data.startswith(b"\x7fELF"):
        raise BadInputError(f"{script}: a compiled program, no text", "give a batch script")
    return data


def check_picture_name(path: Path | None) -> None:
    """Refuse a file whose name does not end in .svg, before anything is computed."""
    if path is not None and path.suffix.lower() != ".svg":
        raise BadInputError.case("picture: no SVG", path=path)


def write_picture(path: Path, drawing: str, what: str = "") -> None:
    """Write the drawing; an interrupted write leaves no file. ``what``: words for the message."""
    from hpclaunch.host.this_machine import LocalHost

    LocalHost().write_file(str(path), drawing.encode())
    click.echo(f"picture{what} in {path}", err=True)
