"""Words before a program that change nothing of what it is: ``env A=b``. Pure."""

from __future__ import annotations

import re


def program_at(argv: tuple[str, ...]) -> int:
    """Return the position of the program's own first word."""
    at = 1 if argv[:1] == ("env",) else 0
    while at < len(argv) and re.match(r"[A-Za-z_]\w*=", argv[at]):
        at += 1
    return at
