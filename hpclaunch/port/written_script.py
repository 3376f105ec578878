"""A script inside the batch script: a file that it writes and starts, or the text of ``bash -c``."""

import re
from dataclasses import replace
from typing import NamedTuple

from hpclaunch.lint.batch_script import read_script
from hpclaunch.port.foreign_values import WORDS, Value, Values
from hpclaunch.port.port_state import Port
from hpclaunch.port.ported_command import PortedCommand
from hpclaunch.shell.shell_reader import read_shell
from hpclaunch.shell.shell_syntax import Command, Part, Redirect, Word

_ONCE = WORDS["computed by each shell"].format(names="|".join(["HOSTNAME", *WORDS["of one shell"]]))
_EXPANDED = re.compile(rf"\\([$`\\\"])|({_ONCE})|\$(?:\{{([A-Za-z_]\w*)\}}|([A-Za-z_]\w*))")

_SIGNS = re.compile(r"[\"'\\$`;&|<>(){}*?~#]")


class Written(NamedTuple):
    """Where a script holds another one."""

    command: Command
    line: int
    text: str
    expands: bool
    in_launch: bool = False
    pasted: tuple[str, ...] = ()


def find_written(port: Port, program: Value) -> Written | None:
    """Return where the script writes the file of this path; None: it does not."""
    if not (program.plain or program.shell):
        return None
    for command in port.script.commands:
        bodies = [redirect for redirect in command.redirects if redirect.body is not None]
        targets = [redirect for redirect in command.redirects if redirect.operator in (">", ">|")]
        paths = (port.values.value(target.target) for target in targets)
        if bodies and any((path.plain, path.shell) == (program.plain, program.shell) for path in paths):
            return here_document(command, bodies[-1])
    return None


def here_document(command: Command, body: Redirect, *, in_launch: bool = False) -> Written:
    """Return a here-document as a script in the script; ``in_launch``: the launch gives it to a shell."""
    return Written(command, body.line + 1, body.body or "", not body.is_quoted, in_launch)


def text_of_shell(command: Command, word: Word, values: Values) -> Written:
    """Return the text that a launch gives to ``bash -c``, a script in the script, and what is pasted in."""
    raw, inside = word.raw, word.raw[1:-1]
    if re.fullmatch("'[^']*'", raw) or raw == f'"{inside}"':
        return Written(command, word.line, inside, expands=raw[0] == '"', in_launch=True)

    pieces = [_piece(values, part, word.start) for part in word.parts]
    pasted = tuple(part.text for part, (_, open_) in zip(word.parts, pieces, strict=True) if open_)
    text = "".join(text for text, _ in pieces)
    return Written(command, word.line, text, expands=False, in_launch=True, pasted=pasted)


def _piece(values: Values, part: Part, at: int) -> tuple[str, bool]:
    """Return a part of the text for a shell, and whether it is a variable that the shell would read there."""
    source = f"${{{part.text}{part.operator}}}" if part.kind == "variable" else part.text
    if part.kind != "text" and re.fullmatch(_ONCE, source):
        return _once(values, source, at), False
    if part.kind != "variable":
        return source, False
    value = values.named(part.text, at)
    special = _SIGNS.search(value.text) is not None
    stays = not special and part.text in values.script.variables.exported
    plain = "" if stays else _in_one_line(value, part)
    return plain or source, special and not plain


def _once(values: Values, source: str, at: int) -> str:
    """Return for each rank what the shell of the batch script has once, such as ``$(hostname)``."""
    value = values.value(replace(read_shell(f": {source}").commands[0].words[1], start=at))
    return value.plain or value.shell or value.named or source


def _in_one_line(value: Value, part: Part) -> str | None:
    """Return the text of a variable that can be written in its place; empty or None: none can."""
    return "" if part.operator or "\n" in value.text else value.plain


def read_written(port: Port, written: Written, *, in_ranks: bool) -> Port | None:
    """Return the port of the script inside, whose settings and report are those of the whole.

    None: a part of the text of a file is known at run time only. In the text of a launch such a part keeps
    the name of its variable.
    """
    text, unknown = _expanded(port.values, written) if written.expands else (written.text, False)
    if unknown and not written.in_launch:
        return None
    script = read_script(text)
    around = (port.values, written.command.start) if written.in_launch else None
    inner = replace(port.values, script=script, around=around, in_ranks=in_ranks)
    lines = written.line - 1
    faults = {line - lines: fault for line, fault in port.faults.items()}
    return replace(
        port, script=script, values=inner, before=lines, faults=faults, launch=None, command=PortedCommand()
    )


def _expanded(values: Values, written: Written) -> tuple[str, bool]:
    """Return the text as bash expands it, and whether a part of it is known at run time only."""
    unknown: list[str] = []

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return match[1] if match[1] != '"' or written.in_launch else match[0]
        if match[2]:
            shown = re.search(r"(^|[;&|])\s*(echo|printf)\b[^;&|\n]*\Z", match.string[: match.start()], re.M)
            return match[0] if shown else _once(values, match[2], written.command.end)
        found = values.named(match[3] or match[4], written.command.end)
        plain = found.plain
        if written.in_launch and (match[3] or match[4]) in values.script.variables.assignments:
            pasted = re.sub(r"\\([\\\"`$])", r"\1", found.shell or found.named or "")
            plain = found.plain or pasted or found.plain
            plain = re.sub(r"\\?\n", " ", plain) if plain else plain
        if plain is not None and "\n" not in plain:
            return plain
        if found.shell is not None and not written.in_launch:
            return found.shell
        unknown.append(match[0])
        return match[0]

    return _EXPANDED.sub(value, written.text), bool(unknown)
