"""The lines of a script that start programs: the launcher, its options, and the program."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hpclaunch.lint.known_variables import INFORMATION_COMMANDS, TABLE
from hpclaunch.lint.shell_variables import Variables
from hpclaunch.plan.script_commands import program_at
from hpclaunch.scheduler.directive_reader import name_set
from hpclaunch.shell import launcher_options
from hpclaunch.shell.shell_syntax import Command, Part, Word
from hpclaunch.software.containers import RUNTIMES

LAUNCHERS = name_set(TABLE["launchers"])
_SRUN = launcher_options.LAUNCHER_OPTIONS["srun"]
SRUN_OPTIONS = sorted({*_SRUN.valued, *_SRUN.sizes, *_SRUN.about, *name_set(TABLE["srun_flags"])})
_CONTAINERS = frozenset({"podman", *RUNTIMES})
STOPS = re.compile(TABLE["stops"])
"""Commands that stop or show what runs, and start nothing."""


@dataclass(frozen=True)
class Option:
    """One option of a launcher."""

    name: str
    value: Word | None
    prefix: int
    line: int
    broken: tuple[Word, ...] = ()


@dataclass(eq=False)
class Launch:
    """One line that starts a program."""

    command: Command
    launcher: str
    options: list[Option] = field(default_factory=list)
    program: list[Word] = field(default_factory=list)
    unread: list[Word] = field(default_factory=list)
    name: str = ""

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

    def texts_for_ranks(self) -> Iterator[tuple[str, int]]:
        """Yield what the shell of each rank reads, with its line, without what the batch shell replaces."""
        for word in self.program:
            yield _read_later(word.raw) if word.raw[:1] == '"' else word.visible, word.line
        for one in self.command.redirects if self.command.inner else ():
            text = one.body or ""
            yield text if one.is_quoted else _read_later(text), one.line + 1

    @property
    def by_launcher(self) -> bool:
        """Tell whether a launcher starts it; False: the script itself starts Python or a container."""
        return self.launcher != "python"

    @property
    def trivial(self) -> bool:
        """Tell whether it only prints information (hostname, nvidia-smi), so its status does not matter."""
        inner = [one for one in self.command.inner if one.words]
        if inner:
            return all(_is_trivial([word.visible for word in one.words[:3]]) for one in inner)
        words = [word.visible for word in self.program]
        return _is_trivial(words[program_at(tuple(words)) :][:3])


def _read_later(text: str) -> str:
    """Return a text in double quotes without the signs that the shell around it reads."""
    return re.sub(r"\\([$`])|[$`]", lambda sign: sign[1] or "?", text)


def _is_trivial(words: list[str]) -> bool:
    """Tell whether a command only prints information, or stops what runs."""
    name = words[0].rpartition("/")[2] if words else ""
    by_python = re.fullmatch(r"python[\d.]*", name) and words[1:2] in (["-c"], ["-V"], ["--version"])
    shows = re.fullmatch(TABLE["shows_binding"], name) or STOPS.match(" ".join([name, *words[1:]]))
    return bool(by_python or shows) or name in INFORMATION_COMMANDS


def read_launch(command: Command, variables: Variables | None = None) -> Launch | None:
    """Return how a command starts a program; None: none that lint checks. ``variables`` may hold options."""
    words = _resolved(command.words[_program_at(command.words) :], variables)
    words = words[_program_at(words) :]  # of LAUNCHER="uv run accelerate launch"
    if not words:
        return None
    name = words[0].visible.rpartition("/")[2]
    if name == "flux":
        words = words[1 + (words[1:2] != [] and words[1].visible == "mini") :]  # flux mini run, before 0.48
        name = "flux" if [word.visible for word in words[:1]] == ["run"] else ""
    if name in LAUNCHERS:
        launch = Launch(command, "mpiexec" if name.startswith("mpi") else name, name=name)
        _read_options(launch, _with_options_of_variables(words[1:], variables), variables)
        return launch
    if re.fullmatch(TABLE["runs_python"], words[0].visible) or name in _CONTAINERS:
        return Launch(command, "python", [], words, name=name)
    return None


def _program_at(words: list[Word]) -> int:
    """Return the position of the program's first word, behind time, exec, env NAME=value, timeout 10m."""
    texts = tuple(word.visible for word in words)
    option = int(texts[:1] == ("-p",))  # that of time
    return option + program_at(texts[option:])


