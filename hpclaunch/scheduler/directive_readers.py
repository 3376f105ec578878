"""All readers of directives, and the reading of a whole script with them."""

from __future__ import annotations

import re

from hpclaunch.scheduler.directive_reader import Directive, DirectiveReader
from hpclaunch.scheduler.registry import schedulers

DIRECTIVE_READERS: tuple[DirectiveReader, ...] = tuple(
    reader for scheduler in schedulers() if (reader := scheduler.directive_reader())
)
"""The schedulers whose batch scripts lint reads."""

_BY_SENTINEL = {reader.sentinel: reader for reader in DIRECTIVE_READERS}
_DIRECTIVE_LINE = re.compile(rf"#({'|'.join(map(re.escape, _BY_SENTINEL))})[ \t]+(.*?)\s*$")


def read_directives(text: str, first_command: int | None, not_code: frozenset[int]) -> tuple[Directive, ...]:
    """Read every directive of a script; those after line ``first_command`` are not active.

    ``not_code``: lines that belong to here-documents. Never raises.
    """
    found: list[Directive] = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _DIRECTIVE_LINE.match(line)
        if match is None or number in not_code:
            continue
        active = first_command is None or number < first_command
        reader = _BY_SENTINEL[match[1]]
        found += [Directive(reader, number, option, active) for option in reader.read_text(match[2])]
    return tuple(found)
