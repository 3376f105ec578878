"""What a command answered: the one type that hosts give and schedulers read."""

from __future__ import annotations

import msgspec


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a command printed and how it ended."""

    exit_code: int
    """128+N where signal N ended it."""
    stdout: str
    """Decoded as UTF-8; bytes that are not become U+FFFD."""
    stderr: str
