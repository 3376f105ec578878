"""Rules about the Python files that a script launches."""

import ast
import re
from collections.abc import Iterator
from typing import Any

from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.launch_lines import python_files
from hpclaunch.lint.lint_rule import Context, Violation, rule
from hpclaunch.plan.program import parsed_program

_CALLBACKS: dict[str, dict[str, Any]] = TABLE["callbacks"]
"""Callback of Horovod 0.28 -> ``names`` of its arguments, in order, and how many are ``required``."""


@rule("horovod-callback-arguments")
def horovod_callback_arguments(context: Context) -> Iterator[Violation]:
    for name, source in _launched(context):
        for call, message in _wrong_calls(source) if "horovod" in source else ():
            line = source.encode().split(b"\n")[call.lineno - 1]
            column = len(line[: call.col_offset].decode(errors="replace")) + 1  # ast counts bytes
            yield Violation(call.lineno, message, file=name, column=column)


def _launched(context: Context) -> Iterator[tuple[str, str]]:
    """Yield name and text of each Python file that the script launches and that can be read, once."""
    words = [word for launch in context.script.launches for word in python_files(launch)]
    names = dict.fromkeys(context.script.variables.expand(word).text for word in words)
    for name in filter(None, names):
        source = context.files.text(name)
        if source:
            yield context.files.shown(name), source


@rule("data-parallel")
def data_parallel(context: Context) -> Iterator[Violation]:
    if context.requested.all_tasks < 2:
        return
    for name, source in _launched(context):
        match = re.search(r"(?m)^([^#\n]*)\bDataParallel\(", source)
        if match and "DistributedDataParallel(" not in source:
            line = source.count("\n", 0, match.start()) + 1
            column = len(match[1]) + 1
            yield Violation(line, "DataParallel works in one process", file=name, column=column)


def _wrong_calls(source: str) -> Iterator[tuple[ast.Call, str]]:
    for call in (node for node in ast.walk(parsed_program(source)) if isinstance(node, ast.Call)):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        row = _CALLBACKS.get(called)
        if row and (message := _mistake(call, row["names"].split(), row["required"])):
            yield call, f"{called}: {message}"


def _mistake(call: ast.Call, names: list[str], required: int) -> str | None:
    """Return what is wrong with a call; None: nothing, or it is not known (``*args``)."""
    given = [keyword.arg for keyword in call.keywords if keyword.arg]
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if starred or len(given) < len(call.keywords):
        return None
    if unknown := sorted({*given} - {*names}):
        return f"no argument {', '.join(unknown)}; it takes {', '.join(names)}"
    missing = sorted({*names[len(call.args) : required]} - {*given})
    return f"{', '.join(missing)} is required" if missing else None