def _resolved(words: list[Word], variables: Variables | None) -> list[Word]:
    """Return the words with a first word ``$LAUNCHER`` replaced by the words of its value."""
    text = _split(words[0], variables) if words and variables else []
    return [*(_text_word(piece, words[0].line) for piece in text), *words[1:]] if text else words


def _text_word(text: str, line: int) -> Word:
    """Return a word that is not in the script's text at this place; it has no offsets."""
    return Word(text, -1, -1, line, (Part("text", text),))


def _split(word: Word, variables: Variables) -> list[str]:
    """Return the words that an unquoted ``$NAME`` or an array gives; none where they are not known."""
    plain = len(word.parts) == 1 and not word.parts[0].operator and word.raw.startswith("$")
    array = word.parts[-1].operator in ("[@]", "[*]") if word.parts else False
    if not (plain or array) or word.parts[-1].kind != "variable":
        return []
    found = variables.fields([word])
    return [] if any(piece.startswith("$") for piece in found) else found


def _with_options_of_variables(words: list[Word], variables: Variables | None) -> list[Word]:
    """Return the words with ``$OPTIONS`` replaced by the options in its value, as the shell splits them."""
    found: list[Word] = []
    for at, word in enumerate(words):
        pieces = _split(word, variables) if variables else []
        if not pieces or not pieces[0].startswith("-"):
            found.append(word)
            if not word.raw.startswith(("-", "$", '"$')) and not (at and words[at - 1].raw.startswith("-")):
                return [*found, *words[at + 1 :]]  # the program: what follows are its own words
            continue
        found += [_text_word(piece, _line_of_piece(piece, word, variables)) for piece in pieces]
    return found


def _line_of_piece(piece: str, word: Word, variables: Variables | None) -> int:
    """Return the line on which an option in a variable has its value; that of a list may be another one."""
    via = variables.expand(word).via if variables else ()
    texts = [(one, (one.value.text if one.value else None) or "") for one in via[1:]]
    made = [one for one, text in texts if len(text) >= TABLE["shortest_list"] and text in piece] or via[:1]
    return made[0].line if made else word.line


def _read_options(launch: Launch, words: list[Word], variables: Variables | None) -> None:
    """Split a launcher's words into options and program."""
    at = _end_of_options(launch, words, 0)
    while at < len(words) and variables and _holds_options(launch, words[at:], variables):
        launch.unread.append(words[at])
        at = _end_of_options(launch, words, at + 1)
    behind_dashes = at < len(words) and words[at].visible == "--"
    launch.program = words[at + behind_dashes :]


def _end_of_options(launch: Launch, words: list[Word], at: int) -> int:
    """Read options from a position on; return where they end."""
    while at < len(words) and words[at].visible.startswith("-") and words[at].visible not in ("-", "--"):
        line = words[at].line
        name, value, prefix, count = launcher_options.read_option(launch.launcher, words[at : at + 3])
        at += count
        broken = _torn_off(words, at, value, prefix) if name in launcher_options.LIST_OPTIONS else ()
        at += len(broken)
        launch.options.append(Option(name, value, prefix, line, broken))
    return at


def _holds_options(launch: Launch, words: list[Word], variables: Variables) -> bool:
    """Tell whether a variable that is not known holds options: others follow, and a program."""
    if not re.fullmatch(r"\$(\w+|\{\w+\})", words[0].raw) or {*_split(words[0], variables)} - {"?"}:
        return False
    more = Launch(launch.command, launch.launcher)
    known = launcher_options.LAUNCHER_OPTIONS.get(launch.launcher, launcher_options.MPIEXEC)
    end = _end_of_options(more, words, 1)
    names = {one.name for one in more.options}
    new = names & known.sizes.keys() - {one.name for one in launch.options}
    says = new or re.search("(?i)opt|arg|flag", words[0].raw)
    every = {*known.valued, *known.pairs, *known.sizes, *known.about}
    return bool(names and says and end < len(words)) and names <= every


def _torn_off(words: list[Word], at: int, value: Word | None, prefix: int) -> tuple[Word, ...]:
    """Return the words from ``at`` on that continue a bind list: it ends in a comma or colon."""
    if value is None:
        return ()
    end = at
    last = value.visible[prefix:]
    while end < len(words) and launcher_options.continues_list(last, words[end].visible):
        last = words[end].visible
        end += 1
    return tuple(words[at:end])


def python_files(launch: Launch) -> list[Word]:
    """Return the words of a launch that name Python files."""
    inner = (word for command in launch.command.inner for word in command.words)
    return [word for word in (*launch.program, *inner) if re.search(r"\.py$", word.visible)]
