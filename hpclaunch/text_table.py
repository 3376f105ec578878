"""Tables for a terminal: columns of text, two spaces apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

_NO_LIMITS: Mapping[int, int] = MappingProxyType({})


def printable(text: str) -> str:
    """Return the text with the characters that steer a terminal written out, such as \\x1b for ESC.

    Line breaks are written out, too, and the marks that turn the direction of text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def text_table(
    rows: Iterable[Sequence[str]],
    header: Sequence[str] | None = None,
    *,
    max_widths: Mapping[int, int] = _NO_LIMITS,
) -> str:
    """Return the rows as lines; each column is as wide as its widest cell. No rows, no header: empty text.

    ``rows``: all of the same length; ``header``: the first line; ``max_widths``: column number, from 0, ->
    the most that the column is widened to. A longer cell is not cut: it only moves the rest of its line.
    Characters that steer a terminal are written out.
    """
    lines = [*([] if header is None else [header]), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    widths = [min(width, max_widths.get(number, width)) for number, width in enumerate(widths)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
