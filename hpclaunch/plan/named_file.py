"""Commands that name a file where a program is expected: ``train.py``, ``./run.sh``. Pure.

The kernel starts a file that has the execute bit, by the interpreter of its ``#!`` line (man 2 execve). What
it would refuse gets its interpreter put in front where that is certain, and is refused before the queue else.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import PurePosixPath

import msgspec

from hpclaunch.plan.launch_plan import Problem
from hpclaunch.plan.wrappers import Unwrapped, unwrap

_SHELLS = (".sh", ".bash")
_SUFFIXES = (".py", *_SHELLS)
_ANY_SHELL = ("sh", "bash", "dash")
"""Shells whose scripts bash reads."""


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A file where the job will run."""

    folder: bool = False
    executable: bool = False
    head: str = ""
    """Its first characters."""

    @property
    def interpreter(self) -> tuple[str, ...]:
        """The words of its ``#!`` line; empty: it has none. ``env`` is left out of them."""
        line = self.head.partition("\n")[0] if self.head.startswith("#!") else ""
        words = tuple(line[2:].split())
        if words and PurePosixPath(words[0]).name == "env":
            words = words[2:] if words[1:2] == ("-S",) else words[1:]
        return words

    @property
    def broken(self) -> bool:
        """Whether the kernel would look for an interpreter whose name ends in a carriage return."""
        return self.head.startswith("#!") and self.head.partition("\n")[0].endswith("\r")


Look = Callable[[str], FileFacts | None]
"""Facts of a file, by its path from the job's folder; None: it is not there, or cannot be seen."""


class StartedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A command whose program can be started."""

    argv: tuple[str, ...]
    note: str | None = None
    """The word put in front of the file, and why."""
    problem: Problem | None = None


def is_script_name(word: str) -> bool:
    """Tell whether a word names a file that Python or a shell reads."""
    return word.endswith(_SUFFIXES) and not word.startswith("-")


def start_file(argv: tuple[str, ...], look: Look, python: str, *, by_suffix: bool) -> StartedFile:
    """Return the command with the interpreter of its file in front, where it needs one.

    ``python``: that of the job. ``by_suffix``: Python or bash starts the file, whatever its mode is. Else one
    that the kernel starts stays as it is.
    """
    started = unwrap(argv)
    path = argv[started.at] if argv else ""
    by_suffix = by_suffix and is_script_name(path)
    facts = look(path) if _may_be_file(path, started) else None
    why = _why_not(path, facts) if facts and not by_suffix else ""
    if not (by_suffix or why):
        return StartedFile(argv=argv)
    return _with_interpreter(argv, started.at, facts or FileFacts(), python, why)


def _with_interpreter(argv: tuple[str, ...], at: int, facts: FileFacts, python: str, why: str) -> StartedFile:
    """Return the command with an interpreter before the file at this position; ``why``: it needs one."""
    path = argv[at]
    if problem := _problem(path, facts):
        return StartedFile(argv=argv, problem=problem)
    front = _by_suffix(path, facts, python) if is_script_name(path) else facts.interpreter
    note = f"{path} {why}: the job starts it as {shlex.join((*front, path))}" if why else None
    return StartedFile(argv=(*argv[:at], *front, *argv[at:]), note=note)


def _may_be_file(path: str, started: Unwrapped) -> bool:
    """Tell whether a program is a file in the job's folder, or one named by its path."""
    named = (is_script_name(path) or "/" in path) and "://" not in path
    by_uv = started.argv[:1] == ("python",)  # which puts Python in front
    return named and not (started.moved or by_uv)


def _why_not(path: str, facts: FileFacts) -> str:
    """Return why the kernel does not start a file; empty where it does."""
    if facts.folder:
        return "is a folder"
    if not facts.executable:
        return "has no execute bit"
    if facts.broken:
        return "has a #! line that ends in a carriage return"
    if path.endswith(".py") and not facts.interpreter:
        return "has no #! line"
    if "/" not in path:
        return "is not looked for in the job's folder without ./ before its name"
    return ""


def _problem(path: str, facts: FileFacts) -> Problem | None:
    """Return why no interpreter could start a file either."""
    if facts.folder:
        hint = f"name the program in it, or python -m {PurePosixPath(path).name} for a package"
        return Problem(message=f"{path} is a folder, no program", hint=hint)
    if facts.broken and not path.endswith(".py"):
        message = f"{path} has the line ends of Windows (CRLF), with which no shell reads it"
        return Problem(message=message, hint=f"sed -i 's/\\r$//' {shlex.quote(path)}")
    if not is_script_name(path) and not facts.interpreter:
        message = f"{path} has no execute bit, and neither a #! line nor a suffix tells what starts it"
        hint = f"chmod +x {shlex.quote(path)}, or put what starts it before its name"
        return Problem(message=message, hint=hint)
    return None


def _by_suffix(path: str, facts: FileFacts, python: str) -> tuple[str, ...]:
    """Return what starts a file by its suffix; a script of another shell than bash starts by that."""
    if path.endswith(".py"):
        return (python,)
    shell = facts.interpreter[:1]
    named = PurePosixPath(shell[0]).name if shell else "bash"
    return ("bash",) if named in _ANY_SHELL or not re.fullmatch(r"\w*sh", named) else shell
