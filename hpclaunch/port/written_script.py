"""A script that the batch script writes by a here-document and whose file its launch starts."""

import re
from dataclasses import replace
from typing import NamedTuple

from hpclaunch.lint.batch_script import read_script
from hpclaunch.port.foreign_values import Value, Values
from hpclaunch.port.line_report import Verdict, Verdicts
from hpclaunch.port.port_state import JOB_FILE, Port
from hpclaunch.shell.shell_syntax import Command, Redirect

_ESCAPED = re.compile(r"\\([$`\\])|\$\{?([A-Za-z_]\w*)\}?(?![\w])")


class Written(NamedTuple):
    """Where a script writes another one."""

    command: Command
    body: Redirect


def find_written(port: Port, values: Values, program: Value) -> Written | None:
    """Return where the script writes the file of this path; None: it does not."""
    if not (program.plain or program.shell):
        return None
    for command in port.script.commands:
        bodies = [redirect for redirect in command.redirects if redirect.body is not None]
        targets = [redirect for redirect in command.redirects if redirect.operator in (">", ">|")]
        if bodies and any(_same(values.value(target.target), program) for target in targets):
            return Written(command, bodies[-1])
    return None


def _same(one: Value, other: Value) -> bool:
    return (one.plain, one.shell) == (other.plain, other.shell)


def read_written(port: Port, values: Values, written: Written) -> Port | None:
    """Return the port of the script in a here-document, whose settings and report are those of the whole.

    None: a part of its text is known at run time only.
    """
    redirect = written.body
    text = redirect.body or ""
    if not any(quote in redirect.target.raw for quote in "'\"\\"):
        expanded = _expanded(values, text, written.command.end)
        if expanded is None:
            return None
        text = expanded
    script = read_script(text)
    inner = replace(values, script=script)
    verdicts = Verdicts(port.verdicts, redirect.line + 1)
    return replace(port, script=script, values=inner, verdicts=verdicts, launch=None, written=None)


def _expanded(values: Values, text: str, offset: int) -> str | None:
    """Return a here-document as bash writes it: variables of the batch script have their values."""
    unknown: list[str] = []

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        found = values.named(match[2], offset)
        if found.plain is not None and "\n" not in found.plain:
            return found.plain
        if found.shell is not None:
            return found.shell
        unknown.append(match[2])
        return ""

    expanded = _ESCAPED.sub(value, text)
    return None if unknown else expanded


def judge_written(port: Port, written: Written) -> None:
    """Note that the file's lines are judged one by one; its end is a line, too."""
    body = written.body.body or ""
    end = written.body.line + 1 + body.count("\n")
    to = "its last program is the command"
    why = "the launch starts the file that it writes, so the file's lines are judged one by one"
    port.verdicts.note([written.command.line, end], Verdict("changed", to, why, JOB_FILE))
