"""Quoting for lines whose paths may have shell variables in them."""

from __future__ import annotations

import re


def double_quote(text: str) -> str:
    """Quote for the shell so that $NAME, ${NAME} and ~/ before a path are still expanded, nothing else."""
    at_home = re.sub(r"(^|[,:])~(?=/)", r"\1$HOME", text)
    escaped = re.sub(r'([\\"`])', r"\\\1", at_home).replace("$(", "\\$(")
    return f'"{escaped}"'


def word(text: str) -> str:
    """Quote only if needed: module names are easier to read without quotes."""
    return text if re.fullmatch(r"[\w./+:=@%^,-]+", text) else double_quote(text)
