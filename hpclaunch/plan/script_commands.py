"""The commands of a shell script that a job starts, ``bash run.sh`` or ``bash -c TEXT``. Pure.

Only what is certain: a word with a variable stays as it is written, and commands inside ``$(...)`` do not
count. Those of functions, loops and conditions do, since one of them may run.
"""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from hpclaunch.plan.wrappers import unwrap

ReadText = Callable[[str], str | None]
"""Text of a file, by its path from the job's folder; None: it cannot be read."""

_SHELLS = ("bash", "sh", "dash", "ksh", "zsh")
_SUFFIXES = (".sh", ".bash")
_SHELL_LINE = re.compile(r"#!.*\b(?:ba|da|k|z)?sh\b")
_SOURCES = (".", "source")
_WITH_VALUE = ("--rcfile", "--init-file")
_OPTION = re.compile(r"[-+](?P<letters>[A-Za-z]+)|--.*")
_DIRECTIVE = re.compile(r"^#(SBATCH|PBS|BSUB|FLUX:)[ \t]", re.MULTILINE)
_MAX_FILES = 10


class ShellTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The script that a command starts; one of these is set."""

    file: str | None = None
    text: str | None = None
    """The text after ``-c``."""


class ScriptCommand(NamedTuple):
    """A command of a script."""

    where: str
    """Such as ``run.sh, line 12``."""
    words: tuple[str, ...]


def commands_of_script(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """Return line and words of each command of a script; a word with a variable is as it is written."""
    from hpclaunch.shell.shell_reader import read_shell  # which few jobs need

    return [
        (command.line, tuple(word.raw if word.text is None else word.text for word in command.words))
        for command in read_shell(text).commands
        if command.words and not command.depth
    ]


def shell_target(argv: tuple[str, ...]) -> ShellTarget | None:
    """Return the script that a command starts, by its words alone; None: it starts none.

    A path without the suffix of a shell may be one: its first line tells.
    """
    name, *words = unwrap(argv).argv or ("",)
    if name in _SOURCES:
        return ShellTarget(file=words[0]) if words else None
    if PurePosixPath(name).name in _SHELLS:
        return _of_shell(words)
    named = name.endswith(_SUFFIXES) or ("/" in name and not PurePosixPath(name).suffix)
    return ShellTarget(file=name) if named else None


def _of_shell(words: list[str]) -> ShellTarget | None:
    """Return the script that a shell with these arguments reads (man bash, OPTIONS); None: its stdin."""
    rest = iter(words)
    for word in rest:
        option = _OPTION.fullmatch(word)
        if option is None:
            return ShellTarget(file=word)
        letters = option["letters"] or ""
        if re.search("[cs]", letters):
            return next((ShellTarget(text=text) for text in rest), None) if "c" in letters else None
        if word in _WITH_VALUE or letters.endswith(("o", "O")):
            next(rest, None)
    return None


def script_commands(argv: tuple[str, ...], read: ReadText) -> tuple[ScriptCommand, ...]:
    """Return the commands of the script that a command starts, and of the scripts that this one starts."""
    found, seen, waiting = list[ScriptCommand](), set[str](), [argv]
    while waiting and len(seen) < _MAX_FILES:
        name, text = _script(waiting.pop(0), read)
        if text is None or name in seen:
            continue
        seen.add(name)
        here = [ScriptCommand(f"{name}, line {line}", words) for line, words in commands_of_script(text)]
        found += here
        waiting += [command.words for command in here]
    return tuple(found)


def directives_in(argv: tuple[str, ...], read: ReadText) -> str | None:
    """Return how the directives of a batch script begin that a job starts as a program: ``#SBATCH``."""
    found = _DIRECTIVE.search(_script(argv, read)[1] or "")
    return f"#{found[1]}" if found else None


def _script(argv: tuple[str, ...], read: ReadText) -> tuple[str, str | None]:
    """Return the name of the script that a command starts, and its text; None: there is none to be read."""
    target = None if unwrap(argv).moved else shell_target(argv)
    if target is None or target.file is None:
        return "the text after -c", target.text if target else None
    text = None if re.search(r"[$`*?~]", target.file) else read(target.file)
    if text is None or not (target.file.endswith(_SUFFIXES) or named_shell(argv) or _SHELL_LINE.match(text)):
        return target.file, None
    return target.file, text


def named_shell(argv: tuple[str, ...]) -> bool:
    """Tell whether a command names the shell that reads its script: ``bash run``, ``source run``."""
    words = unwrap(argv).argv
    return bool(words) and PurePosixPath(words[0]).name in (*_SHELLS, *_SOURCES)
