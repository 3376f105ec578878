"""Walltimes as people and schedulers write them, and as seconds inside."""

from __future__ import annotations

import re

from hpclaunch.errors import BadInputError

_UNIT_S = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_HINT = "write it as HH:MM:SS, D-HH:MM:SS, or with units: 30m, 2h, 1d12h"


def parse_walltime_s(text: str) -> int:
    """Read a walltime and return seconds.

    Accepts ``HH:MM:SS``, ``D-HH[:MM[:SS]]`` and numbers with units (``90s``, ``30m``, ``1h30m``, ``2d``).
    A bare number or ``A:B`` is refused: Slurm reads the first as minutes and PBS as seconds, and
    ``A:B`` is minutes:seconds to Slurm (man sbatch, --time) and hours:minutes to many people.
    Raises BadInputError.
    """
    text = text.strip().lower()
    if match := re.fullmatch(r"(\d{1,5})-(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2}))?", text):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    elif match := re.fullmatch(r"(\d{1,6}):(\d{2}):(\d{2})", text):
        days, (hours, minutes, seconds) = 0, (int(part) for part in match.groups())
    elif text and re.fullmatch(r"(?:\d{1,9}[dhms])+", text):
        days = hours = minutes = 0
        seconds = sum(int(n) * _UNIT_S[unit] for n, unit in re.findall(r"(\d+)([dhms])", text))
        return _positive(seconds, text)
    else:
        raise BadInputError(f"bad walltime {text!r}", _HINT)
    if minutes > 59 or seconds > 59:
        raise BadInputError(f"bad walltime {text!r}: minutes and seconds go up to 59", _HINT)
    return _positive(((days * 24 + hours) * 60 + minutes) * 60 + seconds, text)


def _positive(seconds: int, text: str) -> int:
    if seconds <= 0:
        raise BadInputError(f"bad walltime {text!r}: it must be longer than nothing", _HINT)
    return seconds


def format_walltime(seconds: int) -> str:
    """Write seconds as ``HH:MM:SS``, which Slurm and PBS read alike; hours may pass 99."""
    minutes, s = divmod(seconds, 60)
    h, m = divmod(minutes, 60)
    return f"{h:02d}:{m:02d}:{s:02d}"
