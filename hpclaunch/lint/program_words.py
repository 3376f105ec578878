"""The words that a launch starts, with the values of the script's variables as far as they are known.

``srun bash -c "$LAUNCHER $CMD"`` starts the words in LAUNCHER: rules about torchrun read them here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

from hpclaunch.framework_table import WorkerLauncher
from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.plan.script_commands import program_at
from hpclaunch.plan.worker_launchers import ACCELERATE, DEEPSPEED, TORCHRUN, split_options
from hpclaunch.shell.shell_syntax import Command, Word

WORKER_LAUNCHERS = (TORCHRUN, ACCELERATE, DEEPSPEED)


def partly_expanded(script: Script, word: Word) -> str:
    """Return a word with the known variables replaced; what is not known stays as ``$NAME`` or ``?``."""
    return " ".join(script.variables.fields([word]))


@lru_cache(maxsize=64)  # several rules need them for the same launch
def programs(script: Script, launch: Launch) -> tuple[tuple[str, ...], ...]:
    """Return the words of each command that a launch starts: of ``bash -c`` those of its text."""
    inner = [one for one in launch.command.inner if one.words]
    if launch.launcher == "torchrun":
        return (("torchrun", *_option_words(script, launch), *script.variables.fields(launch.program)),)
    if inner:
        return tuple(tuple(script.variables.fields(one.words)) for one in inner)
    return (tuple(_split_texts(script.variables.fields(launch.program))),)


def _split_texts(words: list[str]) -> Iterator[str]:
    """Yield words, those of the text of ``bash -c "$TEXT"`` one by one."""
    for before, word in pairwise(["", *words]):
        yield from word.split() if re.fullmatch(r"-[el]*c", before) else [word]


def program_words(script: Script, launch: Launch) -> tuple[str, ...]:
    """Return the words of all commands that a launch starts."""
    return tuple(chain.from_iterable(programs(script, launch)))


@lru_cache(maxsize=1)  # several rules need them for the same script
def runs(script: Script) -> list[tuple[Command, list[str]]]:
    """Return each command with the words of the program that it runs, without launcher and wrappers."""
    found: list[tuple[Command, list[str]]] = []
    launches = {launch.command.start: launch for launch in reversed(script.launches)}
    for command in script.commands if script.is_posix else ():
        launch = launches.get(command.start)
        words = programs(script, launch)[0] if launch else tuple(script.variables.fields(command.words))
        found.append((command, list(words[program_at(words) :])))
    return [one for one in found if one[1]]


def _option_words(script: Script, launch: Launch) -> list[str]:
    """Return the options of a torchrun that was read as a launcher, as words."""
    values = [partly_expanded(script, one.value) if one.value else None for one in launch.options]
    names = [f"-{'-' * (len(one.name) > 1)}{one.name}" for one in launch.options]
    rows = zip(names, launch.options, values, strict=True)
    return [name if text is None else f"{name}={text[one.prefix :]}" for name, one, text in rows]


@dataclass(frozen=True)
class WorkerRun:
    """One start of torchrun, accelerate or deepspeed, or of the module behind it."""

    launch: Launch
    row: WorkerLauncher
    options: dict[str, str]
    """Long name with dashes (``nproc-per-node``) -> value; empty for a flag."""

    def given(self, *names: str) -> str | None:
        """Return the value of the first of these options of its row that is given; None: none is."""
        keys = (name.lstrip("-").replace("_", "-") for name in names)
        return next((self.options[key] for key in keys if key in self.options), None)

    @property
    def is_open(self) -> bool:
        """Whether a part of the options is in variables, or in the output of commands, of unknown value."""
        return any(re.search(r"[$?]", name) for name in self.options)


def torch_run(script: Script, launch: Launch) -> WorkerRun | None:
    """Return the torchrun that a launch starts, directly or in ``bash -c``; None: it starts none."""
    return worker_run(script, launch, (TORCHRUN,))


def worker_run(
    script: Script, launch: Launch, rows: tuple[WorkerLauncher, ...] = WORKER_LAUNCHERS
) -> WorkerRun | None:
    """Return the launcher of workers that a launch starts, directly or in ``bash -c``; None: none."""
    for words in programs(script, launch):
        program = next((at for at, word in enumerate(words) if word.endswith(".py")), len(words))
        for at, (before, word) in enumerate(pairwise(["", *words[:program]])):
            name = word.rpartition("/")[2]
            here = {word, name, f"{name} {' '.join(words[at + 1 : at + 2])}"}
            if before not in ("install", "show") and not before.startswith("--"):
                for row, begin in _BEGINNINGS:
                    if begin in here and row in rows:
                        return WorkerRun(launch, row, _options_of(row, words[at + len(begin.split()) :]))
    return None


_BEGINNINGS = [(row, each) for row in WORKER_LAUNCHERS for each in row.commands + row.modules]


def _options_of(row: WorkerLauncher, words: tuple[str, ...]) -> dict[str, str]:
    """Read a launcher's options up to the program that it starts, past variables of no known value."""
    found, rest = split_options(row, words)
    while rest and rest[0].startswith(("$", "?")):
        more, after = split_options(row, rest[1:])
        found, rest = {**found, rest[0]: "", **more}, after
    return {name.lstrip("-").replace("_", "-"): value for name, value in found.items()}


def starts_here(launch: Launch) -> bool:
    """Tell whether a launch starts on the script's own node only: Python or torchrun without a launcher."""
    return launch.launcher in ("python", "torchrun")


def line_of(script: Script, launch: Launch, text: str) -> int:
    """Return the line of a text in a launch, else the only line that has it, else the launch's."""
    at = script.text.find(text, max(launch.command.start, 0), max(launch.command.end, 0)) if text else -1
    if at < 0 and text and script.text.count(text) == 1:
        at = script.text.find(text)
    return script.line_at(at) if at >= 0 else launch.line
