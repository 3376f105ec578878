"""The parts of a shell script: commands, words, redirections and variables, with their lines.

Commands are a flat list in the order of the text. Each has the facts about its surroundings that a linter
needs: pipes, conditions, functions, substitutions.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[(?:[^][\n]|\[[^][\n]*\])*\])?(\+?)=")

PartKind = Literal["text", "variable", "command", "arithmetic", "array"]


@dataclass(frozen=True)
class Part:
    """A piece of a word."""

    kind: PartKind
    text: str
    """text: the characters, quotes removed; variable: its name; else the source."""
    operator: str = ""
    """Of a variable: the text after the name in ``${NAME...}``, such as ``:-x``; ``~`` home; ``*`` files."""
    quoted: bool = False
    """It stands in double quotes, so its value is not split."""
    words: tuple["Word", ...] = ()
    """Of an array: its items; of ``${NAME:-x}`` and the like: the word behind the operator."""


@dataclass(frozen=True)
class Ref:
    """A use of a variable."""

    name: str
    offset: int
    line: int
    guarded: bool
    """True: the unset case is handled (``${X:-...}``, ``${X:+...}``, ``${X?...}``)."""


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

    @cached_property
    def visible(self) -> str:
        """The word after quote removal, without its expansions."""
        return "".join(part.text for part in self.parts if part.kind == "text")


@dataclass(frozen=True)
class Redirect:
    """A redirection; of a here-document ``body`` is the text."""

    fd: str
    operator: str
    target: Word
    line: int
    body: str | None = None
    start: int = -1
    """Of a here-document: where its text begins."""

    @property
    def is_quoted(self) -> bool:
        """Whether a here-document stays as it is: a quote stands in its delimiter (man bash)."""
        return any(quote in self.target.raw for quote in "'\"\\")


@dataclass(eq=False)
class Block:
    """A compound command, or a chain of ``&&`` and ``||``: which of its branches run is known at run time."""

    kind: str
    """if, case, while, for, function, ``(`` (a subshell), ``sh`` (a quoted text for a shell), ``&&``, ..."""
    branches: int = 0
    exhaustive: bool = False
    """One of the branches always runs: there is an ``else``, or ``*)``."""
    left_by: set[int] = field(default_factory=set)
    """The branches that end the script."""

    def lacks_body(self, word: str) -> bool:
        """Tell whether ``then`` or ``do`` is missing before a word: its end, or that of its next branch."""
        waits = self.branches % 2 == 0 and not self.exhaustive if self.kind == "if" else not self.branches
        return self.kind in ("if", "while", "until", "for", "select") and waits and self.kind + word != "for}"

    def covered_by(self, branches: set[int]) -> bool:
        """Tell whether the script goes on after the block only behind one of these branches."""
        bodies = range(1, self.branches + 1, 2 if self.kind == "if" else 1)
        return self.exhaustive and branches | self.left_by >= {*bodies, self.branches}


Path = tuple[tuple[Block, int], ...]
"""The blocks around a command with the branch of each, from the outermost; branch 0 is a condition."""


@dataclass(frozen=True)
class Assignment:
    """A variable that is set; ``value`` None: the value is known at run time only."""

    name: str
    value: Word | None
    offset: int
    line: int
    exported: bool = False
    append: bool = False
    path: Path = ()
    items: tuple[Word, ...] | None = None
    """The words of an array; None: it is not an array."""
    read_at: int = -1
    """Where the variables in its value are read: bash expands all words of ``export A=1 B=$A`` first."""


@dataclass
class Command:
    """One simple command with facts about its surroundings."""

    line: int
    start: int
    end: int = 0
    words: list[Word] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    before: str = ""
    """Operator between it and the command before: ``|``, ``&&``, newline, ..."""
    after: str = ""
    piped_in: bool = False
    piped_out: bool = False
    """Its stdout, or that of its group, goes into another command."""
    condition: bool = False
    """It is the condition of if, while or until."""
    depth: int = 0
    """Number of substitutions around it."""
    block: int = 0
    """Number of compound commands and functions around it."""
    function: bool = False
    path: Path = ()
    inner: list["Command"] = field(default_factory=list)
    """The commands of the script that it gives to another shell: ``bash -c TEXT``, ``bash <<EOF``."""

    @property
    def name(self) -> str:
        """The first word as written after quote removal; empty for a bare assignment."""
        return self.words[0].visible if self.words else ""

    @property
    def has_input(self) -> bool:
        """Whether a redirection opens its input, file descriptor 0."""
        return any(one.operator.startswith("<") and one.fd in ("", "0") for one in self.redirects)


@dataclass
class Shell:
    """A whole script."""

    commands: list[Command] = field(default_factory=list)
    refs: list[Ref] = field(default_factory=list)
    quoted_texts: list[str] = field(default_factory=list)
    """Bodies of quoted here-documents and single-quoted words, which may be code of other shells."""
    misplaced: list[tuple[int, str]] = field(default_factory=list)
    """Line and text of each ``(`` among a command's words, and of each ``fi`` or ``done`` without begin."""
    placeholders: list[tuple[int, str]] = field(default_factory=list)
    """Line and text of what a sample leaves open in its commands: ``<program>``, ``<<path to it>>``."""
    template: bool = False
    """It is not what a shell reads in the end: there are placeholders, or statements of Jinja."""


def assignment_in(
    word: Word, *, of: Command | None = None, exported: bool = False, path: Path = ()
) -> Assignment:
    """Return the assignment that a word ``NAME=value`` is; ``of``: the command whose argument it is."""
    raw = word.raw.lstrip("'\"")  # export "NAME=$A"
    match = ASSIGNMENT.match(raw)
    assert match is not None  # noqa: S101
    parts = without_beginning(word.parts, match.end())
    start = word.start + len(word.raw) - len(raw) + match.end()
    value = Word(raw[match.end() :], start, word.end, word.line, parts)
    items = next((part.words for part in parts if part.kind == "array"), None)
    whole = match[2] is None and items is None
    added, read_at = bool(match[3]), of.start if of else word.start
    plain = value if whole else None
    return Assignment(match[1], plain, word.start, word.line, exported, added, path, items, read_at)


def without_beginning(parts: Iterable[Part], characters: int) -> tuple[Part, ...]:
    """Return the parts of a word without its first characters, of a value; no pattern is read in one."""
    rest: list[Part] = []
    for part in parts:
        if not characters or part.kind != "text":
            rest.append(replace(part, operator="") if part.operator == "*" else part)
            continue
        text = part.text[characters:]
        characters = max(0, characters - len(part.text))
        if text:
            rest.append(Part("text", text))
    return tuple(rest)


def text_part(text: str) -> Part:
    """Return text without quotes as a part of a word; ``*`` and ``?`` make it a pattern of files."""
    return Part("text", text, "*" if "*" in text or "?" in text else "")


def is_assignment(word: Word) -> bool:
    """Tell whether an argument of export and the like reads ``NAME=...``, also in quotes."""
    return ASSIGNMENT.match(word.raw.lstrip("'\"")) is not None


def variable_name(text: str) -> bool:
    """Tell whether a text is the name of a variable."""
    return _NAME.fullmatch(text) is not None
