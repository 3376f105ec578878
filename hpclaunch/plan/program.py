"""The program that a command starts: the Python file or module, its framework, sizes in its files. Pure."""

import ast
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from hpclaunch.framework_table import FRAMEWORKS
from hpclaunch.package_data import package_constants
from hpclaunch.plan.script_commands import ReadText, inner_words, script_commands, unwrap
from hpclaunch.plan.worker_launchers import ACCELERATE, IN_SCRIPT, TORCHRUN, find_launcher, launched_program

_WORD = package_constants("plan/forms.json", "program")
MPI = "mpi4py"
"""The framework that programs of other frameworks use, too."""


class PythonTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The Python code that a command starts; one of these is set."""

    file: str | None = None
    module: str | None = None
    code: str | None = None


class FoundFramework(msgspec.Struct, frozen=True, kw_only=True):
    """A framework, and by which import it is known."""

    name: str
    reason: str
    mpi: str | None = None


class _Import(msgspec.Struct, frozen=True):
    module: str
    line: int
    level: int = 0


def python_target(argv: tuple[str, ...]) -> PythonTarget | None:
    """Return what the first Python of a command runs, or the program itself if its name ends in ``.py``.

    Wrappers before the program are read through. Of a launcher of workers, such as torchrun: what each
    worker runs.
    """
    words = inner_words(launched_program(argv))
    if (after := _after_python(words)) is not None:
        return _python_words(_without_runner(after))[1]
    return PythonTarget(file=words[0]) if words and words[0].endswith(".py") else None


def _after_python(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words behind the first interpreter; None: there is none."""
    places = (at for at, word in enumerate(words) if re.fullmatch(_WORD.python, PurePosixPath(word).name))
    at = next(places, None)
    return None if at is None else words[at + 1 :]


