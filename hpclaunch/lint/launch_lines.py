"""The lines of a script that start programs: which launcher, with which options, and what it starts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hpclaunch.lint.command_options import (
    LOOKING_AROUND,
    MPI_TWO,
    MPI_VALUED,
    SRUN_FLAGS,
    SRUN_SHORT,
    SRUN_VALUED,
)
from hpclaunch.lint.shell_syntax import Command, Word

LAUNCHERS = frozenset(
    {"srun", "mpirun", "mpiexec", "mpiexec.hydra", "aprun", "jsrun", "horovodrun", "torchrun"}
)
_RUNS_PYTHON = re.compile(r"(?:.*/)?(python[\d.]*|accelerate|deepspeed)")
_CONTAINERS = frozenset({"singularity", "apptainer", "podman"})
_WRAPPERS = frozenset({"time", "exec", "nohup", "command", "nice", "stdbuf", "env", "numactl"})
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
    """Words behind it that belong to its list and were torn off by blanks."""


@dataclass
class Launch:
    """One line that starts a program."""

    command: Command
    launcher: str
    """srun, mpiexec, ...; python where the script starts it by itself."""
    options: list[Option] = field(default_factory=list)
    program: list[Word] = field(default_factory=list)

    @property
    def line(self) -> int:
        """Line of the launcher's word."""
        return self.command.line

    def option(self, *names: str) -> Option | None:
        """Return the last option of these names; the last one holds."""
        return next((option for option in reversed(self.options) if option.name in names), None)

    @property
    def trivial(self) -> bool:
        """Tell whether it only looks around (hostname, nvidia-smi): no one needs its status."""
        names = [word.visible.rpartition("/")[2] for word in self.program[:1]]
        return bool(names) and names[0] in LOOKING_AROUND


def read_launch(command: Command) -> Launch | None:
    """Return how a command starts a program, None where it starts none that matters."""
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
    rest = list(words)
    while rest:
        name = rest[0].visible
        if name == "command" and len(rest) > 1 and rest[1].raw in ("-v", "-V"):
            return []  # it asks whether there is such a program
        if name in ("timeout", "/usr/bin/time", "catchsegv") or name in _WRAPPERS:
            rest = rest[1:]
            while rest and (rest[0].raw.startswith("-") or "=" in rest[0].raw or _is_time(rest[0], name)):
                rest = rest[1:]
        else:
            break
    return rest


def _is_time(word: Word, before: str) -> bool:
    return before == "timeout" and re.fullmatch(r"[\d.]+[smhd]?", word.visible) is not None


def _read_options(launch: Launch, words: list[Word]) -> None:
    """Split a launcher's words into options and program."""
    srun = launch.launcher == "srun"
    at = 0
    while at < len(words):
        word = words[at]
        shown = word.visible
        if not shown.startswith("-") or shown == "-":
            break
        if shown == "--":
            at += 1
            break
        name, value, prefix, used = _srun_option(words, at) if srun else _mpi_option(words, at)
        at += used
        broken = _torn_off(words, at, value, prefix) if name in _LIST_OPTIONS else ()
        at += len(broken)
        launch.options.append(Option(name, value, prefix, word.line, broken))
    launch.program = words[at:]


_Read = tuple[str, "Word | None", int, int]


def _srun_option(words: list[Word], at: int) -> _Read:
    """Return (name, value, prefix, words used) of the option at an index."""
    word, shown = words[at], words[at].visible
    following = words[at + 1] if at + 1 < len(words) else None
    if shown.startswith("--"):
        name, equals, _ = shown[2:].partition("=")
        if equals:
            return name, word, len(name) + 3, 1
        if name in SRUN_VALUED and name != "multi-prog" and following is not None:
            return name, following, 0, 2
        return name, None, 0, 1
    letter = shown[1]
    while letter in SRUN_FLAGS and len(shown) > 2:
        shown = shown[0] + shown[2:]
        letter = shown[1]
    if letter in SRUN_FLAGS:
        return letter, None, 0, 1
    name = SRUN_SHORT.get(letter, letter)
    if len(shown) > 2 or len(word.parts) > 1:
        skip = len(word.visible) - len(shown) + 2
        return name, word, skip + (shown[2:3] == "="), 1
    return (name, following, 0, 2) if following is not None else (name, None, 0, 1)


def _mpi_option(words: list[Word], at: int) -> _Read:
    word, shown = words[at], words[at].visible
    name, equals, _ = shown.lstrip("-").partition("=")
    if equals:
        return name, word, shown.index("=") + 1, 1
    if name in MPI_TWO:
        return name, words[at + 1] if at + 1 < len(words) else None, 0, 3
    if name in MPI_VALUED and at + 1 < len(words):
        return name, words[at + 1], 0, 2
    return name, None, 0, 1


def _torn_off(words: list[Word], at: int, value: Word | None, prefix: int) -> tuple[Word, ...]:
    """Return the words that go on with a bind list whose value ends in a comma or colon."""
    if value is None:
        return ()
    torn: list[Word] = []
    last = value.visible[prefix:]
    while at + len(torn) < len(words):
        following = words[at + len(torn)].visible
        open_end = last.endswith((",", ":")) or following.startswith(",")
        if not (open_end and _LIST_PIECE.fullmatch(following)):
            break
        torn.append(words[at + len(torn)])
        last = following
    return tuple(torn)


def python_files(launch: Launch) -> list[Word]:
    """Return the words of a launch that name Python files."""
    return [word for word in launch.program if re.search(r"\.py$", word.visible)]
