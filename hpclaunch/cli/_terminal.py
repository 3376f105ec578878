"""Tables for the terminal that they are shown on: its width, and colours of states. No command."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from hpclaunch.text_table import text_table

_COLOURS = {
    **dict.fromkeys(("done", "have"), "green"),
    **dict.fromkeys(("failed", "lost", "missing"), "red"),
    **dict.fromkeys(("queued", "cancelled", "unknown"), "yellow"),
    "running": "blue",
}
_NONE: Mapping[int, int] = MappingProxyType({})


def wants_colour(option: str) -> bool | None:
    """Return what ``--color`` and the environment ask for; None: colours where the output is a terminal.

    NO_COLOR: no-color.org. A terminal that is called dumb has none.
    """
    if option != "auto":
        return option == "always"
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def terminal_table(
    rows: Iterable[Sequence[str]],
    header: Sequence[str] | None = None,
    *,
    max_widths: Mapping[int, int] = _NONE,
    states: int | None = None,
    only: str | None = None,
    err: bool = False,
) -> str:
    """Return a table for ``click.echo``, which takes the colours out where they are not wanted.

    ``states``: the column whose states have a colour, in all rows or in the one called ``only``; ``err``: it
    is for stderr.
    """

    def colour(row: Sequence[str], column: int) -> str | None:
        if column != states or (only is not None and row[0] != only):
            return None
        return _COLOURS.get(row[column].partition(",")[0])

    return text_table(rows, header, max_widths=max_widths, width=_width(err=err), colour=colour)


def _width(*, err: bool) -> int | None:
    """Return the columns of the terminal; None: the output goes elsewhere, where lines may be long."""
    stream = sys.stderr if err else sys.stdout
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None
