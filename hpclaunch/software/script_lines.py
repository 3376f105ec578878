"""Text of scripts: lines by their names with their reasons (``script_lines.json``), and quoted words. Pure.

Quoted text stays as it is, and paths keep the shell variables in them.
"""

import re
import shlex

import msgspec
from msgspec.structs import replace

from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.job_header import Line

_LINES = msgspec.json.decode(text_beside(__file__, "script_lines.json"), type=dict[str, Line])
_FACT = re.compile(r"@(\w+)@")
# $NAME, ${NAME}, ${NAME:-TEXT} and ${NAME:+TEXT}. Other expansions can run commands: $(...), and $[...],
# ${a[...]} and ${NAME@P}, whose text bash evaluates a second time (man bash, EXPANSION).
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_INNER = rf"(?:[^\\\"`${{}}]|\${_NAME}|\$\{{{_NAME}\}})*"
_VARIABLE = re.compile(rf"\$(?:{_NAME}|\{{{_NAME}(?::?[-+]{_INNER})?\}})")
WIDTH = 110
"""Columns that no line of a script passes, but a command and its words."""


def line(name: str, /, **facts: object) -> Line:
    """Return a line, with these facts where its text or reason has ``@FACT@``."""
    found = _LINES[name]
    text, reason = (_FACT.sub(lambda at: str(facts[at[1]]), each) for each in (found.text, found.reason))
    return replace(found, text=text, reason=reason)


def literal(text: str) -> str:
    """Quote so that the shell reads exactly this text, on one line of the script.

    What is not printable (line breaks, control characters, marks that turn the direction of text around) is
    written as bytes in ``$'...'``: a reader sees it, and no line of the script begins inside of the text.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char.isprintable():
        return char
    return {"\n": "\\n", "\t": "\\t"}.get(char) or "".join(f"\\x{byte:02x}" for byte in char.encode())


def double_quote(text: str) -> str:
    """Quote so that shell variables and ~/ before a path are still expanded, nothing else.

    Variables are ``$NAME`` and ``${NAME}``, also with a text: ``${NAME:-TEXT}`` and ``${NAME:+TEXT}``.
    """
    at_home = re.sub(r"(^|[,:])~(?=/)", r"\1$HOME", text)
    parts, at = [], 0
    for found in _VARIABLE.finditer(at_home):
        parts += [_plain(at_home[at : found.start()]), found[0]]
        at = found.end()
    return f'"{"".join(parts)}{_plain(at_home[at:])}"'


def _plain(text: str) -> str:
    """Return text for the inside of double quotes; what is not printable stands in ``$'...'`` between two."""
    escaped = re.sub(r'([\\"`$])', r"\\\1", text)
    return "".join(char if char.isprintable() else f"\"$'{_escaped(char)}'\"" for char in escaped)


def word(text: str) -> str:
    """Quote only if needed: module names are easier to read without quotes."""
    return text if re.fullmatch(r"[\w./+:=@%^,-]+", text, re.ASCII) else double_quote(text)


def continued(*words: str, width: int = WIDTH) -> str:
    """Return words of shell text as one command, on as many lines as a script of that width needs."""
    lines = [""]
    for each in words:
        if lines[-1].strip() and len(lines[-1]) + len(each) + 3 > width:
            lines[-1] += " \\"
            lines.append(" ")
        lines[-1] += f" {each}" if lines[-1] else each
    return "\n".join(lines)