def _without_runner(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of an interpreter without ``-m mpi4py`` and what stands before it."""
    at = words.index("-m") if "-m" in words else len(words)
    program = words[at + 2 :]
    runs = words[at + 1 : at + 2] in [(name,) for name in _WORD.runners] and program
    return program if runs and (program[0] in ("-m", "-c") or program[0][0:1] != "-") else words


def interpreter_of(argv: tuple[str, ...]) -> str:
    """Return the first Python of a command; python3 where it names none."""
    return next((word for word in argv if re.fullmatch(_WORD.python, PurePosixPath(word).name)), "python3")


def _python_words(words: tuple[str, ...]) -> tuple[str, PythonTarget | None]:
    """Return the letters of an interpreter's options (man python), and what it runs; None: what stdin has."""
    letters, at = "", 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        if not word.startswith("--"):
            found = re.search(r"[mcWX]", word)
            letters += word[1 : found.start()] if found else word[1:]
            if found and found[0] in "mc":
                value = word[found.end() :] or next(iter(words[at + 1 :]), "")
                return letters, PythonTarget(module=value) if found[0] == "m" else PythonTarget(code=value)
        at += 2 if word in _WORD.with_value else 1
    return letters, PythonTarget(file=words[at]) if at < len(words) and words[at] != "-" else None


def option_against_startup(argv: tuple[str, ...]) -> str | None:
    """Return the option by which the first Python of a command reads no start-up file of PYTHONPATH (man
    python: -E, -I; -S)."""
    after = _after_python(inner_words(launched_program(argv)))
    letters = _python_words(after)[0] if after is not None else ""
    return next((f"-{letter}" for letter in letters if letter in "EIS"), None)


def find_framework(argv: tuple[str, ...], read: ReadText) -> FoundFramework | None:
    """Return the framework of a command's Python program; None: it shows none, or cannot be read.

    Of a shell script the Python programs in it are looked at; the first that shows a framework decides.
    The imports of the launched file decide. If it imports no framework, those of the modules next to it do
    that it imports, as Python would find them in the file's folder; up to 50 files are read. mpi4py goes with
    any framework, so it is the program's framework only where none of these files imports another.
    """
    if unwrap(argv).moved:
        return None
    if target := python_target(argv):
        return _framework_of(target, read)
    for where, words in script_commands(argv, read):
        inner = None if unwrap(words).moved else python_target(words)
        # A text after -c in a script prints a version more often than it trains.
        found = _framework_of(inner, read) if inner and inner.code is None else None
        if found:
            mpi = f"{where}: {found.mpi}" if found.mpi else None
            return FoundFramework(name=found.name, reason=f"{where}: {found.reason}", mpi=mpi)
    return None


def _framework_of(target: PythonTarget, read: ReadText) -> FoundFramework | None:
    if target.code is not None:
        return _both(*_found_in([("the program after -c", each) for each in imports_of(target.code)]))
    names = [target.file] if target.file else list(_module_files("", target.module or ""))
    start = next((name for name in names if read(name) is not None), None)
    if start is None:
        return None
    return _search(start, read, from_root=target.module is not None)


def _search(start: str, read: ReadText, *, from_root: bool) -> FoundFramework | None:
    """Look at a file, then at the modules that it finds in its folder (``-m``: in the working folder)."""
    root = "" if from_root else str(PurePosixPath(start).parent)
    seen, waiting = {start}, [start]
    framework = mpi = None
    while waiting and len(seen) <= _WORD.max_files and not (framework and mpi):
        found = [(name, imported) for name in waiting for imported in imports_of(read(name) or "")]
        here, mpi_here = _found_in(found)
        framework, mpi, waiting = framework or here, mpi or mpi_here, []
        for name, imported in found:
            folder = root if not imported.level else str(PurePosixPath(name).parents[imported.level - 1])
            for path in _module_files(folder, imported.module):
                if path not in seen and len(seen) <= _WORD.max_files and read(path) is not None:
                    seen.add(path)
                    waiting.append(path)
    return _both(framework, mpi)


def _module_files(folder: str, module: str) -> Iterator[str]:
    """Yield the paths where a module's text may be, and those of the package that holds it."""
    if not module:
        return
    path = PurePosixPath(folder, *module.split("."))
    yield f"{path}.py"
    yield f"{path}/__main__.py"
    yield f"{path}/__init__.py"
    if "." in module:
        yield f"{path.parent}.py"


def needed_modules(argv: tuple[str, ...], read: ReadText) -> tuple[str, ...]:
    """Return the modules without which a command's Python program does not start, as its file names them.

    Those that its launched file imports at its top: not in a function, ``try`` or ``if``, and not those that
    are files next to it. None where the file cannot be read, or where a wrapper such as ``uv run`` brings
    the environment.
    """
    target, started = python_target(argv), unwrap(argv)
    if target is None or started.moved or started.python:
        return ()
    folder, source = _launched(target, read)
    found = dict.fromkeys(each.module for each in imports_of(source, top_only=True) if not each.level)
    return tuple(each for each in found if all(read(path) is None for path in _module_files(folder, each)))


def _launched(target: PythonTarget, read: ReadText) -> tuple[str, str]:
    """Return the folder in which a program finds its own modules, and its text; empty: it cannot be read."""
    if target.code is not None:
        return "", target.code
    folder = str(PurePosixPath(target.file).parent) if target.file else ""
    names = (target.file,) if target.file else _module_files("", target.module or "")
    return folder, next((text for text in map(read, names) if text is not None), "")


def imports_of(source: str, *, top_only: bool = False) -> list[_Import]:
    """Return the imports of a Python text; ``top_only``: of every start, with ``from A import B`` as A."""
    tree = parsed_program(source)
    nodes = tree.body if top_only else list(ast.walk(tree))
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [_Import(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += _from_imports(node)[: 1 if top_only else None]
    return sorted(found, key=lambda each: each.line)


def parsed_program(source: str) -> ast.Module:
    """Return the syntax tree of a program; an empty one where its text is not Python: Python reports that."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the file are not reported
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _from_imports(node: ast.ImportFrom) -> list[_Import]:
    """Return ``from A import B`` as A, and as A.B, which may be a module too."""
    module = node.module or ""
    whole = [_Import(module, node.lineno, node.level)] if module else []
    dot = "." if module else ""
    return [*whole, *(_Import(f"{module}{dot}{alias.name}", node.lineno, node.level) for alias in node.names)]


_Found = FoundFramework | None


def _found_in(found: list[tuple[str, _Import]]) -> tuple[_Found, _Found]:
    """Return the first framework of the table that one of the imports belongs to, and mpi4py likewise."""
    mpi = _first(found, (MPI,))
    return _first(found, tuple(name for name in FRAMEWORKS if name != MPI)), mpi


def _first(found: list[tuple[str, _Import]], names: tuple[str, ...]) -> _Found:
    for name in names:
        for where, imported in found:
            top = imported.module.partition(".")[0]
            if not imported.level and top in FRAMEWORKS[name].imports:
                return FoundFramework(name=name, reason=f"{where}, line {imported.line}: imports {top}")
    return None


def _both(framework: _Found, mpi: _Found) -> _Found:
    """Return the framework and the reason why it uses MPI, too; mpi4py where there is no other."""
    if framework is None or mpi is None:
        return framework or mpi
    return msgspec.structs.replace(framework, mpi=mpi.reason)


if TYPE_CHECKING:
    from hpclaunch.site.yaml_tree import Tree

DEFAULT_FILE = "~/.cache/huggingface/accelerate/default_config.yaml"
"""Which accelerate reads where its command names none (accelerate 1.15, commands/config/config_args.py)."""
TRAINER = "trainer."
"""Keys of what a Trainer says begin with it."""


def launcher_config(argv: tuple[str, ...], read: ReadText) -> dict[str, str]:
    """Return what the files of a command say: those of accelerate's file and of the program's Trainer.

    Keys of sections have the section's name and a dot before them. Raises BadInputError for a file of
    accelerate that is not YAML.
    """
    found = find_launcher(argv)
    values: dict[str, str] = {}
    if found and found.launcher is ACCELERATE and "--cpu" not in found.options:
        file = found.options.get("--config_file", DEFAULT_FILE)
        text = read(file)
        if text is not None:
            from hpclaunch.site.yaml_tree import parse_tree  # loads YAML, which few jobs need

            values = {"file": file, **dict(_flat(parse_tree(text, file)))}
    return {**values, **dict(_trainer(argv, read)), **dict(_in_script(argv, read))}


def _in_script(argv: tuple[str, ...], read: ReadText) -> Iterator[tuple[str, str]]:
    """Yield the only torchrun in a script, and its place: the environment gives what its options do not."""
    found = [command for command in script_commands(argv, read) if find_launcher(command.words)]
    if len(found) == 1 and (started := find_launcher(found[0].words)) and started.launcher is TORCHRUN:
        yield IN_SCRIPT, shlex.join(found[0].words)
        yield f"{IN_SCRIPT}.where", found[0].where


def _flat(tree: "Tree", before: str = "") -> Iterator[tuple[str, str]]:
    if not isinstance(tree.value, Mapping):
        return
    for key, each in tree.value.items():
        if isinstance(each.value, Mapping):
            yield from _flat(each, f"{key}.")
        elif each.value is not None and not isinstance(each.value, list):
            yield before + key, str(each.value)


def _trainer(argv: tuple[str, ...], read: ReadText) -> Iterator[tuple[str, str]]:
    """Yield the whole numbers that the program's first Trainer or Fabric is given as such."""
    target = python_target(argv)
    text = (read(target.file) if target and target.file else None) or ""
    call = _trainer_call(text)
    if target is None or call is None:
        return
    yield TRAINER + "where", f"{target.file}, line {call.lineno}"
    for word in call.keywords:
        yield from ((f"{TRAINER}{word.arg}", each) for each in _size(word))


def _trainer_call(text: str) -> ast.Call | None:
    nodes = ast.walk(parsed_program(text)) if "lightning" in text else ()
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return next((call for call in calls if _last(call.func) in ("Trainer", "Fabric")), None)


def _size(word: ast.keyword) -> Iterator[str]:
    value = word.value.value if isinstance(word.value, ast.Constant) else None
    if word.arg in ("devices", "num_nodes") and type(value) is int and value > 0:
        yield str(value)


def _last(name: ast.expr) -> str:
    return name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
