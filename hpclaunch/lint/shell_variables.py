"""The variables of a script: where they are set and used, and the value of a word.

A value is computed only from the text. What comes at run time (other scripts that are sourced, commands, the
environment) is unknown and never guessed.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise, takewhile
from operator import attrgetter
from typing import TypeVar

from hpclaunch.lint.known_variables import SYSTEM, TABLE
from hpclaunch.shell import shell_syntax
from hpclaunch.shell.arithmetic import bounds
from hpclaunch.shell.shell_reader import DECLARING
from hpclaunch.shell.shell_syntax import Assignment, Block, Command, Part, Path, Shell, Word, variable_name

_SCHEDULER = re.compile("|".join(TABLE["by_schedulers"]))
_ENVIRONMENT = re.compile("|".join(TABLE["of_environments"]))
_Text = TypeVar("_Text")
_ONE_OF = ("if", "case", "&&")
_LOOPS = ("for", "while", "until", "select")
_MAYBE = (*_ONE_OF, *_LOOPS, "function")


@dataclass(frozen=True)
class Expansion:
    """The value of a word."""

    text: str | None
    unset: tuple[str, ...] = ()
    via: tuple[Assignment, ...] = ()
    shown: str = ""

    def joined(self, more: "Expansion") -> "Expansion":
        """Return this value followed by another one; one that is too long is not known."""
        known = self.text is not None and more.text is not None
        text = f"{self.text}{more.text}" if known else None
        shown = self.in_words + more.in_words
        if len(shown) > TABLE["max_chars"]:
            text, shown = None, "?"
        unset = (*self.unset, *(name for name in more.unset if name not in self.unset))
        return Expansion(text, unset, tuple(dict.fromkeys((*self.via, *more.via))), shown)

    @property
    def in_words(self) -> str:
        """The text, or what is shown in its place."""
        return self.shown or self.text or ""


@dataclass
class Variables:
    """Where variables are set and used, in the order of the text."""

    assignments: dict[str, list[Assignment]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    provided: set[str] = field(default_factory=set)
    prefixed: list[Assignment] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    sources_others: bool = False
    sources_unknown: bool = False
    meant: dict[str, str] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    _known: dict[tuple[Assignment, bool], tuple[Expansion, ...]] = field(default_factory=dict)
    _open: list[Assignment] = field(default_factory=list)

    def is_set(self, name: str) -> bool:
        """Tell whether the script, the scheduler or the system sets a variable."""
        known = _SCHEDULER.fullmatch(name) or name in SYSTEM or not variable_name(name)
        return bool(known) or name in self.assignments or name in self.provided

    def all_assignments(self, name: str) -> list[Assignment]:
        """Return every assignment of a name in order, including those for one command."""
        made = [*self.assignments.get(name, []), *(one for one in self.prefixed if one.name == name)]
        return sorted(made, key=lambda one: one.offset)

    def values_of(self, *names: str) -> Iterator[tuple[Assignment, str]]:
        """Yield the assignments of these variables whose value is known and not empty, with the value."""
        for one in chain.from_iterable(map(self.all_assignments, names)):
            if one.value is not None and (text := self.expand(one.value).text):
                yield one, text

    def expand(self, word: Word, *, meant: bool = False) -> Expansion:
        """Return a word's value where it has only one; ``meant``: unset variables have the meant value."""
        found = self.values(word, meant=meant)
        if len({one.text for one in found}) == 1:
            return found[-1]
        unset = dict.fromkeys(name for one in found for name in one.unset)
        return Expansion(None, tuple(unset), found[-1].via, "$")

    def values(self, word: Word, *, meant: bool = False) -> tuple[Expansion, ...]:
        """Return every value that a word may have, each with the assignments that it comes from."""
        self._known.clear()  # the meant values grow
        return self._values(word.parts, word.start, self._path_at(word.start), meant)

    def fields(self, words: Iterable[Word]) -> list[str]:
        """Return words as the shell splits them; what has no single value stays as ``$NAME`` or ``?``."""
        found: list[str] = []
        for word in words:
            found += self._fields(word, word.start, self._path_at(word.start), 0)
        return found

    def _path_at(self, offset: int) -> Path:
        """Return the blocks around a place."""
        at = bisect_right(self._starts, offset) - 1
        for command in reversed(self.commands[max(0, at - TABLE["nested"]) : at + 1] if offset >= 0 else ()):
            if command.end > offset:
                return command.path
        return ()

    @cached_property
    def _starts(self) -> list[int]:
        return [command.start for command in self.commands]

    def reaching_at(self, name: str, offset: int) -> list[Assignment | None]:
        """Return the assignments that may hold at a place, in their order; None: what was there before."""
        return reaching(self.assignments.get(name, ()), offset, self._path_at(offset))

    def _values(self, parts: Iterable[Part], offset: int, path: Path, meant: bool) -> tuple[Expansion, ...]:
        found: tuple[Expansion, ...] = (Expansion(""),)
        for part in parts:
            pieces = self._part(part, offset, path, meant)
            if len(found) * len(pieces) > TABLE["most_values"]:
                pieces = (Expansion(None, shown=_shown(part)),)
            found = tuple(one.joined(piece) for one in found for piece in pieces)
        return found

    def _part(self, part: Part, offset: int, path: Path, meant: bool) -> tuple[Expansion, ...]:
        known = part.kind == "variable" and self.is_set(part.text)
        if part.kind != "variable" or (part.operator and not part.words):
            text = _constant(part)
            return (Expansion(None, shown=_shown(part)) if text is None else Expansion(text),)
        if not (known or part.words):
            value = self.meant.get(part.text, "") if meant else ""
            return (Expansion(value, (part.text,), shown=_shown(part)),)
        return tuple(dict.fromkeys(self._alternatives(part, offset, path, meant)))

    def _alternatives(self, part: Part, offset: int, path: Path, meant: bool) -> Iterator[Expansion]:
        """Yield the values of a variable by each assignment that may hold."""
        for one in reaching(self._seen(part.text, path), offset, path):
            for value in self._assigned(one, part, meant):
                yield from self._substituted(value, part, offset, path, meant) if part.words else [value]

    def _seen(self, name: str, path: Path) -> Sequence[Assignment]:
        """Return the assignments of a variable; in a text for another shell its own and exported ones."""
        made, inside = self.assignments.get(name, ()), {block for block, _ in path if block.kind == "sh"}
        known = not inside or name in self.exported or name in SYSTEM or _SCHEDULER.fullmatch(name)
        return made if known else [one for one in made if inside & dict(one.path).keys()]

    def _assigned(self, one: Assignment | None, part: Part, meant: bool) -> tuple[Expansion, ...]:
        value = self._assigned_word(one) if one else None
        if one is None or value is None:
            return (Expansion(None, shown=_shown(part)),)
        key = (one, meant)
        if key not in self._known:
            self._open.append(one)
            parts = (Part("variable", one.name), *value.parts) if one.append else value.parts
            found = self._values(parts, one.read_at, one.path, meant)
            self._open.pop()
            self._known[key] = tuple(replace(each, via=(one, *each.via)) for each in found)
        return self._known[key]

    def _assigned_word(self, one: Assignment) -> Word | None:
        """Return the word that an assignment sets a variable to; None: it is not known, or without an end."""
        endless = one in self._open or len(self._open) > TABLE["depth"] or _grows(one)
        return None if endless else one.value or (one.items[0] if one.items else None)

    def _substituted(
        self, value: Expansion, part: Part, offset: int, path: Path, meant: bool
    ) -> Iterator[Expansion]:
        """Yield what ``${NAME:-WORD}`` and the like make of a value of the variable."""
        word = self._values(part.words[0].parts, offset, path, meant)
        other = part.operator.lstrip(":")[:1] == "+"
        has = bool(value.text) or not part.operator.startswith(":")
        if value.text is None or has is other:
            yield from word
        if value.text is None or has is not other:
            yield Expansion("") if other else value

    def _fields(self, word: Word, offset: int, path: Path, depth: int) -> list[str]:
        pieces = [self._pieces(part, offset, path, depth) for part in word.parts]
        found = _words_of(chain.from_iterable(pieces))
        arrays = [one for part, one in zip(word.parts, pieces, strict=True) if part.operator == "[@]"]
        return [] if found == [""] and arrays and not any(arrays) else found

    def _pieces(self, part: Part, offset: int, path: Path, depth: int) -> list[str | None]:
        """Return the texts that a part of a word gives; None: one word ends there."""
        if part.kind == "text":
            return [part.text]
        if part.operator in ("[@]", "[*]") and depth < TABLE["depth"]:
            items = self._items(part, offset, path, depth)
            pieces = [piece for item in items for piece in (None, *([item] if part.quoted else _split(item)))]
            return pieces[1:]
        found = self._part(part, offset, path, meant=False)
        texts = [one.shown if one.text is None or one.unset else one.text for one in found]
        return _split_as_one(part, texts)

    def _items(self, part: Part, offset: int, path: Path, depth: int) -> list[str]:
        """Return the items of an array as far as they are the same in every case."""
        cases: list[list[str]] = []
        for one in reaching(self._seen(part.text, path), offset, path):
            if one is None or one.items is None or _grows(one):
                cases.append([_shown(part)])
                continue
            adds = one.append and depth < TABLE["depth"]
            before = self._items(part, one.offset, one.path, depth + 1) if adds else []
            own = [
                each for word in one.items for each in self._fields(word, one.read_at, one.path, depth + 1)
            ]
            cases.append([*before, *own])
        same, differ = _common(cases)
        return [*same, _shown(part)] if differ else same


