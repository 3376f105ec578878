"""Text for a terminal: made safe, and in tables, whose columns are two spaces apart."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34}
"""Name -> its number in ECMA-48's SGR."""
_NARROWEST = 20
"""To this width columns are narrowed before one is left out."""
"""Where a cell may be broken: after a comma and between words."""


def printable(text: str) -> str:
    """Return the text with the characters that steer a terminal written out, such as \\x1b for ESC.

    Line breaks are written out, too, and the marks that turn the direction of text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines with each made `printable`."""
    return "\n".join(map(printable, text.splitlines()))


def csv_row(values: Iterable[object]) -> str:
    """Return numbers and names without commas as a line of CSV; None is empty."""
    return ",".join("" if value is None else str(value) for value in values)


def without_empty(
    header: Sequence[str], rows: Sequence[Sequence[str]], always: Sequence[str] = ()
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows without the columns that are empty in each row, and not ``always`` there."""
    used = [n for n, name in enumerate(header) if name in always or any(row[n] for row in rows)]
    return [header[number] for number in used], [[row[number] for number in used] for row in rows]


def text_table(
    rows: Iterable[Sequence[str]],
    header: Sequence[str] | None = None,
    *,
    width: int | None = None,
    drop: Sequence[str] = (),
    colour: Callable[[Sequence[str], int], str | None] | None = None,
) -> str:
    """Return the rows as lines; each column is as wide as its widest cell. No rows, no header: empty text.

    ``rows``: all of the same length; ``header``: the first line. ``width``: columns of the terminal; in a
    wider table the widest columns are wrapped, and those of ``drop`` that it has left out, the first ones
    first, which a last line says. Only a path or address in the last column stays whole, to be copied.
    ``colour``: the name of a cell's colour, given its row and the number of its column. Characters that steer
    a terminal are written out.
    """
    body = [[printable(cell) for cell in row] for row in rows]
    names = list(header or ())
    lines = body if header is None else [names, *body]
    kept, widths = _fitting(lines, width, filter(names.__contains__, drop))
    shown = [text for line in lines for text in _lines(line, kept, widths, colour)]
    if left_out := [name for number, name in enumerate(names) if number not in kept]:
        shown += wrapped(f"not shown: {', '.join(left_out)} (--wide shows all)", width)
    return "\n".join(shown)


def _fitting(lines: list[list[str]], width: int | None, drop: Iterable[str]) -> tuple[list[int], list[int]]:
    """Return the columns that are shown, and their widths."""
    natural = [max(map(len, column)) for column in zip(*lines, strict=True)]
    kept, widths = list(range(len(natural))), natural
    if width is None:
        return kept, widths
    for name in ("", *drop):
        kept = [number for number in kept if not name or lines[0][number] != name]
        widths, room = [natural[number] for number in kept], width - 2 * (len(kept) - 1)
        if sum(narrowed := _narrowed(widths, room, _NARROWEST, _NARROWEST)) <= room:
            return kept, narrowed
    if sum(narrowed := _narrowed(widths, room, _NARROWEST // 3, _NARROWEST)) > room:
        narrowed = _narrowed(widths, room, 1, 0)
    return kept, narrowed


def _narrowed(widths: Iterable[int], room: int, least: int, whole: int) -> list[int]:
    """Return the widths, the widest narrowed until all fit or are ``least``; those up to ``whole`` stay."""
    found = list(widths)
    floors = [least if wide > whole else wide for wide in found]
    while sum(found) > room and found != floors:
        at = max((wide, number) for number, wide in enumerate(found) if wide > floors[number])[1]
        found[at] -= 1
    return found


def _lines(
    line: Sequence[str],
    kept: Sequence[int],
    widths: Sequence[int],
    colour: Callable[[Sequence[str], int], str | None] | None,
) -> Iterator[str]:
    cells = [wrapped(line[n], wide, whole=n == kept[-1]) for n, wide in zip(kept, widths, strict=True)]
    colours = [colour(line, n) if colour else None for n in kept]
    for texts in zip_longest(*cells, fillvalue=""):
        yield "  ".join(map(_cell, texts, widths, colours)).rstrip()


def wrapped(text: str, width: int | None, *, whole: bool = False) -> list[str]:
    """Return the text as lines of at most that width; ``whole``: except paths and addresses."""
    if width is None or len(text) <= width:
        return [text]
    lines = [""]
    for piece in re.findall(r"[^\s,]*(?:,+\s*|\s+|$)", text):
        line = lines.pop() + piece
        if len(line.rstrip()) > width and line != piece:
            lines.append(line.removesuffix(piece))
            line = piece
        step = len(line) if whole and "/" in piece else width
        lines += [line[at : at + step] for at in range(0, len(line.rstrip()) or 1, step or 1)]
    return [line.rstrip() for line in lines if line.strip()]


def _cell(text: str, width: int, colour: str | None) -> str:
    blanks = " " * (width - len(text))
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m{blanks}" if colour and text else text + blanks


def to_stderr(text: str) -> None:
    """Print a note on stderr."""
    sys.stderr.write(f"hpclaunch: {printable(text)}\n")
