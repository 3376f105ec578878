"""Output of commands: documents, pictures, tables and texts in the terminal's width, a job's progress."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

import click

from hpclaunch.cli._options import is_asked, wants_document
from hpclaunch.package_data import resource_dir
from hpclaunch.text_table import text_table, wrapped

_COLOURS = {
    **dict.fromkeys(("done", "have"), "green"),
    **dict.fromkeys(("failed", "lost", "missing"), "red"),
    **dict.fromkeys(("queued", "cancelled", "unknown"), "yellow"),
    "running": "blue",
}

_REDRAW_S = 0.1
_COLUMNS = 80


def terminal_table(
    rows: Iterable[Sequence[str]],
    header: Sequence[str] | None = None,
    *,
    drop: Sequence[str] = (),
    states: int | None = None,
    only: str | None = None,
    err: bool = False,
) -> str:
    """Return a table for ``click.echo``, which takes the colours out where they are not wanted.

    ``drop``: as in `text_table`; ``states``: the column whose states have a colour, in all rows or in the one
    called ``only``; ``err``: it is for stderr.
    """

    def colour(row: Sequence[str], column: int) -> str | None:
        if column != states or (only is not None and row[0] != only):
            return None
        return _COLOURS.get(row[column].partition(",")[0])

    return text_table(rows, header, width=terminal_width(err=err), drop=drop, colour=colour)


def terminal_width(*, err: bool = False) -> int | None:
    """Return the columns of the terminal; None: lines may be long, by ``--wide`` or in a file or pipe."""
    return None if is_asked("wide") else _columns(sys.stderr if err else sys.stdout)


def _columns(stream: IO[Any]) -> int | None:
    """Return the columns of a terminal; None: it is none, or does not know them."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def echo_text(text: str, *, err: bool = False) -> None:
    """Print a text; on a terminal its long lines are broken between words, and keep their indent."""
    width = terminal_width(err=err)
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        room = None if width is None else max(width - len(indent), 1)
        for part in wrapped(line[len(indent) :], room, whole=True) or [""]:
            click.echo(indent + part, err=err)


# A colour, or the beginning of one at the end of the text; else any control character, and the marks that
# turn the direction of text. Carriage returns draw progress bars, so they stay.
_SEQUENCES = (
    r"(?P<colour>\x1b\[[0-9;:]{0,40}m)|(?P<begun>\x1b(?:\[[0-9;:]{0,40})?\Z)"
    r"|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069])"
)


class TerminalText:
    """Makes pieces of output harmless; a character or colour may be cut by the end of a piece."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._begun = ""

    def __call__(self, data: bytes) -> bytes:
        """Return the piece with control characters written out, such as \\x1b for ESC."""
        self._begun, text = "", self._begun + self._decode(data)
        return re.sub(_SEQUENCES, self._shown, text).encode()

    def _shown(self, match: re.Match[str]) -> str:
        if match["control"]:
            return match[0].encode("unicode_escape").decode()
        if match["begun"]:
            self._begun = match[0]
            return ""
        return match[0]


def for_reader(output: BinaryIO) -> Callable[[bytes], bytes]:
    """Return what to do with a piece of output: nothing unless it goes to a terminal."""
    return TerminalText() if output.isatty() else bytes


class JobOutput:
    """Forwards a job's output; `poll` draws a bar below it. Without a terminal there is only the output.

    The bundled training writes ``progress.json`` in the job's folder, a few times per second; any other
    program may do the same: ``{"label": "epoch 1/3", "share": 0.4, "figures": "12,345 images/s  ..."}``.
    """

    def __init__(self, output: BinaryIO, read: Callable[[], bytes | None]) -> None:
        """``read`` returns the job's progress file, None where there is none."""
        self._output = output
        self._read = read
        self._draws = output.isatty()
        self._shown_text = for_reader(output)
        self._shown = ""
        self._at_line_start = True
        self._not_before = 0.0

    def forward(self, chunk: bytes) -> None:
        """Write a piece of the job's output."""
        self.clear()
        self._output.write(self._shown_text(chunk))
        self._output.flush()
        self._at_line_start = chunk.endswith(b"\n")

    def poll(self) -> None:
        """Draw how far the job is, unless the last drawing was a moment ago."""
        if not self._draws or not self._at_line_start or time.monotonic() < self._not_before:
            return
        self._not_before = time.monotonic() + _REDRAW_S
        line = bar_line(self._read() or b"", _columns(self._output) or _COLUMNS)
        if line is not None and line != self._shown:
            self._output.write(f"\r{line:<{len(self._shown)}}".encode())
            self._output.flush()
            self._shown = line

    def clear(self) -> None:
        """Remove the bar."""
        if self._shown:
            self._output.write(b"\r" + b" " * len(self._shown) + b"\r")
            self._output.flush()
            self._shown = ""


def bar_line(progress: bytes, columns: int) -> str | None:
    """One line of less than ``columns`` characters; None for text that is not a whole progress file."""
    try:
        facts = json.loads(progress)
        label, share, figures = str(facts["label"]), float(facts["share"]), str(facts["figures"])
    except (ValueError, TypeError, KeyError):
        return None
    if not 0 <= share <= 1 or not (label + figures).isprintable():
        return None
    before, after = f"{label} [", f"] {share:4.0%}  {figures}"
    width = max(4, columns - 1 - len(before) - len(after))
    return f"{before}{'#' * round(share * width):<{width}}{after}"[: columns - 1]


_Document = TypeVar("_Document")


def print_page(name: str) -> None:
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


def write_picture(path: Path, drawing: str, what: str = "") -> None:
    """Write the drawing; an interrupted write leaves no file. ``what``: words for the message."""
    from hpclaunch.host.this_machine import LocalHost

    LocalHost().write_file(str(path), drawing.encode())
    click.echo(f"picture{what} in {path}", err=True)
