"""What a shell script is made of: commands, words, redirections and variables, with the line of each.

Commands are flat, in the order of the text; what a linter must know of the structure around them (pipes,
conditions, functions, substitutions) is marked on each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]\n]*\])?(\+?)=")

PartKind = Literal["text", "variable", "command", "arithmetic", "array"]


@dataclass(frozen=True)
class Part:
    """A piece of a word."""

    kind: PartKind
    text: str
    """text: the characters, quotes removed; variable: its name; else the source."""
    operator: str = ""
    """Of a variable: what stands after the name in ``${NAME...}``, such as ``:-x`` or ``%%.*``."""


@dataclass(frozen=True)
class Ref:
    """A use of a variable."""

    name: str
    offset: int
    line: int
    guarded: bool
    """True: unset is provided for (``${X:-...}``, ``${X:+...}``, ``${X?...}``)."""


@dataclass(frozen=True)
class Word:
    """One word of a command."""

    raw: str
    start: int
    end: int
    line: int
    parts: tuple[Part, ...]

    @property
    def text(self) -> str | None:
        """The word after quote removal, None where it holds an expansion."""
        return "".join(p.text for p in self.parts) if all(p.kind == "text" for p in self.parts) else None

    @property
    def visible(self) -> str:
        """The word's own characters, with nothing in place of its expansions."""
        return "".join(part.text for part in self.parts if part.kind == "text")


@dataclass(frozen=True)
class Redirect:
    """A redirection; of a here-document ``body`` is the text."""

    fd: str
    operator: str
    target: Word
    line: int
    body: str | None = None


@dataclass(frozen=True)
class Assignment:
    """A variable that is set; ``value`` None: to something that only the run knows."""

    name: str
    value: Word | None
    offset: int
    line: int
    exported: bool = False
    append: bool = False


@dataclass
class Command:
    """One simple command with what stands around it."""

    line: int
    start: int
    end: int = 0
    words: list[Word] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    before: str = ""
    """Operator that joins it to the command before: ``|``, ``&&``, newline, ..."""
    after: str = ""
    piped_in: bool = False
    piped_out: bool = False
    """Its stdout, or that of the group it stands in, goes into another command."""
    condition: bool = False
    """It stands where if, while or until ask for its status."""
    depth: int = 0
    """Substitutions it stands in."""
    block: int = 0
    """Compound commands and functions it stands in."""
    function: bool = False

    @property
    def name(self) -> str:
        """The first word as written after quote removal; empty for a bare assignment."""
        return self.words[0].visible if self.words else ""


@dataclass
class Shell:
    """All that was read."""

    commands: list[Command] = field(default_factory=list)
    refs: list[Ref] = field(default_factory=list)
    quoted_texts: list[str] = field(default_factory=list)
    """Bodies of quoted here-documents and single-quoted words: code of other shells, perhaps."""


def assignment_in(word: Word, *, exported: bool = False) -> Assignment:
    """Return the assignment that a word ``NAME=value`` is."""
    match = ASSIGNMENT.match(word.raw)
    assert match is not None  # noqa: S101
    parts = without_beginning(word.parts, match.end())
    value = Word(word.raw[match.end() :], word.start + match.end(), word.end, word.line, parts)
    whole = match[2] is None and not any(part.kind == "array" for part in parts)
    return Assignment(match[1], value if whole else None, word.start, word.line, exported, bool(match[3]))


def without_beginning(parts: Iterable[Part], characters: int) -> tuple[Part, ...]:
    """Return the parts of a word without its first characters of plain text."""
    rest: list[Part] = []
    for part in parts:
        if not characters or part.kind != "text":
            rest.append(part)
            continue
        text = part.text[characters:]
        characters = max(0, characters - len(part.text))
        if text:
            rest.append(Part("text", text))
    return tuple(rest)


def is_assignment(word: Word) -> bool:
    """Tell whether a word reads ``NAME=...``."""
    return ASSIGNMENT.match(word.raw) is not None


def variable_name(text: str) -> bool:
    """Tell whether a text is the name of a variable."""
    return _NAME.fullmatch(text) is not None
