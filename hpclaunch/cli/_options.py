"""The options and arguments of the commands, ``options.json``, and what completes them at the shell's Tab.

A row is the words of a declaration, as click takes them, with its keywords: ``int`` and ``float`` are the
lowest and the highest value, ``choices`` the values, ``path`` the keywords of ``click.Path``. ``+NAME`` means
the rows of NAME, which several commands share. The help of a command: its docstring, then ``details`` and
``examples``. ``mixtures``: a parameter that may not be given ``with`` or ``without`` another one, and the
message. Settings of a job are in ``plan/settings_table.py``.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypeVar

import click

from hpclaunch.errors import BadInputError, HpclaunchError
from hpclaunch.package_data import text_beside

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Row = dict[str, Any]
_MAX_BYTES = 4 << 20  # Slurm takes no larger script by default (man slurm.conf, max_script_size)


def options(command: str, **callbacks: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Return a decorator with the options and arguments of a command; ``callbacks``: those of parameters.

    One on how the output is shown is kept in the context instead: ``is_asked``.
    """

    def add(function: _Function) -> _Function:
        for words, row in reversed([*_rows(command)]):
            name = words.split()[-1].lstrip("-").replace("-", "_")
            more: _Row = {"callback": callbacks[name]} if name in callbacks else {}
            if name in ("wide", "csv", "json"):
                more = {"callback": _keep, "expose_value": False}
            kind = click.option if words.startswith("-") else click.argument
            function = kind(*words.split(), **_keywords(row), **more)(function)
        paragraphs = [cleandoc(function.__doc__ or ""), *_table()["details"].get(command, ())]
        if lines := _table()["examples"].get(command):
            shown = "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
            paragraphs.append(shown if len(lines) > 1 else f"Example: {lines[0]}")
        function.__doc__ = "\n\n".join(paragraphs)
        return function

    return add


def refuse_mixtures(command: str, given: Mapping[str, Any]) -> None:
    """Raise UsageError where parameters of a command contradict each other, by its ``mixtures``."""
    there = {name for name, value in given.items() if value not in (None, ()) and value is not False}
    for words, message in _table()["mixtures"][command].items():
        one, joint, other = words.split()
        if one in there and (other in there) == (joint == "with"):
            raise click.UsageError(message)


def is_asked(name: str) -> bool:
    """Return whether the command that runs has the option ``--NAME``, and it was given."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(f"{context.command_path}: {name}", False)


def wants_document() -> bool:
    """Return whether the command that runs is to print its document, as JSON or as CSV."""
    return is_asked("json") or is_asked("csv")


def _keep(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[f"{ctx.command_path}: {param.name}"] = value
    if value and is_asked("json") and is_asked("csv"):
        raise click.UsageError("--json and --csv exclude each other")


@cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads(text_beside(__file__, "options.json"))
    return table


def _rows(command: str) -> Iterator[tuple[str, _Row]]:
    for words, row in _table()[command].items():
        if words.startswith("+"):
            yield from _rows(words[1:])
        else:
            yield words, row


def _keywords(row: _Row) -> _Row:
    keywords = dict(row)
    open_end = {"min_open": True} if keywords.pop("min_open", False) else {}
    for key, make in _TYPES.items():
        if key in keywords:
            keywords["type"] = make(keywords.pop(key), **open_end)
    if complete := keywords.pop("complete", None):
        keywords["shell_complete"] = {"site": complete_site, "job": complete_job}[complete]
    return keywords


class _Path(click.Path):
    """A path that is not empty, as that of an unset variable is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; raises BadParameter."""
        return super().convert(value, param, ctx) if value != "" else self.fail("it is empty", param, ctx)


_TYPES: dict[str, Callable[..., Any]] = {
    "number": {"int": click.INT, "float": click.FLOAT}.get,
    "int": lambda limits: click.IntRange(*limits),
    "float": lambda limits, **more: click.FloatRange(*limits, **more),
    "choices": click.Choice,
    "path": lambda more: _Path(**{"path_type": Path, **more}),
    "file": lambda _: click.File(encoding="utf-8", errors="replace"),
}
"""Key of a row that names a type -> what makes it."""


def complete_site(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the sites whose names begin so."""
    from hpclaunch.site.load_profile import site_names

    return [name for name in site_names() if name.startswith(incomplete)]


def complete_job(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Offer the newest jobs; ``Store.find`` explains what names a job."""
    from hpclaunch.job.store import Store

    try:
        ids = Store().ids()[-50:]
    except HpclaunchError:
        return []
    return [text for text in ("last", *ids) if text.startswith(incomplete)]


def read_script_file(script: str) -> bytes:
    """Return the script's bytes, of ``-`` standard input; raise BadInputError where it cannot be read."""
    try:
        if script == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(script).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInputError(f"{script}: cannot be read: {reason}", "give a batch script") from None
    if len(data) > _MAX_BYTES:
        raise BadInputError(f"{script}: larger than {_MAX_BYTES} bytes", "give a batch script")
    if data.startswith(b"\x7fELF"):
        raise BadInputError(f"{script}: a compiled program, no text", "give a batch script")
    return data


def check_picture_name(path: Path | None) -> None:
    """Refuse a file whose name does not end in .svg, before anything is computed."""
    if path is not None and path.suffix.lower() != ".svg":
        raise BadInputError.case("picture: no SVG", path=path)
