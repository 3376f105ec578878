"""Tables for a terminal: columns of text, two spaces apart."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34}
"""Name -> its number in ECMA-48's SGR."""
_NARROWEST = 20
_NO_LIMITS: Mapping[int, int] = MappingProxyType({})


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


def short(text: str, most: int = 40) -> str:
    """Return a text of one line, its end left out where it is long, as the id of an array can be."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def text_table(
    rows: Iterable[Sequence[str]],
    header: Sequence[str] | None = None,
    *,
    max_widths: Mapping[int, int] = _NO_LIMITS,
    width: int | None = None,
    colour: Callable[[Sequence[str], int], str | None] | None = None,
) -> str:
    """Return the rows as lines; each column is as wide as its widest cell. No rows, no header: empty text.

    ``rows``: all of the same length; ``header``: the first line; ``max_widths``: column number, from 0, ->
    the most that the column is widened to. A longer cell is not cut: it only moves the rest of its line.
    ``width``: columns of the terminal; in a wider table the widest column is wrapped on words, and a longer
    word stays whole. ``colour``: the name of a cell's colour, given its row and the number of its column.
    Characters that steer a terminal are written out.
    """
    lines = [*([] if header is None else [header]), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    widths = [min(width, max_widths.get(number, width)) for number, width in enumerate(widths)]
    wrapped = _narrow(widths, width)
    shown = []
    for line in lines:
        cells = [wrap(cell, widths[n]) if n == wrapped else [cell] for n, cell in enumerate(line)]
        colours = [colour(line, n) if colour else None for n in range(len(line))]
        for part in range(max(map(len, cells), default=0)):
            texts = [cell[part] if part < len(cell) else "" for cell in cells]
            shown.append("  ".join(map(_cell, texts, widths, colours)).rstrip())
    return "\n".join(shown)


def _narrow(widths: list[int], width: int | None) -> int | None:
    """Make the widest column so narrow that the table fits, where one may; return its number."""
    excess = sum(widths) + 2 * (len(widths) - 1) - width if width is not None else 0
    if excess <= 0:
        return None
    widest = widths.index(max(widths))
    widths[widest] = max(widths[widest] - excess, min(_NARROWEST, widths[widest]))
    return widest


def wrap(text: str, width: int) -> list[str]:
    """Return the text as lines of at most that width, broken between words; a longer word stays whole."""
    import textwrap  # only tables that are too wide need it

    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]


def _cell(text: str, width: int, colour: str | None) -> str:
    blanks = " " * (width - len(text))
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m{blanks}" if colour and text else text + blanks
