"""The options of launchers, ``launcher_options.yaml``, and how each launcher reads them from a command."""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from hpclaunch.package_data import package_table
from hpclaunch.shell.shell_syntax import Word

Size = Literal[
    "nodes",
    "tasks",
    "tasks per node",
    "cpus",
    "gpus",
    "gpus per node",
    "gpus per task",
    "sets",
    "sets per node",
]
About = Literal["binding", "container", "environment", "fabric", "log", "nodes by name", "nothing"]


class LauncherOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one launcher, without dashes."""

    verbs: frozenset[str] = frozenset()
    getopt: bool = False
    letters: Mapping[str, str] = {}
    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    sizes: Mapping[str, Size] = {}
    about: Mapping[str, About] = {}


def _read(row: dict[str, Any]) -> LauncherOptions:
    sets = {part: row.get(part, "").split() for part in ("verbs", "flags", "valued", "pairs")}
    maps = {
        part: {name: subject for subject, names in row[part].items() for name in names.split()}
        for part in ("sizes", "about")
    }
    return msgspec.convert({**row, **sets, **maps}, LauncherOptions)


LAUNCHER_OPTIONS = {name: _read(row) for name, row in package_table("shell/launcher_options.yaml").items()}
MPIEXEC = LAUNCHER_OPTIONS["mpiexec"]
LIST_OPTIONS = frozenset({"cpu-bind", "cpu_bind", "gpu-bind", "mem-bind", "mem_bind"})
_LIST_PIECE = re.compile(r"[0-9A-Fa-fxX,:*-]*\d[0-9A-Fa-fxX,:*-]*|,")


def continues_list(last: str, word: str) -> bool:
    """Tell whether a word goes on with the list that ends with ``last``: a blank has torn it."""
    open_end = last.endswith((",", ":")) or word.startswith(",")
    return open_end and _LIST_PIECE.fullmatch(word) is not None


class OptionWords(NamedTuple):
    """An option, read from a command's words."""

    name: str
    value: Word | None
    """The word that holds the value."""
    prefix: int
    """Characters of that word before the value."""
    words: int
    """Words that the option takes."""


def read_option(launcher: str, words: list[Word]) -> OptionWords:
    """Read the option of a launcher in the first of these words; its value may be a later word."""
    known = LAUNCHER_OPTIONS.get(launcher, MPIEXEC)
    if known.letters:
        return _letter_or_name(words, known, by_getopt=known.getopt)
    if [word.visible for word in words[:2]] == ["-C", "np"]:
        after = _with_next_word("np", words[1:])
        return after._replace(words=after.words + 1)
    return _mpi_option(words)


def _letter_or_name(words: list[Word], options: LauncherOptions, *, by_getopt: bool) -> OptionWords:
    """Read ``-n4``, ``-n 4``, ``--nrs=4`` or ``--nrs 4``; only getopt has options without a value."""
    shown = words[0].visible
    name, equals, _ = shown.lstrip("-").partition("=")
    if not shown.startswith("--") and (by_getopt or name not in options.valued):
        return _letter(words, options, "" if by_getopt else name)
    if equals:
        return OptionWords(name, words[0], shown.index("=") + 1, 1)
    alone = by_getopt and name not in options.valued
    return OptionWords(name, None, 0, 1) if alone else _with_next_word(name, words)


def _letter(words: list[Word], options: LauncherOptions, unknown: str) -> OptionWords:
    """Read a letter behind flags; ``unknown``: the name of an option that has no letter."""
    shown = words[0].visible
    while shown[1] in options.flags and len(shown) > 2 and not shown[2].isdigit():  # -K1 has its value
        shown = shown[0] + shown[2:]
    name = options.letters.get(shown[1], shown[1])
    if shown[1] in options.flags or (unknown and shown[1] not in options.letters):
        return OptionWords(unknown or name, None, 0, 1)
    if len(shown) > 2 or len(words[0].parts) > 1:
        flags = len(words[0].visible) - len(shown)
        return OptionWords(name, words[0], flags + 2 + (shown[2:3] == "="), 1)
    return _with_next_word(name, words)


def _mpi_option(words: list[Word]) -> OptionWords:
    """Read the option of mpiexec in the first of these words; its value may be the second."""
    shown = words[0].visible
    name, equals, _ = shown.lstrip("-").partition("=")
    if equals:
        return OptionWords(name, words[0], shown.index("=") + 1, 1)
    joined = re.match(r"-(np|ppn|n|N|c|d)(?=\d|$)", shown)
    if joined and (len(shown) > joined.end() or len(words[0].parts) > 1):  # -n4, -n$RANKS
        return OptionWords(joined[1], words[0], joined.end(), 1)
    if name in MPIEXEC.pairs:  # hydra: --env NAME VALUE; PALS: --env NAME=VALUE
        in_one_word = len(words) > 1 and "=" in words[1].visible
        return _with_next_word(name, words)._replace(words=2 if in_one_word else 3)
    return _with_next_word(name, words) if name in MPIEXEC.valued else OptionWords(name, None, 0, 1)


def _with_next_word(name: str, words: list[Word]) -> OptionWords:
    """Return an option whose value is the next word, where there is one."""
    return OptionWords(name, words[1], 0, 2) if len(words) > 1 else OptionWords(name, None, 0, 1)
