"""The variables of a script: who sets them, who uses them, and what a word becomes.

A value is followed only as far as the text tells it. What a run may bring (other scripts that are sourced,
commands, the environment) is unknown, never guessed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from hpclaunch.lint.command_options import SYSTEM_VARIABLES
from hpclaunch.lint.shell_syntax import (
    Assignment,
    Command,
    Part,
    Shell,
    Word,
    assignment_in,
    is_assignment,
    variable_name,
)

MAX_CHARS = 20_000
"""Longest value that is followed; a machine's bind list is far below it."""

_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
_SCHEDULER = re.compile(
    r"(SLURM|SLURMD|SBATCH|SRUN|PBS|PMI|PMIX|PALS|OMPI|PRTE|MPI|LMOD|CRAY|EB|HPCLAUNCH|NCPUS|OMP)_?\w*"
)


@dataclass(frozen=True)
class Expansion:
    """What a word becomes."""

    text: str | None
    """None: a piece of it is known at run time only."""
    unset: tuple[str, ...] = ()
    """Variables in it, or in the values it is made of, that nothing sets; in ``text`` they are empty."""
    via: tuple[Assignment, ...] = ()
    """The assignments that its value went through."""


@dataclass
class Variables:
    """Who sets and uses what, in the order of the text."""

    assignments: dict[str, list[Assignment]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    provided: set[str] = field(default_factory=set)
    """Set by quoted code, in arithmetic or by ``${X:=...}``, or known to be unset (``${X:-...}``)."""
    prefixed: list[Assignment] = field(default_factory=list)
    """``NAME=value COMMAND``: set for one command."""
    used: set[str] = field(default_factory=set)
    """Names that are used anywhere, quoted code and here-documents included."""
    sources_others: bool = False
    """The script reads other scripts or evaluates text, which may set anything."""
    meant: dict[str, str] = field(default_factory=dict)
    """Values that an author meant for variables that nothing sets."""

    def is_set(self, name: str) -> bool:
        """Tell whether the script, the scheduler or the system sets a variable."""
        known = _SCHEDULER.fullmatch(name) or name in SYSTEM_VARIABLES or not variable_name(name)
        return bool(known) or name in self.assignments or name in self.provided

    def everywhere(self, name: str) -> list[Assignment]:
        """Return every assignment of a name, those for one command included, in order."""
        made = [*self.assignments.get(name, []), *(one for one in self.prefixed if one.name == name)]
        return sorted(made, key=lambda one: one.offset)

    def value(self, name: str, before: int) -> Assignment | None:
        """Return the last assignment before an offset."""
        made = self.assignments.get(name, [])
        index = bisect_left([one.offset for one in made], before)
        return made[index - 1] if index else None

    def expand(self, word: Word, *, meant: bool = False) -> Expansion:
        """Return what a word becomes; with ``meant`` unset variables take the value their author meant."""
        return self._expand(word, meant, {}, word.start)

    def _expand(self, word: Word, meant: bool, known: dict[Assignment, Expansion], offset: int) -> Expansion:
        text: str | None = ""
        unset: list[str] = []
        via: list[Assignment] = []
        for part in word.parts:
            piece = self._part(part, offset, meant, known)
            unset += [name for name in piece.unset if name not in unset]
            via += [one for one in piece.via if one not in via]
            text = None if text is None or piece.text is None else text + piece.text
            if text is not None and len(text) > MAX_CHARS:
                text = None
        return Expansion(text, tuple(unset), tuple(via))

    def _part(self, part: Part, offset: int, meant: bool, known: dict[Assignment, Expansion]) -> Expansion:
        if part.kind == "text":
            return Expansion(part.text)
        if part.kind != "variable" or part.operator:
            return Expansion(None)
        if not self.is_set(part.text):
            return Expansion(self.meant.get(part.text, "") if meant else "", (part.text,))
        made = self.value(part.text, offset)
        if made is None or made.value is None or made.append:
            return Expansion(None)
        if made not in known:
            known[made] = Expansion(None)  # an end to circles; offsets fall, so there are none
            known[made] = self._expand(made.value, meant, known, made.offset)
        inner = known[made]
        return Expansion(inner.text, inner.unset, (made, *inner.via))


def read_variables(shell: Shell) -> Variables:
    """Collect the variables of a script."""
    found = Variables()
    for command in shell.commands:
        for one in command.assignments:
            if command.words:
                found.prefixed.append(one)
            else:
                found.assignments.setdefault(one.name, []).append(one)
        for one in _set_by(command, found):
            found.assignments.setdefault(one.name, []).append(one)
        if command.name in (".", "source", "eval"):
            found.sources_others = True
    _from_quoted(shell, found)
    for made in found.assignments.values():
        made.sort(key=lambda one: one.offset)
        found.exported |= {one.name for one in made if one.exported}
    found.used |= {ref.name for ref in shell.refs}
    return found


def _set_by(command: Command, found: Variables) -> Iterator[Assignment]:
    """Yield what a command sets beside ``NAME=value`` of its own."""
    name, words = command.name, command.words[1:]
    if name in _DECLARING:
        exports = name == "export" or any(re.match(r"-\w*x", word.raw) for word in words)
        for word in words:
            if is_assignment(word):
                yield assignment_in(word, exported=exports)
            elif exports and variable_name(word.raw):
                found.exported.add(word.raw)
    elif name in ("read", "mapfile", "readarray", "for", "select", "getopts", "printf", "let", "unset"):
        yield from _named(command, words)


def _named(command: Command, words: list[Word]) -> Iterator[Assignment]:
    """Yield the variables that read, for and the like name."""
    texts = [word.visible for word in words]
    if command.name in ("for", "select"):
        names = texts[:1]
    elif command.name == "printf":
        names = [texts[i + 1] for i, text in enumerate(texts[:-1]) if text == "-v"]
    elif command.name == "let":
        names = [match[1] for text in texts if (match := re.match(r"(\w+)\s*[-+*/%]?=", text))]
    else:
        names = [text for text in texts if variable_name(text)]
    for name in names:
        if variable_name(name):
            yield Assignment(name, None, command.start, command.line)


def _from_quoted(shell: Shell, found: Variables) -> None:
    """Note what quoted code uses and sets: a step's ``bash -c '...'``, a here-document."""
    for text in shell.quoted_texts:
        found.used |= set(re.findall(r"\$\{?[#!]?([A-Za-z_]\w*)", text))
        found.provided |= set(re.findall(r"\b([A-Za-z_]\w*)=", text))
    found.provided |= {ref.name for ref in shell.refs if ref.guarded}
