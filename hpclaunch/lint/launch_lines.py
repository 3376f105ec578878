"""The lines of a script that start programs: the launcher, its options, and the program."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from hpclaunch.lint.command_options import (
    INFORMATION_COMMANDS,
    MPI_TWO,
    MPI_VALUED,
    SRUN_FLAGS,
    SRUN_SHORT,
    SRUN_VALUED,
)
from hpclaunch.lint.shell_syntax import Command, Word
from hpclaunch.scheduler.directive_reader import name_set

LAUNCHERS = frozenset(
    {"srun", "mpirun", "mpiexec", "mpiexec.hydra", "aprun", "jsrun", "horovodrun", "torchrun"}
)
_RUNS_PYTHON = re.compile(r"(?:.*/)?(python[\d.]*|accelerate|deepspeed)")
_CONTAINERS = frozenset({"singularity", "apptainer", "podman"})
_WRAPPERS = name_set("time /usr/bin/time exec nohup command nice stdbuf env numactl timeout catchsegv")
_LIST_OPTIONS = frozenset({"cpu-bind", "cpu_bind", "gpu-bind", "mem-bind", "mem_bind"})
_LIST_PIECE = re.compile(r"[0-9A-Fa-fxX,:*-]*\d[0-9A-Fa-fxX,:*-]*|,")


@dataclass(frozen=True)
class Option:
    """One option of a launcher."""

    name: str
    """Long name, without dashes."""
    value: Word | None
    """The word that holds the value; for ``--name=value`` the whole word."""
    prefix: int
    """Characters of that word's text before the value."""
    line: int
    broken: tuple[Word, ...] = ()
    """Words after it that belong to its list and are separated by spaces."""


@dataclass
class Launch:
    """One line that starts a program."""

    command: Command
    launcher: str
    """srun, mpiexec, ...; python where the script starts it without a launcher."""
    options: list[Option] = field(default_factory=list)
    program: list[Word] = field(default_factory=list)

    @property
    def line(self) -> int:
        """Line of the launcher's word."""
        return self.command.line

    def option(self, *names: str) -> Option | None:
        """Return the last option of these names; the last one holds."""
        return next((option for option in reversed(self.options) if option.name in names), None)

    def srun_option(self, *names: str) -> Option | None:
        """Return the last option of these names where the launcher is srun."""
        return self.option(*names) if self.launcher == "srun" else None

    @property
    def trivial(self) -> bool:
        """Tell whether it only prints information (hostname, nvidia-smi), so its status does not matter."""
        names = [word.visible.rpartition("/")[2] for word in self.program[:1]]
        return bool(names) and names[0] in INFORMATION_COMMANDS


def read_launch(command: Command) -> Launch | None:
    """Return how a command starts a program; None: it starts none that lint checks."""
    words = _unwrapped(command.words)
    if not words:
        return None
    name = words[0].visible.rpartition("/")[2]
    if name in LAUNCHERS:
        launch = Launch(command, "mpiexec" if name.startswith("mpi") else name)
        _read_options(launch, words[1:])
        return launch
    if _RUNS_PYTHON.fullmatch(words[0].visible) or name in _CONTAINERS:
        return Launch(command, "python", [], words)
    return None


def _unwrapped(words: list[Word]) -> list[Word]:
    """Drop what stands before the launcher: time, exec, env NAME=value, timeout 10m."""
    at = 0
    while at < len(words) and words[at].visible in _WRAPPERS:
        name = words[at].visible
        at += 1
        if name == "command" and at < len(words) and words[at].raw in ("-v", "-V"):
            return []  # it only checks that the program exists
        while at < len(words) and _belongs_to_wrapper(words[at], name):
            at += 1
    return words[at:]


def _belongs_to_wrapper(word: Word, wrapper: str) -> bool:
    """Tell whether a word is an option of a wrapper, NAME=value of env, or the time of timeout."""
    time = wrapper == "timeout" and re.fullmatch(r"[\d.]+[smhd]?", word.visible)
    return word.raw.startswith("-") or "=" in word.raw or bool(time)


def _read_options(launch: Launch, words: list[Word]) -> None:
    """Split a launcher's words into options and program."""
    read_option = _srun_option if launch.launcher == "srun" else _mpi_option
    at = 0
    while at < len(words) and words[at].visible.startswith("-") and words[at].visible not in ("-", "--"):
        line = words[at].line
        name, value, prefix, count = read_option(words[at : at + 2])
        at += count
        broken = _torn_off(words, at, value, prefix) if name in _LIST_OPTIONS else ()
        at += len(broken)
        launch.options.append(Option(name, value, prefix, line, broken))
    behind_dashes = at < len(words) and words[at].visible == "--"
    launch.program = words[at + behind_dashes :]


class _OptionWords(NamedTuple):
    """An option, read from a command's words."""

    name: str
    value: Word | None
    """The word that holds the value."""
    prefix: int
    """Characters of that word before the value."""
    words: int
    """Words that the option takes."""


def _srun_option(words: list[Word]) -> _OptionWords:
    """Read the option of srun in the first of these words; its value may be the second."""
    if words[0].visible.startswith("--"):
        return _long_srun_option(words)
    shown = words[0].visible
    while shown[1] in SRUN_FLAGS and len(shown) > 2:
        shown = shown[0] + shown[2:]
    if shown[1] in SRUN_FLAGS:
        return _OptionWords(shown[1], None, 0, 1)
    name = SRUN_SHORT.get(shown[1], shown[1])
    if len(shown) > 2 or len(words[0].parts) > 1:
        flags = len(words[0].visible) - len(shown)
        return _OptionWords(name, words[0], flags + 2 + (shown[2:3] == "="), 1)
    return _with_next_word(name, words)


def _long_srun_option(words: list[Word]) -> _OptionWords:
    name, equals, _ = words[0].visible[2:].partition("=")
    if equals:
        return _OptionWords(name, words[0], len(name) + 3, 1)
    if name in SRUN_VALUED and name != "multi-prog":
        return _with_next_word(name, words)
    return _OptionWords(name, None, 0, 1)


def _mpi_option(words: list[Word]) -> _OptionWords:
    """Read the option of mpiexec in the first of these words; its value may be the second."""
    shown = words[0].visible
    name, equals, _ = shown.lstrip("-").partition("=")
    if equals:
        return _OptionWords(name, words[0], shown.index("=") + 1, 1)
    if name in MPI_TWO:  # hydra: --env NAME VALUE; PALS: --env NAME=VALUE
        joined = len(words) > 1 and "=" in words[1].visible
        return _with_next_word(name, words)._replace(words=2 if joined else 3)
    return _with_next_word(name, words) if name in MPI_VALUED else _OptionWords(name, None, 0, 1)


def _with_next_word(name: str, words: list[Word]) -> _OptionWords:
    """Return an option whose value is the next word, where there is one."""
    return _OptionWords(name, words[1], 0, 2) if len(words) > 1 else _OptionWords(name, None, 0, 1)


def _torn_off(words: list[Word], at: int, value: Word | None, prefix: int) -> tuple[Word, ...]:
    """Return the words from ``at`` on that continue a bind list: it ends in a comma or colon."""
    if value is None:
        return ()
    end = at
    last = value.visible[prefix:]
    while end < len(words):
        following = words[end].visible
        open_end = last.endswith((",", ":")) or following.startswith(",")
        if not (open_end and _LIST_PIECE.fullmatch(following)):
            break
        end += 1
        last = following
    return tuple(words[at:end])


def python_files(launch: Launch) -> list[Word]:
    """Return the words of a launch that name Python files."""
    return [word for word in launch.program if re.search(r"\.py$", word.visible)]
