"""Whether the bytes of a script can be read at all, and where not."""

from __future__ import annotations

from hpclaunch.errors import BadInputError


def check_text(name: str, data: bytes) -> str:
    """Return a script's text; raises BadInputError with the line where it is not text."""
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise BadInputError(f"{name}: line {line}: a NUL byte: this is not a script", "give a batch script")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInputError(f"{name}: line {line}: not UTF-8", "save the script as UTF-8") from None
    if not text.strip():
        raise BadInputError(f"{name}: line 1: the script is empty", "give a batch script")
    return text
