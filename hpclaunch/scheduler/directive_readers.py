"""All readers of directives, and the reading of a whole script with them."""

from __future__ import annotations

import re

from hpclaunch.scheduler.directive_reader import Directive, DirectiveReader
from hpclaunch.scheduler.registry import schedulers

DIRECTIVE_READERS: tuple[DirectiveReader, ...] = tuple(
    reader for scheduler in schedulers() if (reader := scheduler.directive_reader())
)
"""The schedulers whose batch scripts lint reads."""

_STARTS = [
    (reader, re.compile(reader.line_start or rf"#{re.escape(reader.sentinel)}[ \t]+"))
    for reader in DIRECTIVE_READERS
]


def read_directives(text: str, first_command: int | None, not_code: frozenset[int]) -> tuple[Directive, ...]:
    """Read every directive of a script; those where its scheduler reads none are not active.

    ``first_command``: the line of the first command. ``not_code``: lines that belong to here-documents.
    Never raises.
    """
    found: list[Directive] = []
    lines = text.split("\n")
    ends = {
        "before first command": first_command,
        "lines at top": next((n for n, line in enumerate(lines, 1) if not line.startswith("#")), None),
        "whole script": None,
    }
    for number, line in enumerate(lines, 1):
        reader, options = _directive_line(line)
        if reader is None or number in not_code:
            continue
        end = ends[reader.read_in]
        active = end is None or number < end
        found += [Directive(reader, number, option, active) for option in reader.read_text(options)]
    return tuple(found)


def is_directive(line: str) -> bool:
    """Tell whether a line is one of directives, whether they count there or not."""
    return _directive_line(line)[0] is not None


def _directive_line(line: str) -> tuple[DirectiveReader | None, str]:
    """Return who reads a line, and its options."""
    if line.startswith("#"):
        for reader, start in _STARTS:
            if match := start.match(line):
                return reader, line[match.end() :].rstrip()
    return None, ""
