"""Quoting for lines whose paths may hold shell variables."""

from __future__ import annotations

import re


def double_quote(text: str) -> str:
    """Quote for the shell so that $NAME, ${NAME} and ~/ before a path are still expanded, nothing else."""
    at_home = re.sub(r"(^|[,:])~(?=/)", r"\1$HOME", text)
    escaped = re.sub(r'([\\"`])', r"\\\1", at_home).replace("$(", "\\$(")
    return f'"{escaped}"'


def word(text: str) -> str:
    """Quote only where it is needed: module names read better bare."""
    return text if re.fullmatch(r"[\w./+:=@%^,-]+", text) else double_quote(text)
