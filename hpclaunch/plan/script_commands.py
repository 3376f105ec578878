"""The words of a command: wrappers before a program, scripts of a shell, files named as programs. Pure.

Only what is certain: a word with a variable stays as it is written, and commands inside ``$(...)`` do not
count. Those of functions, loops and conditions do, since one of them may run.

The kernel starts a file that has the execute bit, by the interpreter of its ``#!`` line (man 2 execve). What
it would refuse gets its interpreter put in front where that is certain, and is refused before the queue else.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from hpclaunch.package_data import package_constants, package_patterns, text_beside
from hpclaunch.plan.request import JobRequest, Problem

_WORD = package_constants("plan/forms.json", "script_commands")
_FORM = package_patterns("plan/forms.json", "script_commands")


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """The words between the name of a wrapper and the program that it starts."""

    values: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    words: int = 0
    assignments: bool = False
    commands: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    python: bool = False


WRAPPERS = msgspec.json.decode(text_beside(__file__, "wrappers.json"), type=dict[str, Wrapper])
"""Programs that start the program behind them: ``nohup``, ``env A=b``, ``uv run``.

Sources of the options that take a value: coreutils 9.1 (env, nice, nohup, stdbuf, timeout ``--help``),
util-linux 2.38 (ionice, setsid, taskset ``--help``), GNU time 1.9 (man time), numactl 2.0.16 (man numactl),
uv (docs/reference/cli.md, "uv run"), pixi (docs/reference/cli/pixi/run.md), conda (conda/cli/main_run.py and
helpers.py, 24), micromamba (micromamba/src/run.cpp), Poetry 2 (python-poetry.org/docs/cli, "Global Options"),
Pipenv 2022 (``--help``), PDM 2.26 (pdm-project.org, reference/cli), Hatch 1.12 (hatch.pypa.io/cli/reference).
"""


class Unwrapped(msgspec.Struct, frozen=True, kw_only=True):
    """A command without the wrappers before its program."""

    at: int
    argv: tuple[str, ...]
    wrappers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    python: str | None = None
    moved: bool = False


def program_at(argv: tuple[str, ...]) -> int:
    """Return where the program of a command begins, behind all wrappers; a bare wrapper is the program."""
    return unwrap(argv).at


def option_values(argv: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each word as an option, with the value after its ``=``, else the next word."""
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        option, equals, value = word.partition("=")
        yield option, value if equals else following


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
    while not first and (behind := behind_wrapper(argv, at)):
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
    if any(word in _WORD.uv_modules for word in options):
        return ("python", "-m")
    is_file = program.endswith(".py") or program == "-" or any(word in _WORD.uv_files for word in options)
    return ("python",) if is_file else ()


def behind_wrapper(argv: tuple[str, ...], wrapper: int) -> int | None:
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
    while at < len(argv) and (_FORM.assignment.match(argv[at]) or argv[at] == "-"):
        at += 1
    return at


def _after_options(row: Wrapper, argv: tuple[str, ...], at: int) -> int:
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


ReadText = Callable[[str], str | None]
"""Text of a file, by its path from the job's folder; None: it cannot be read."""

_SUFFIXES = (".sh", ".bash")


class ShellTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The script that a command starts; one of these is set."""

    file: str | None = None
    text: str | None = None


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
    if name in _WORD.sources:
        return ShellTarget(file=words[0]) if words else None
    if PurePosixPath(name).name in _WORD.shells:
        return _of_shell(words)
    named = name.endswith(_SUFFIXES) or ("/" in name and not PurePosixPath(name).suffix)
    return ShellTarget(file=name) if named else None


def _of_shell(words: list[str]) -> ShellTarget | None:
    """Return the script that a shell with these arguments reads (man bash, OPTIONS); None: its stdin."""
    rest = iter(words)
    for word in rest:
        option = re.fullmatch(r"[-+](?P<letters>[A-Za-z]+)|--.*", word)
        if option is None:
            return ShellTarget(file=word)
        letters = option["letters"] or ""
        if re.search("[cs]", letters):
            return next((ShellTarget(text=text) for text in rest), None) if "c" in letters else None
        if word in _WORD.with_value or letters.endswith(("o", "O")):
            next(rest, None)
    return None


def script_commands(argv: tuple[str, ...], read: ReadText) -> tuple[ScriptCommand, ...]:
    """Return the commands of the script that a command starts, and of the scripts that this one starts."""
    found, seen, waiting = list[ScriptCommand](), set[tuple[str, str]](), [argv]
    while waiting and len(seen) < _WORD.max_files:
        name, text = _script(waiting.pop(0), read)
        if text is None or (name, text) in seen:
            continue
        seen.add((name, text))
        here = [ScriptCommand(f"{name}, line {line}", words) for line, words in commands_of_script(text)]
        found += here
        waiting += [command.words for command in here]
    return tuple(found)


def directives_in(argv: tuple[str, ...], read: ReadText) -> str | None:
    """Return how the directives of a batch script begin that a job starts as a program: ``#SBATCH``."""
    found = _FORM.directive.search(_script(argv, read)[1] or "")
    return f"#{found[1]}" if found else None


def _script(argv: tuple[str, ...], read: ReadText) -> tuple[str, str | None]:
    """Return the name of the script that a command starts, and its text; None: there is none to be read."""
    target = None if unwrap(argv).moved else shell_target(argv)
    if target is None or target.file is None:
        return "the text after -c", target.text if target else None
    text = None if re.search(r"[$`*?~]", target.file) else read(target.file)
    script = target.file.endswith(_SUFFIXES) or named_shell(argv)
    if text is None or not (script or re.match(r"#!.*\b(?:ba|da|k|z)?sh\b", text)):
        return target.file, None
    return target.file, text


def named_shell(argv: tuple[str, ...]) -> bool:
    """Tell whether a command names the shell that reads its script: ``bash run``, ``source run``."""
    words = unwrap(argv).argv
    return bool(words) and PurePosixPath(words[0]).name in (*_WORD.shells, *_WORD.sources)


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A file where the job will run."""

    folder: bool = False
    executable: bool = False
    head: str = ""

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
    problem: Problem | None = None


def is_script_name(word: str) -> bool:
    """Tell whether a word names a file that Python or a shell reads."""
    return word.endswith((".py", *_SUFFIXES)) and not word.startswith("-")


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
    return ("bash",) if named in _WORD.any_shell or not re.fullmatch(r"\w*sh", named) else shell
