"""All readers of directives, and the reading of a whole script with them."""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import asdict

from hpclaunch.scheduler.directive_reader import Directive, DirectiveReader
from hpclaunch.scheduler.registry import schedulers

DIRECTIVE_READERS: tuple[DirectiveReader, ...] = tuple(
    reader for scheduler in schedulers() if (reader := scheduler.directive_reader())
)
"""The schedulers whose batch scripts lint reads."""
READERS: Mapping[str | None, DirectiveReader] = {reader.kind: reader for reader in DIRECTIVE_READERS}
"""The same by kind."""
SUBMIT_COMMANDS = frozenset(reader.submit_command for reader in DIRECTIVE_READERS)


def reader_by_variables(names: Iterable[str]) -> DirectiveReader:
    """Return the reader of the scheduler whose variables a script uses; of none where it uses none."""
    used = list(names)
    known = [DirectiveReader(), *DIRECTIVE_READERS]
    return max(known, key=lambda reader: sum(name in reader.variables for name in used))


_STARTS = [
    (
        reader,
        re.compile(
            (r"\s*" if reader.indented else "")
            + (reader.line_start or rf"#{re.escape(reader.sentinel)}(?:[ \t]+|(?=-)|$)")
        ),
    )
    for reader in DIRECTIVE_READERS
]

_BEGINNING = re.compile(
    "|".join(
        (r"\s*" if reader.indented else "") + rf"#{re.escape(reader.sentinel.rstrip(':'))}\b"
        for reader in DIRECTIVE_READERS
        if reader.sentinel[0].isalpha()
    )
)


def read_directives(text: str, commands: Sequence[int], not_code: frozenset[int]) -> tuple[Directive, ...]:
    """Read every directive of a script; those where its scheduler reads none are not active.

    ``commands``: the lines of the commands, in order. ``not_code``: lines that belong to here-documents and
    other texts. Never raises.
    """
    found: list[Directive] = []
    lines = text.split("\n")
    ends = {
        "before first command": next(iter(commands), None),
        "lines at top": next((n for n, line in enumerate(lines, 1) if not line.startswith("#")), None),
        "whole script": None,
    }
    number = 0
    # A line of #$ is a comment where one of #SBATCH or the like stands.
    skipped: frozenset[int | str] = not_code | {"$" * any(map(_BEGINNING.match, lines))}
    while number < len(lines):
        number += 1
        reader, options = _directive_line(lines[number - 1])
        if reader is None or not skipped.isdisjoint((number, reader.sentinel)):
            continue
        # Flux reads from the first directive on, to a line that is not a comment (RFC 36; flux-python 0.85).
        if reader.read_in == "from the first on" and reader.read_in not in ends:
            code = (n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#"))
            ends[reader.read_in] = next((n for n in code if n > number), None)
        end = ends[reader.read_in]
        active = end is None or number < end
        words, last = _joined(lines, number, options, reader) if reader.continued else (options, number)
        if active and last > number and end is not None:  # a line that continues a directive is not a command
            ends[reader.read_in] = next((one for one in commands if one > max(last, end - 1)), None)
        found += [
            Directive(**asdict(option), reader=reader, line=number, active=active)
            for option in reader.read_text(words.strip())
        ]
        number = last
    return tuple(found)


def is_directive_like(line: str) -> bool:
    """Tell whether a line is one of directives, or begins like one, and so is meant to be no mere comment."""
    return _directive_line(line)[0] is not None or _BEGINNING.match(line) is not None


def _joined(lines: list[str], number: int, text: str, reader: DirectiveReader) -> tuple[str, int]:
    """Return a directive's text with the lines that continue it, and the number of the last one."""
    while text.rstrip().endswith("\\") and number < len(lines):
        following = lines[number].lstrip().lstrip("#").removeprefix(reader.sentinel)
        text = f"{text.rstrip()[:-1].rstrip()}{following.strip()}"
        number += 1
    return text.rstrip("\\ \t\r"), number


def _directive_line(line: str) -> tuple[DirectiveReader | None, str]:
    """Return who reads a line, and its options."""
    if line.lstrip().startswith("#"):
        for reader, start in _STARTS:
            if match := start.match(line):
                return reader, line[match.end() :].rstrip()
    return None, ""


_UNREAD = {"OAR": "OAR", "PJM": "PJM", "MSUB": "Moab", "@$": "NQS"}
"""Sentinel -> scheduler of directives that are recognised, and not read."""
_UNREAD_LINE = re.compile(rf"\s*#(?: (?=@))?({'|'.join(map(re.escape, _UNREAD))})[ \t]+(?=-)")


def unread_directives(text: str, not_code: frozenset[int]) -> tuple[tuple[int, str], ...]:
    """Return the lines that hold directives of schedulers without a reader, with the scheduler's name."""
    matches = [(n, _UNREAD_LINE.match(line)) for n, line in enumerate(text.split("\n"), 1)]
    return tuple((number, _UNREAD[match[1]]) for number, match in matches if match and number not in not_code)
