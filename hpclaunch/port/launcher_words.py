"""The options and the program of a foreign launch."""

import re
from typing import NamedTuple

from hpclaunch.lint.launch_lines import Launch
from hpclaunch.port.foreign_values import Value, Values
from hpclaunch.shell.launcher_options import (
    LAUNCHER_OPTIONS,
    LIST_OPTIONS,
    MPIEXEC,
    Size,
    continues_list,
    read_option,
)
from hpclaunch.shell.shell_syntax import Part, Word

READ_THEMSELVES = ("torchrun", "horovodrun")
"""Launchers of frameworks, whose words `plan.worker_launchers` reads."""


class Piece(NamedTuple):
    """A word of the command line after its variables were replaced."""

    value: Value
    word: Word
    """The script's word that it comes from."""

    @property
    def text(self) -> str:
        """The part of its text that can be read."""
        return self.value.plain if self.value.plain is not None else self.value.seen


class LaunchOption(NamedTuple):
    """An option of a launcher."""

    name: str
    """Without dashes; of srun the long name."""
    value: str | None
    """None: it has none, or the run alone knows it."""
    word: Word
    """The script's word that names it."""


class ReadLaunch(NamedTuple):
    """A launch line: its options, and its program."""

    options: list[LaunchOption]
    program: list[Piece]


def read_options(launch: Launch, values: Values) -> ReadLaunch:
    """Return the options and the program of a launch, its variables replaced as far as they are known."""
    if launch.launcher not in LAUNCHER_OPTIONS:
        return _other_launcher(launch, values)
    rest = _after_launcher(launch, values)
    options: list[LaunchOption] = []
    while rest and rest[0].text.startswith("-") and rest[0].text not in ("-", "--"):
        option, taken = _read_one(rest, launch.launcher)
        options.append(option)
        last, rest = rest[:taken][-1].text, rest[taken:]
        if option.name in LIST_OPTIONS:
            while rest and continues_list(last, rest[0].text):  # a list of cores that blanks have torn
                last, rest = rest[0].text, rest[1:]
    return ReadLaunch(options, rest[1:] if rest and rest[0].text == "--" else rest)


def sizes_of(launcher: str, option: LaunchOption) -> dict[Size, int | None]:
    """Return the sizes that an option of a launcher states; None: the number cannot be read."""
    known, value = LAUNCHER_OPTIONS.get(launcher), (option.value or "").strip()
    if option.name == "map-by" and (ranks := re.match(r"(?i)ppr:(?:(\d+):node\b)?(?:.*\bpe=(\d+))?", value)):
        found: dict[Size, int | None] = {"tasks per node": int(ranks[1]) if ranks[1] else None}
        return {**found, "cpus": int(ranks[2])} if ranks[2] else found
    size = known.sizes.get(option.name) if known else None
    if size is None:
        return {}
    count = re.fullmatch(r"(?:[A-Za-z][\w.-]*:){0,2}(\d{1,9})", value)  # 8, and of GPUs a100:8 and gpu:8
    return {size: int(count[1]) or None if count else None}


def _other_launcher(launch: Launch, values: Values) -> ReadLaunch:
    """Read a launch without a table of options: no launcher at all, one that reads all words, or ibrun.

    Wrappers such as ``timeout`` and ``uv run`` stay before the first two.
    """
    if not launch.by_launcher or launch.launcher in READ_THEMSELVES:
        return ReadLaunch([], words_of(values, launch.command.words))
    first = launch.command.words[0]
    options = [LaunchOption(one.name, None, one.value or first) for one in launch.options]
    return ReadLaunch(options, words_of(values, launch.program))


def words_of(values: Values, words: list[Word]) -> list[Piece]:
    """Return what some words become on a command line."""
    found: list[Piece] = []
    for word in words:
        items = values.split(word)
        found += [Piece(item, word) for item in (items if items is not None else [values.value(word)])]
    return found


def _after_launcher(launch: Launch, values: Values) -> list[Piece]:
    """Return what follows the launcher, whose name may be in a variable."""
    pieces = words_of(values, [word for word in launch.command.words if word not in launch.unread])
    for number, piece in enumerate(pieces):
        name = piece.text.rpartition("/")[2]
        if name == launch.launcher or (launch.launcher == "mpiexec" and name.startswith("mpi")):
            rest = pieces[number + 1 :]
            while rest and rest[0].text in LAUNCHER_OPTIONS[launch.launcher].verbs:
                rest = rest[1:]
            return rest
    return words_of(values, launch.program)


def _read_one(rest: list[Piece], launcher: str) -> tuple[LaunchOption, int]:
    """Read the option at the beginning of some words; return it and how many words it takes."""
    first, shown = rest[0], rest[0].text
    words = [Word(piece.text, -1, -1, piece.word.line, (Part("text", piece.text),)) for piece in rest[:3]]
    name, holder, prefix, taken = read_option(launcher, words)
    value = None
    if holder is words[0]:
        value = shown[prefix:] if first.value.plain is not None else None
    elif holder is not None:
        value = rest[words.index(holder)].value.plain
        if launcher == "mpiexec" and name in MPIEXEC.pairs and taken == 3:
            third = rest[2].value.plain if len(rest) > 2 else None
            value = f"{value}={third}" if value is not None and third is not None else None
    return LaunchOption(name, value, first.word), taken
