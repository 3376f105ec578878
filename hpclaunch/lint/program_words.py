"""The words that a launch starts, with the values of the script's variables as far as they are known.

``srun bash -c "$LAUNCHER $CMD"`` starts the words in LAUNCHER: rules about torchrun read them here.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.lint.shell_variables import MAX_CHARS
from hpclaunch.plan.worker_launchers import TORCHRUN, split_options
from hpclaunch.shell.shell_reader import read_shell
from hpclaunch.shell.shell_syntax import Assignment, Command, Word, assignment_in, is_assignment

_DEPTH = 6
_SHOWN = {"text": "", "variable": "$"}
"""Kinds of parts of a word whose text is shown -> what stands before it."""
_LONG = 2000
"""Characters of a value that may stand in many places of a text."""
_NAME = re.compile(r"\\?\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_SETS = re.compile(r"[A-Za-z_]\w*=")
_TORCH_MODULE = re.compile(r"torch\.distributed\.(run|launch)")


def partly_expanded(script: Script, word: Word, offset: int, depth: int = 0) -> str:
    """Return a word with the known variables replaced; what is not known stays as ``$NAME`` or ``?``."""
    found = ""
    for part in word.parts:
        if part.kind == "text":
            found += _NAME.sub(lambda match: _value(script, match[1] or match[2], offset, depth), part.text)
        elif part.kind == "variable" and not part.operator:
            found += _value(script, part.text, offset, depth)
        else:
            found += "$" + part.text if part.kind == "variable" else "?"
        if len(found) > MAX_CHARS:
            return ""
    return found


def _value(script: Script, name: str, offset: int, depth: int) -> str:
    one = script.variables.last_assignment(name, offset)
    if one is None or one.value is None or one.append or depth >= _DEPTH:
        return f"${name}"
    return partly_expanded(script, one.value, one.offset, depth + 1)


@lru_cache(maxsize=64)  # several rules need them for the same launch
def _words_of(script: Script, at: int) -> tuple[str, ...]:
    launch = script.launches[at]
    offset = launch.command.start
    words: list[str] = []
    for word in launch.program:
        text = partly_expanded(script, word, offset)
        is_text = word.raw.startswith(("'", '"', "$'")) and words[-1:] in (["-c"], ["-lc"], ["-cl"])
        if is_text:
            text = _with_own_values(text)
        words += text.split() if is_text or word.raw.startswith("$") or word.start < 0 else [text]
    return tuple(words)


def _with_own_values(text: str) -> str:
    """Return the text of ``bash -c`` with the variables that it sets itself replaced by their values."""
    if not _SETS.search(text):
        return text
    values: dict[str, str] = {}
    for command in reversed(read_shell(text).commands):
        made = _assignments(command)
        if made:
            text = f"{text[: command.start]} {text[max(command.end, command.start) :]}"
        for one in made:
            parts = one.value.parts if one.value else ()
            value = "".join(
                _SHOWN.get(part.kind, "?") + (part.text if part.kind in _SHOWN else "") for part in parts
            )
            values.setdefault(one.name, value if len(value) < _LONG else "?")
    found = _NAME.sub(lambda match: values.get(match[1] or match[2], match[0]), text)
    return found if len(found) <= MAX_CHARS else text


def _assignments(command: Command) -> list[Assignment]:
    """Return the variables that a command sets which does nothing else."""
    if not command.words:
        return command.assignments
    if command.name not in ("export", "declare", "readonly"):
        return []
    return [assignment_in(word, exported=True) for word in command.words[1:] if is_assignment(word)]


def program_words(script: Script, launch: Launch) -> tuple[str, ...]:
    """Return the words of the program that a launch starts; those of ``bash -c`` are split."""
    words = _words_of(script, script.launches.index(launch))
    return (
        (launch.launcher, *_option_words(script, launch), *words) if launch.launcher == "torchrun" else words
    )


def _option_words(script: Script, launch: Launch) -> list[str]:
    """Return the options of a torchrun that was read as a launcher, as words."""
    found = []
    for option in launch.options:
        value = "" if option.value is None else partly_expanded(script, option.value, launch.command.start)
        found.append(
            f"--{option.name}={value[option.prefix :]}" if option.value is not None else f"--{option.name}"
        )
    return found


@dataclass(frozen=True)
class TorchRun:
    """One start of torchrun, or of the module behind it."""

    launch: Launch
    options: dict[str, str]
    """Long name with dashes (``nproc-per-node``) -> value; empty for a flag."""

    def number(self, name: str) -> int | None:
        """Return the number that an option gives; None: it is not given, or not known."""
        value = self.options.get(name, "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 7 else None


def torch_run(script: Script, launch: Launch) -> TorchRun | None:
    """Return the torchrun that a launch starts, directly or in ``bash -c``; None: it starts none."""
    words = program_words(script, launch)
    for at, word in enumerate(words):
        if word.rpartition("/")[2] == "torchrun" or _TORCH_MODULE.fullmatch(word):
            return TorchRun(launch, _options_of(words[at + 1 :]))
    return None


def _options_of(words: tuple[str, ...]) -> dict[str, str]:
    """Read torchrun's options up to the program that it starts, past variables of no known value."""
    found, rest = split_options(TORCHRUN, words)
    while rest and rest[0].startswith("$"):
        more, after = split_options(TORCHRUN, rest[1:])
        found, rest = {**found, rest[0]: "", **more}, after
    return {name.lstrip("-").replace("_", "-"): value for name, value in found.items()}


def line_of(script: Script, launch: Launch, text: str) -> int:
    """Return the line of a text in a launch, else the only line that has it, else the launch's."""
    at = script.text.find(text, max(launch.command.start, 0), max(launch.command.end, 0)) if text else -1
    if at < 0 and text and script.text.count(text) == 1:
        at = script.text.find(text)
    return script.text.count("\n", 0, at) + 1 if at >= 0 else launch.line
