"""The #SBATCH and #PBS lines of a script, option by option (man sbatch, man qsub)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Literal, NamedTuple

from hpclaunch.lint.command_options import (
    SLURM_ALIASES,
    SLURM_FLAGS,
    SLURM_OPTIONS,
    SLURM_SHORT,
    SLURM_VALUED,
)

Kind = Literal["slurm", "pbs"]


class Directive(NamedTuple):
    """One option of a directive line."""

    kind: Kind
    line: int
    option: str
    """Long name without dashes (``nodes``); of PBS its letter, and ``l:NAME`` for a resource."""
    value: str | None
    text: str
    """As written: ``-N 2``."""
    active: bool
    """False: behind the first command, where the scheduler reads no directives."""
    known: bool = True
    """False: sbatch has no such option; a plugin of the site may."""


_LINE = re.compile(r"#(SBATCH|PBS)[ \t]+(.*?)\s*$")
_PBS_VALUED = frozenset("aAcCeGhijJkKlLmMNopPqQrRSTuvwWY")


def read_directives(text: str, first_command: int | None, not_lines: frozenset[int]) -> list[Directive]:
    """Read every directive; those behind line ``first_command`` are not active.

    ``not_lines`` belong to here-documents. Never raises.
    """
    found: list[Directive] = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _LINE.match(line)
        if match is None or number in not_lines:
            continue
        active = first_command is None or number < first_command
        words = _split(match[2])
        reader = _slurm if match[1] == "SBATCH" else _pbs
        kind: Kind = "slurm" if match[1] == "SBATCH" else "pbs"
        for option, value, as_written, known in reader(words):
            found.append(Directive(kind, number, option, value, as_written, active, known))
    return found


def _split(text: str) -> list[str]:
    """Split like the shell; an open quote is no reason to give up."""
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


_Option = tuple[str, "str | None", str, bool]


def _slurm(words: list[str]) -> Iterator[_Option]:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--") and len(word) > 2:
            given, equals, value = word[2:].partition("=")
            name = full_name(given)
            if equals:
                yield name or given, value, word, name is not None
            elif name in SLURM_VALUED and rest:
                yield name, rest[0], f"{word} {rest.pop(0)}", True
            else:
                yield name or given, None, word, name is not None
        elif word.startswith("-") and len(word) > 1:
            yield from _slurm_short(word, rest)
        elif word not in ("hetjob", "packjob"):  # they part the components of a heterogeneous job
            yield "", None, word, False


def _slurm_short(word: str, rest: list[str]) -> Iterator[_Option]:
    """Read ``-N2``, ``-N 2`` and flags run together, ``-vH``."""
    letters = word[1:]
    while letters:
        name = SLURM_SHORT.get(letters[0])
        if name is None or name in SLURM_FLAGS:
            yield name or letters[0], None, f"-{letters[0]}", name is not None
            letters = letters[1:]
            continue
        value = letters[1:].removeprefix("=")
        if not value and rest:
            value = rest.pop(0)
            yield name, value, f"{word} {value}", True
        else:
            yield name, value or None, word, True
        return


def full_name(given: str) -> str | None:
    """Return the option that sbatch takes ``given`` for (getopt_long takes unambiguous beginnings)."""
    given = SLURM_ALIASES.get(given, given)
    if given in SLURM_OPTIONS:
        return given
    longer = [name for name in SLURM_OPTIONS if name.startswith(given)]
    return longer[0] if len(longer) == 1 else None


def _pbs(words: list[str]) -> Iterator[_Option]:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not re.match(r"-[A-Za-z]", word):
            yield "", None, word, False
            continue
        letter, value = word[1], word[2:]
        if not value and letter in _PBS_VALUED and rest:
            value = rest.pop(0)
        as_written = f"-{letter} {value}".strip()
        if letter == "l" and value:
            for name, one in _resources(value):
                yield f"l:{name}", one, as_written, True
        else:
            yield letter, value or None, as_written, True


def _resources(text: str) -> Iterator[tuple[str, str]]:
    """Split ``select=2:ncpus=4,walltime=1:00:00`` at the commas that begin another resource."""
    for part in re.split(r",(?=[A-Za-z_]+=)", text):
        name, _, value = part.partition("=")
        yield name.strip(), value


def chunks(select: str) -> list[tuple[int, dict[str, str]]]:
    """Read PBS' ``select``: how many of each chunk, and what a chunk must have."""
    found = []
    for part in select.split("+"):
        pieces = part.split(":")
        count = int(pieces[0]) if pieces[0].isascii() and pieces[0].isdigit() and len(pieces[0]) < 8 else None
        wants = dict(
            piece.split("=", 1) for piece in (pieces if count is None else pieces[1:]) if "=" in piece
        )
        found.append((1 if count is None else count, wants))
    return found
