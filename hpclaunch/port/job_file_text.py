"""The text of a job file, each key with the reason for its value as a comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hpclaunch.text_table import printable

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+@=-]*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def job_file_text(settings: Mapping[str, Any], reasons: Mapping[str, str], head: Iterable[str]) -> str:
    """Return the job file as YAML; ``reasons``: key -> why it has its value, ``head``: lines above it."""
    lines = [f"# {printable(line)}" for line in head]
    for name, value in settings.items():
        reason = reasons.get(name, "")
        if reason:
            lines.append(f"# {printable(reason)}")
        if isinstance(value, Mapping):
            lines.append(f"{name}:")
            lines += [f"  {_scalar(key)}: {_scalar(item)}" for key, item in value.items()]
        elif isinstance(value, tuple | list):
            lines.append(f"{name}:")
            lines += [f"  - {_scalar(item)}" for item in value]
        else:
            lines.append(f"{name}: {_scalar(value)}")
    return "\n".join(lines) + "\n"


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    number = ord(char)
    return (
        f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"
    )