def _grows(one: Assignment) -> bool:
    """Tell whether an assignment adds to its variable any number of times."""
    return one.append and any(block.kind in _LOOPS for block, _ in one.path)


def _words_of(pieces: Iterable[str | None]) -> list[str]:
    """Join the pieces up to each end of a word, which is None."""
    found: list[str] = []
    goes_on = False
    for piece in pieces:
        if piece is not None and goes_on:
            found[-1] += piece
        elif piece is not None:
            found.append(piece)
        goes_on = piece is not None
    return found


def _split(text: str) -> list[str | None]:
    """Split the value of an unquoted variable at its blanks, each of which is None."""
    return [match[1] for match in re.finditer(r"[ \t\n]+|([^ \t\n]+)", text)]


def _split_as_one(part: Part, values: list[str]) -> list[str | None]:
    """Return the texts that the values of a variable have in common."""
    texts = list(dict.fromkeys(values))
    if part.quoted or any(re.search("['\"]", word.raw) for word in part.words):  # where it is not split
        return [texts[0] if len(texts) == 1 and part.quoted else _shown(part)]
    same, differ = _common([_split(text) for text in texts])
    return [*same, *([None] if same else []), _shown(part)] if differ else same


def _common(cases: list[list[_Text]]) -> tuple[list[_Text], bool]:
    """Return the texts at the beginning of every case, and whether more follows in one of them."""
    same = [texts[0] for texts in takewhile(lambda texts: len(set(texts)) == 1, zip(*cases, strict=False))]
    return same, any(len(case) != len(same) for case in cases)


