"""From the words of a directive line to its options, in the ways in which submit commands read them."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.directive_reader import DirectiveOption


class GnuOptions(NamedTuple):
    """Options as getopt_long and argparse read them: ``--nodes=2``, ``--nod 2``, ``-N2``, ``-N 2``."""

    letters: Mapping[str, str]
    """Letter -> long name."""
    flags: frozenset[str]
    """Names that stand alone, or take a value after ``=`` only."""
    valued: frozenset[str]
    aliases: Mapping[str, str] = {}
    """Other names -> the usual one."""
    separators: tuple[str, ...] = ()
    """Words that are no options, but have a meaning."""
    equals_is_value: bool = False
    """``-n=4`` gives the value ``=4`` (getopt); False: 4 (argparse)."""

    def read(self, words: Sequence[str]) -> Iterator[DirectiveOption]:
        """Yield the options of the words; never raises."""
        rest = deque(words)
        while rest:
            word = rest.popleft()
            if word.startswith("--") and len(word) > 2:
                yield self._long(word, rest)
            elif word.startswith("-") and len(word) > 1:
                yield from self._short(word, rest)
            elif word in self.separators:
                yield DirectiveOption(word, None, word)
            else:
                yield DirectiveOption("", None, word, known=False, problem="stray")

    def _long(self, word: str, rest: deque[str]) -> DirectiveOption:
        """Read ``--nodes=2`` or ``--nodes 2``; a value in a separate word is taken from ``rest``."""
        given, equals, value = word[2:].partition("=")
        name = self._full_name(given)
        if not equals and name in self.valued and rest:
            value = rest.popleft()
            return DirectiveOption(name, value, f"{word} {value}")
        return DirectiveOption(name or given, value if equals else None, word, known=name is not None)

    def _full_name(self, given: str) -> str | None:
        """Return the option that ``given`` is taken for: an unambiguous beginning is enough."""
        known = self.flags | self.valued
        if given in known or given in self.aliases:
            return self.aliases.get(given, given)
        longer = {self.aliases.get(name, name) for name in (*known, *self.aliases) if name.startswith(given)}
        return longer.pop() if len(longer) == 1 else None

    def _short(self, word: str, rest: deque[str]) -> Iterator[DirectiveOption]:
        """Read ``-N2``, ``-N 2`` and flags run together, ``-vH``."""
        letters = word[1:]
        while letters:
            name = self.letters.get(letters[0])
            if name is not None and name not in self.flags:
                option = _with_value(name, word, letters[1:].removeprefix("="), rest)
                wrong = self.equals_is_value and letters[1:2] == "="
                yield option._replace(problem="equals") if wrong else option
                return
            yield DirectiveOption(name or letters[0], None, f"-{letters[0]}", known=name is not None)
            letters = letters[1:]


def gnu_options(kind: str, **more: Any) -> GnuOptions:
    """Return the options of a scheduler's submit command, ``slurm/options.json``; ``more``: other fields."""
    row = msgspec.json.decode(text_beside(__file__, f"{kind}/options.json"), type=_Row)
    return GnuOptions(row.letters, row.flags, row.valued, row.aliases, **more)


class _Row(msgspec.Struct):
    letters: dict[str, str]
    flags: frozenset[str]
    valued: frozenset[str]
    aliases: dict[str, str] = {}


def _with_value(name: str, word: str, value: str, rest: deque[str]) -> DirectiveOption:
    if value or not rest:
        return DirectiveOption(name, value or None, word)
    value = rest.popleft()
    return DirectiveOption(name, value, f"{word} {value}")


def word_counts(kind: str) -> dict[str, int]:
    """Return the options of ``lsf/options.json``, each with how many words follow it."""
    rows = msgspec.json.decode(text_beside(__file__, f"{kind}/options.json"), type=dict[int, list[str]])
    return {name: count for count, names in rows.items() for name in names}


def word_options(words: Sequence[str], values: Mapping[str, int]) -> Iterator[DirectiveOption]:
    """Yield options that are whole words after one dash, as those of bsub and of Grid Engine: ``-nnodes 2``.

    ``values``: name -> how many words follow it. An unknown option is taken for one without. Never raises.
    """
    rest = deque(words)
    while rest:
        word = rest.popleft()
        name = word[1:]
        if len(word) < 2 or not word.startswith("-"):
            yield DirectiveOption("", None, word, known=False, problem="stray")
            continue
        value = " ".join(rest.popleft() for _ in range(min(values.get(name, 0), len(rest))))
        yield DirectiveOption(name, value or None, f"{word} {value}".strip(), known=name in values)
