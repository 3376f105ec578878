"""The lines of a script that start programs: the launcher, its options, and the program."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hpclaunch.lint.command_options import (
    APRUN_LONG,
    APRUN_SHORT,
    INFORMATION_COMMANDS,
    JSRUN_SHORT,
    MPI_TWO,
    MPI_VALUED,
    SRUN_FLAGS,
    SRUN_SHORT,
    SRUN_VALUED,
)
from hpclaunch.lint.shell_variables import Variables
from hpclaunch.scheduler.directive_reader import name_set
from hpclaunch.shell.shell_syntax import Assignment, Command, Part, Word
from hpclaunch.software.container_runtimes import RUNTIMES

LAUNCHERS = name_set(
    "srun mpirun mpiexec mpiexec.hydra mpiexec.slurm mpiexec_mpt ibrun aprun jsrun horovodrun torchrun flux"
)
_RUNS_PYTHON = re.compile(r"(?:.*/)?(python[\d.]*|accelerate|deepspeed)")
_CONTAINERS = frozenset({"podman", *RUNTIMES})
_WRAPPERS = name_set(
    "hpclaunch_supervise time /usr/bin/time exec nohup command nice stdbuf env numactl timeout catchsegv"
)
_SHOWS_BINDING = re.compile(r"(?i)(hello|echo)[-_]?\w*|\w*(affinity|xthi)\w*|[a-z]+_check")
_SHORTEST_LIST = 4
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
    def by_launcher(self) -> bool:
        """Tell whether a launcher starts it; False: the script itself starts Python or a container."""
        return self.launcher != "python"

    @property
    def trivial(self) -> bool:
        """Tell whether it only prints information (hostname, nvidia-smi), so its status does not matter."""
        words = [word.visible for word in self.program[:3]]
        if words[:1] in (["bash"], ["sh"]) and len(words) == 3 and re.match(r"-l?c$", words[1]):
            words = words[2].split()
        name = words[0].rpartition("/")[2] if words else ""
        by_python = _is_python(name) and words[1:2] in (["-c"], ["-V"], ["--version"])
        return by_python or name in INFORMATION_COMMANDS or bool(_SHOWS_BINDING.fullmatch(name))


def _is_python(name: str) -> bool:
    return re.fullmatch(r"python[\d.]*", name) is not None


def read_launch(command: Command, variables: Variables | None = None) -> Launch | None:
    """Return how a command starts a program; None: it starts none that lint checks.

    ``variables``: those of the script, for options that are written in one of them.
    """
    words = _resolved(_unwrapped(command.words), variables)
    if not words:
        return None
    name = words[0].visible.rpartition("/")[2]
    if name == "flux":
        words = words[1:]
        name = "flux" if [word.visible for word in words[:1]] == ["run"] else ""
    if name in LAUNCHERS:
        launch = Launch(command, "mpiexec" if name.startswith("mpi") else name)
        _read_options(launch, _with_options_of_variables(words[1:], variables))
        return launch
    if _RUNS_PYTHON.fullmatch(words[0].visible) or name in _CONTAINERS:
        return Launch(command, "python", [], words)
    return None


def _resolved(words: list[Word], variables: Variables | None) -> list[Word]:
    """Return the words with a first word ``$LAUNCHER`` replaced by the words of its value."""
    text = _value_of_variable(words[0], variables) if words and variables else None
    if not text or not text.strip():
        return words
    return [*(_text_word(piece, words[0].line) for piece in text.split()), *words[1:]]


def _text_word(text: str, line: int) -> Word:
    """Return a word that is not in the script's text at this place; it has no offsets."""
    return Word(text, -1, -1, line, (Part("text", text),))


def _value_of_variable(word: Word, variables: Variables) -> str | None:
    """Return the known value of a word that is an unquoted ``$NAME`` and nothing else."""
    plain = len(word.parts) == 1 and word.parts[0].kind == "variable" and not word.parts[0].operator
    return variables.expand(word).text if plain and word.raw.startswith("$") else None


def _with_options_of_variables(words: list[Word], variables: Variables | None) -> list[Word]:
    """Return the words with ``$OPTIONS`` replaced by the options in its value, as the shell splits them."""
    found: list[Word] = []
    for at, word in enumerate(words):
        text = _options_in(word, variables) if variables else None
        if text is None:
            found.append(word)
            if not word.raw.startswith(("-", "$")) and not (at and words[at - 1].raw.startswith("-")):
                return [*found, *words[at + 1 :]]  # the program: what follows are its own words
            continue
        found += [_text_word(piece, _line_of_piece(piece, word, variables)) for piece in text.split()]
    return found


def _options_in(word: Word, variables: Variables) -> str | None:
    """Return the value of an unquoted ``$NAME`` that begins with a dash; None for any other word."""
    text = _value_of_variable(word, variables)
    return text if text and text.lstrip().startswith("-") else None


def _line_of_piece(piece: str, word: Word, variables: Variables | None) -> int:
    """Return the line on which an option in a variable has its value; that of a list may be another one."""
    via = variables.expand(word).via if variables else ()
    made = [one for one in via[1:] if _is_list_in(one, piece)] or via[:1]
    return made[0].line if made else word.line


def _is_list_in(made: Assignment, piece: str) -> bool:
    """Tell whether a piece of the options holds the text that a variable is set to."""
    text = (made.value.text if made.value else None) or ""
    return len(text) >= _SHORTEST_LIST and text in piece


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
    read_option = _READERS.get(launch.launcher, _mpi_option)
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
    joined = re.match(r"-(np|ppn|n|N|c|d)(?=\d|$)", shown)
    if joined and (len(shown) > joined.end() or len(words[0].parts) > 1):  # -n4, -n$RANKS
        return _OptionWords(joined[1], words[0], joined.end(), 1)
    if name in MPI_TWO:  # hydra: --env NAME VALUE; PALS: --env NAME=VALUE
        in_one_word = len(words) > 1 and "=" in words[1].visible
        return _with_next_word(name, words)._replace(words=2 if in_one_word else 3)
    return _with_next_word(name, words) if name in MPI_VALUED else _OptionWords(name, None, 0, 1)


def _short_option(words: list[Word], names: Mapping[str, str], long: frozenset[str]) -> _OptionWords:
    """Read ``-n4``, ``-n 4``, ``--nrs=4`` or ``--nrs 4`` of jsrun and aprun; every one has a value."""
    shown = words[0].visible
    name, equals, _ = shown.lstrip("-").partition("=")
    if shown.startswith("--") or name in long:
        if equals:
            return _OptionWords(name, words[0], shown.index("=") + 1, 1)
        return _with_next_word(name, words)
    if shown[1] not in names:
        return _OptionWords(name, None, 0, 1)
    if len(shown) > 2 or len(words[0].parts) > 1:
        return _OptionWords(names[shown[1]], words[0], 2 + (shown[2:3] == "="), 1)
    return _with_next_word(names[shown[1]], words)


def _jsrun_option(words: list[Word]) -> _OptionWords:
    return _short_option(words, JSRUN_SHORT, frozenset())


def _aprun_option(words: list[Word]) -> _OptionWords:
    return _short_option(words, APRUN_SHORT, APRUN_LONG)


_READERS: dict[str, Callable[[list[Word]], _OptionWords]] = {
    "srun": _srun_option,
    "jsrun": _jsrun_option,
    "aprun": _aprun_option,
}


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
