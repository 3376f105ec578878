"""Programs that start the program behind them, ``wrappers.json``: ``nohup``, ``env A=b``, ``uv run``. Pure.

Sources of the options that take a value: coreutils 9.1 (env, nice, nohup, stdbuf, timeout ``--help``),
util-linux 2.38 (ionice, setsid, taskset ``--help``), GNU time 1.9 (man time), numactl 2.0.16 (man numactl),
uv (docs/reference/cli.md, "uv run"), pixi (docs/reference/cli/pixi/run.md), conda (conda/cli/main_run.py and
helpers.py, 24), micromamba (micromamba/src/run.cpp), Poetry 2 (python-poetry.org/docs/cli, "Global Options").
"""

import re
from pathlib import PurePosixPath

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.plan.request import JobRequest

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """The words between the name of a wrapper and the program that it starts."""

    values: tuple[str, ...] = ()
    """Options that take a value."""
    folders: tuple[str, ...] = ()
    """Those of them after which the program starts in another folder."""
    words: int = 0
    """Words before the program that are no options, such as the time of ``timeout``."""
    assignments: bool = False
    """``NAME=VALUE`` may stand before the program."""
    commands: tuple[str, ...] = ()
    """One of these must stand before the program: ``run``; options stand on both sides of it."""
    unread: tuple[str, ...] = ()
    """Options with which no program follows."""
    python: bool = False
    """It brings a Python environment."""


WRAPPERS = msgspec.json.decode(text_beside(__file__, "wrappers.json"), type=dict[str, Wrapper])
_UV_FILES = ("-s", "--script", "--gui-script")
_UV_MODULES = ("-m", "--module")


class Unwrapped(msgspec.Struct, frozen=True, kw_only=True):
    """A command without the wrappers before its program."""

    at: int
    """Position of the program's first word in the command."""
    argv: tuple[str, ...]
    """The program; what ``uv run`` starts with Python begins with ``python``."""
    wrappers: tuple[str, ...] = ()
    """Their names, in the command's order."""
    options: tuple[str, ...] = ()
    """All words of the wrappers."""
    python: str | None = None
    """The wrapper that brings the Python environment, as ``uv run``."""
    moved: bool = False
    """The program starts in another folder than the job's."""


def program_at(argv: tuple[str, ...]) -> int:
    """Return the position of the first word of the program that a command starts, behind all wrappers.

    A wrapper with no program behind it is the program.
    """
    return unwrap(argv).at


def inner_words(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program that a command starts, without the wrappers before it."""
    return unwrap(argv).argv


def environment_of(request: JobRequest) -> str | None:
    """Return the wrapper that brings the Python environment of a job, as ``uv run``; None: there is none."""
    return None if request.command.bundled else unwrap(request.command.argv).python


def unwrap(argv: tuple[str, ...]) -> Unwrapped:
    """Return what a command starts, and which wrappers stand before it."""
    at, names, first = 0, list[str](), tuple[str, ...]()
    found = list[Wrapper]()
    while not first and (behind := _behind(argv, at)):
        name = PurePosixPath(argv[at]).name
        names.append(name)
        found.append(WRAPPERS[name])
        first = _python_of_uv(argv[at + 1 : behind], argv[behind]) if name == "uv" else ()
        at = behind
    folders = {option for row in found for option in row.folders}
    return Unwrapped(
        at=at,
        argv=(*first, *argv[at:]),
        wrappers=tuple(names),
        options=argv[:at],
        python=next((f"{name} run" for name in names if WRAPPERS[name].python), None),
        moved=any(word.partition("=")[0] in folders for word in argv[:at]),
    )


def _python_of_uv(options: tuple[str, ...], program: str) -> tuple[str, ...]:
    """Return the words of the Python that ``uv run`` starts without naming it."""
    if any(word in _UV_MODULES for word in options):
        return ("python", "-m")
    is_file = program.endswith(".py") or program == "-" or any(word in _UV_FILES for word in options)
    return ("python",) if is_file else ()


def _behind(argv: tuple[str, ...], wrapper: int) -> int | None:
    """Return where the program begins that the wrapper at this position starts; None: there is none."""
    row = WRAPPERS.get(PurePosixPath(argv[wrapper]).name) if wrapper < len(argv) else None
    if row is None:
        return None
    at = _after_options(row, argv, wrapper + 1)
    if row.commands:
        if argv[at : at + 1] not in [(name,) for name in row.commands]:
            return None
        at = _after_options(row, argv, at + 1)
    if any(word in row.unread for word in argv[wrapper:at]):
        return None
    at = _after_assignments(argv, at) if row.assignments else at
    at += row.words
    return at if at < len(argv) else None


def _after_assignments(argv: tuple[str, ...], at: int) -> int:
    while at < len(argv) and (_ASSIGNMENT.match(argv[at]) or argv[at] == "-"):
        at += 1
    return at


def _after_options(row: Wrapper, argv: tuple[str, ...], at: int) -> int:
    """Return the position behind the options that begin at ``at``."""
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "-":
        if argv[at] == "--":
            return at + 1
        at += 2 if _wants_next(row, argv[at]) else 1
    return at


def _wants_next(row: Wrapper, word: str) -> bool:
    """Tell whether the value of an option is the next word: ``-n base``, ``-vn base``, not ``-nbase``."""
    if word.startswith("--"):
        return word in row.values
    letters = [f"-{letter}" for letter in word[1:]]
    first = next((number for number, name in enumerate(letters) if name in row.values), None)
    return first is not None and first == len(letters) - 1
