"""Quoting for lines whose paths may have shell variables in them."""

from __future__ import annotations

import re

# ${NAME} may have a default, or a text for the case that it is set; in these only plain variables.
_INNER = r"(?:[^\\\"`${}]|\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})*"
_VARIABLE = re.compile(rf"\$(?:[A-Za-z_]\w*|\{{[A-Za-z_]\w*(?::[-+]{_INNER})?\}})", re.ASCII)


def double_quote(text: str) -> str:
    """Quote for the shell so that variables and ~/ before a path are still expanded, and nothing else is.

    Variables: $NAME, ${NAME}, ${NAME:-text} and ${NAME:+text}. No other expansion is left, since some of them
    run commands (an array's index, for one).
    """
    at_home = re.sub(r"(^|[,:])~(?=/)", r"\1$HOME", text)
    quoted, at = "", 0
    for found in _VARIABLE.finditer(at_home):
        quoted += _literal(at_home[at : found.start()]) + found[0]
        at = found.end()
    return f'"{quoted}{_literal(at_home[at:])}"'


def _literal(text: str) -> str:
    return re.sub(r'([\\"`$])', r"\\\1", text)


def word(text: str) -> str:
    """Quote only if needed: module names are easier to read without quotes."""
    return text if re.fullmatch(r"[\w./+:=@%^,-]+", text, re.ASCII) else double_quote(text)
