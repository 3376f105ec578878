"""The variables of a script: where they are set and used, and the value of a word.

A value is computed only from the text. What comes at run time (other scripts that are sourced, commands, the
environment) is unknown and never guessed.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from hpclaunch.lint.known_variables import SYSTEM
from hpclaunch.shell.shell_syntax import (
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
"""Longest value that is computed; the bind list of a node is much shorter."""

_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
_SCHEDULER = re.compile(
    r"(SLURM|SLURMD|SBATCH|SRUN|PBS|PMI|PMIX|PALS|OMPI|PRTE|MPI|LMOD|CRAY|EB|HPCLAUNCH|NCPUS|OMP)_?\w*"
    r"|(COBALT|LSB|LS|SGE|FLUX|OAR|PJM|MOAB|CUDA_VISIBLE|ROCR_VISIBLE|HIP_VISIBLE)_\w*"
    r"|NSLOTS|NHOSTS|NQUEUES|PE|PE_HOSTFILE|JOB_ID|JOB_NAME|TASK_ID|QUEUE|RESTARTED|GPU_DEVICE_ORDINAL"
)


# What a script sources or evaluates for its environment: it sets PATH and the like.
_ENVIRONMENT = re.compile(r"activate|conda|mamba|profile|bashrc|modules?\.sh|/init/|ssh-agent|/lmod|spack")


@dataclass(frozen=True)
class Expansion:
    """The value of a word."""

    text: str | None
    """None: a part of it is known at run time only."""
    unset: tuple[str, ...] = ()
    """Variables that nothing sets, in it or in the values that it uses; in ``text`` they are empty."""
    via: tuple[Assignment, ...] = ()
    """The assignments that its value uses."""


@dataclass
class Variables:
    """Where variables are set and used, in the order of the text."""

    assignments: dict[str, list[Assignment]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    provided: set[str] = field(default_factory=set)
    """Set by quoted code, in arithmetic or by ``${X:=...}``, or handled when unset (``${X:-...}``)."""
    prefixed: list[Assignment] = field(default_factory=list)
    """``NAME=value COMMAND``: set for one command only."""
    used: set[str] = field(default_factory=set)
    """Names that are used anywhere, including quoted code and here-documents."""
    sources_others: bool = False
    """The script sources other scripts or evaluates text, which may set any variable."""
    sources_unknown: bool = False
    """Likewise, except for scripts that are known to set no variable of a job (conda, venv, modules)."""
    meant: dict[str, str] = field(default_factory=dict)
    """Values that the author probably meant for variables that nothing sets."""

    def is_set(self, name: str) -> bool:
        """Tell whether the script, the scheduler or the system sets a variable."""
        known = _SCHEDULER.fullmatch(name) or name in SYSTEM or not variable_name(name)
        return bool(known) or name in self.assignments or name in self.provided

    def all_assignments(self, name: str) -> list[Assignment]:
        """Return every assignment of a name in order, including those for one command."""
        made = [*self.assignments.get(name, []), *(one for one in self.prefixed if one.name == name)]
        return sorted(made, key=lambda one: one.offset)

    def last_assignment(self, name: str, before: int) -> Assignment | None:
        """Return the last assignment before an offset."""
        made = self.assignments.get(name, [])
        index = bisect_left([one.offset for one in made], before)
        return made[index - 1] if index else None

    def expand(self, word: Word, *, meant: bool = False) -> Expansion:
        """Return the value of a word; with ``meant`` unset variables have the value that was meant."""
        return self._expand(word, meant, {}, word.start)

    def _expand(self, word: Word, meant: bool, known: dict[Assignment, Expansion], offset: int) -> Expansion:
        text: str | None = ""
        unset: list[str] = []
        via: list[Assignment] = []
        for part in word.parts:
            piece = self._part(part, offset, meant, known)
            unset += [name for name in piece.unset if name not in unset]
            via += [one for one in piece.via if one not in via]
            text = _joined(text, piece.text)
        return Expansion(text, tuple(unset), tuple(via))

    def _part(self, part: Part, offset: int, meant: bool, known: dict[Assignment, Expansion]) -> Expansion:
        if part.kind == "text":
            return Expansion(part.text)
        if part.kind != "variable" or part.operator:
            return Expansion(None)
        if self.is_set(part.text):
            return self._last_value(self.last_assignment(part.text, offset), meant, known)
        return Expansion(self.meant.get(part.text, "") if meant else "", (part.text,))

    def _last_value(
        self, assignment: Assignment | None, meant: bool, known: dict[Assignment, Expansion]
    ) -> Expansion:
        if assignment is None or assignment.value is None or assignment.append:
            return Expansion(None)
        if assignment not in known:
            known[assignment] = Expansion(None)  # stops a circle; offsets decrease, so there is none
            known[assignment] = self._expand(assignment.value, meant, known, assignment.offset)
        inner = known[assignment]
        return Expansion(inner.text, inner.unset, (assignment, *inner.via))


def _joined(text: str | None, more: str | None) -> str | None:
    """Join two parts; None: one of them is not known, or the result is too long."""
    if text is None or more is None or len(text) + len(more) > MAX_CHARS:
        return None
    return text + more


def read_variables(shell: Shell) -> Variables:
    """Collect the variables of a script."""
    found = Variables()
    for command in shell.commands:
        _note_assignments(command, found)
        if command.name in (".", "source", "eval"):
            found.sources_others = True
            found.sources_unknown |= not any(_ENVIRONMENT.search(word.raw) for word in command.words[1:2])
    _from_quoted(shell, found)
    for assignments in found.assignments.values():
        assignments.sort(key=lambda one: one.offset)
        found.exported |= {one.name for one in assignments if one.exported}
    found.used |= {ref.name for ref in shell.refs}
    return found


def _note_assignments(command: Command, found: Variables) -> None:
    """Note what a command sets: ``NAME=value COMMAND`` for itself, else for all later commands."""
    if command.words:
        found.prefixed += command.assignments
    lasting = () if command.words else command.assignments
    for one in (*lasting, *_set_by(command, found)):
        found.assignments.setdefault(one.name, []).append(one)


def _set_by(command: Command, found: Variables) -> Iterator[Assignment]:
    """Yield what a command sets by its arguments; note the names that it exports."""
    if command.name in _DECLARING:
        yield from _declared(command, found)
    elif command.name in _NAMES_SET_BY:
        texts = [word.visible for word in command.words[1:]]
        for name in filter(variable_name, _NAMES_SET_BY[command.name](texts)):
            yield Assignment(name, None, command.start, command.line)


def _declared(command: Command, found: Variables) -> Iterator[Assignment]:
    """Yield what export, declare and the like set; note the names that they export."""
    words = command.words[1:]
    exports = command.name == "export" or any(re.match(r"-\w*x", word.raw) for word in words)
    for word in words:
        if is_assignment(word):
            yield assignment_in(word, exported=exports)
        elif exports and variable_name(word.raw):
            found.exported.add(word.raw)


def _first_word(texts: list[str]) -> list[str]:
    return texts[:1]


def _every_word(texts: list[str]) -> list[str]:
    return texts


def _words_after_v(texts: list[str]) -> list[str]:
    return [name for option, name in pairwise(texts) if option == "-v"]


def _words_after_a(texts: list[str]) -> list[str]:
    return [name for option, name in pairwise(texts) if option == "-A"]


def _words_before_equals(texts: list[str]) -> list[str]:
    matches = [re.match(r"(\w+)\s*[-+*/%]?=", text) for text in texts]
    return [match[1] for match in matches if match]


# Command -> those of its words that may be names of variables which it sets.
_NAMES_SET_BY: dict[str, Callable[[list[str]], list[str]]] = {
    "for": _first_word,
    "select": _first_word,
    "printf": _words_after_v,
    "set": _words_after_a,
    "let": _words_before_equals,
    "read": _every_word,
    "mapfile": _every_word,
    "readarray": _every_word,
    "getopts": _every_word,
    "unset": _every_word,
}


def _from_quoted(shell: Shell, found: Variables) -> None:
    """Note what quoted code uses and sets: ``bash -c '...'`` in a step, a here-document."""
    for text in shell.quoted_texts:
        found.used |= set(re.findall(r"\$\{?[#!]?([A-Za-z_]\w*)", text))
        found.provided |= set(re.findall(r"\b([A-Za-z_]\w*)=", text))
    found.provided |= {ref.name for ref in shell.refs if ref.guarded}