def _constant(part: Part) -> str | None:
    """Return the text of a part without variables, of ``$((4*4))`` the number; None: it is not known."""
    if part.kind == "arithmetic" and re.fullmatch(r"\$\(\([\d\s()*/%+-]{1,99}\)\)", part.text):
        low, high = bounds(part.text[3:-2]) or (0, 1)
        return str(low) if low == high else None
    return part.text if part.kind == "text" else None


def _shown(part: Part) -> str:
    return f"${part.text}" if part.kind == "variable" else "?"


def read_variables(shell: Shell) -> Variables:
    """Collect the variables of a script."""
    every = sorted(_with_inner(shell.commands), key=lambda command: command.start)
    found = Variables(commands=every)
    for command in every:
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


def _with_inner(commands: Iterable[Command]) -> Iterator[Command]:
    for command in commands:
        yield command
        yield from _with_inner(command.inner)


def _note_assignments(command: Command, found: Variables) -> None:
    """Note what a command sets: ``NAME=value COMMAND`` for itself, else for all later commands."""
    if command.words:
        found.prefixed += command.assignments
    lasting = () if command.words else command.assignments
    for one in (*lasting, *_set_by(command, found)):
        found.assignments.setdefault(one.name, []).append(one)


def _set_by(command: Command, found: Variables) -> Iterator[Assignment]:
    """Yield what a command sets by its arguments; note the names that it exports."""
    if command.name in DECLARING:
        yield from _declared(command, found)
    elif command.name in _NAMES_SET_BY:
        texts = [word.visible for word in command.words[1:]]
        for name in filter(variable_name, _NAMES_SET_BY[command.name](texts)):
            yield Assignment(name, None, command.start, command.line, path=command.path)


def _declared(command: Command, found: Variables) -> Iterator[Assignment]:
    """Yield what export, declare and the like set; note the names that they export."""
    words = command.words[1:]
    exports = command.name == "export" or any(re.match(r"-\w*x", word.raw) for word in words)
    for word in words:
        if shell_syntax.is_assignment(word):
            one = shell_syntax.assignment_in(word, of=command, exported=exports, path=command.path)
            if one.value and any(re.match(r"-\w*i", option.raw) for option in words):
                sum_of = (Part("arithmetic", f"$(({one.value.raw}))"),)
                one = replace(one, value=replace(one.value, parts=sum_of))
            yield one
        elif exports and variable_name(word.raw):
            found.exported.add(word.raw)


def _words_after(option: str) -> Callable[[list[str]], list[str]]:
    return lambda texts: [name for word, name in pairwise(texts) if word == option]


# Command -> those of its words that may be names of variables which it sets.
_NAMES_SET_BY: dict[str, Callable[[list[str]], list[str]]] = {
    **dict.fromkeys(("for", "select"), lambda texts: texts[:1]),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts", "unset"), lambda texts: texts),
    "printf": _words_after("-v"),
    "set": _words_after("-A"),
    "let": lambda texts: [word for text in texts for word in re.findall(r"^(\w+)\s*[-+*/%]?=", text)],
}


def _from_quoted(shell: Shell, found: Variables) -> None:
    """Note what quoted code uses and sets: ``bash -c '...'`` in a step, a here-document."""
    for text in shell.quoted_texts:
        found.used |= set(re.findall(r"\$\{?[#!]?([A-Za-z_]\w*)", text))
        found.provided |= set(re.findall(r"\b([A-Za-z_]\w*)=", text))
    found.provided |= {ref.name for ref in shell.refs if ref.guarded}


def reaching(made: Sequence[Assignment], offset: int, path: Path) -> list[Assignment | None]:
    """Return the assignments that may hold at a place, in their order; None: what was there before them all.

    ``made``: those of one variable, in the order of the text; ``path``: the blocks around the place.
    """
    live: list[Assignment | None] = [None]
    covered: dict[Block, set[int]] = {}
    for one in (one for one in made if _may_reach(one, offset, path)):
        maybe = _maybe(one, path)
        if one.offset >= offset or len(maybe) > 1:
            live.append(one)
        elif not maybe:
            live = [one]
        else:
            live = _behind(live, one, maybe[0], covered)
    return live


def _maybe(one: Assignment, path: Path) -> list[tuple[Block, int]]:
    """Return the branches around an assignment, and not around the place, that may not run."""
    return [step for step in one.path if step not in path and step[1] and step[0].kind in _MAYBE]


def _behind(
    live: list[Assignment | None], one: Assignment, step: tuple[Block, int], covered: dict[Block, set[int]]
) -> list[Assignment | None]:
    """Return what may hold behind an assignment in one branch, given what may hold before it."""
    block, branch = step
    live = [*(each for each in live if each is None or step not in each.path), one]
    covered.setdefault(block, set()).add(branch)
    if block.covered_by(covered[block]):
        live = [each for each in live if each and block in dict(each.path)]
    return live


def _may_reach(one: Assignment, offset: int, path: Path) -> bool:
    """Tell whether a place may see an assignment: not from a subshell, another branch, or behind ``exit``."""
    own, here = [step for step in one.path if step not in path], dict(path)
    if any(block.kind in _LOOPS for block, _ in set(one.path) & set(path)):
        return not {"(", "sh"}.intersection(map(attrgetter("kind"), dict(own)))
    functions = {block for block in here if block.kind == "function"}
    before = one.offset < offset or bool(functions - dict(one.path).keys())
    return before and not any(_is_cut_off(block, branch, here) for block, branch in own)


def _is_cut_off(block: Block, branch: int, here: dict[Block, int]) -> bool:
    """Tell whether nothing leads from a branch to a place: a subshell, ``exit``, another branch."""
    elsewhere = bool(branch and here.get(block)) and block.kind in _ONE_OF
    return block.kind in ("(", "sh") or branch in block.left_by or elsewhere
