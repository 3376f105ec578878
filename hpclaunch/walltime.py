"""Walltimes: read as users and schedulers write them, held as seconds."""

import re

from hpclaunch.errors import BadInputError

_UNIT_S = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_WITH_UNITS = r"(?:\d{1,9}[dhms])+"
# Both give the groups days, hours, minutes, seconds.
_WITH_DAYS = r"(\d{1,5})-(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2}))?"
_CLOCK = r"()(\d{1,6}):(\d{2}):(\d{2})"
_HINT = "write it as HH:MM:SS, D-HH:MM:SS, or with units: 30m, 2h, 1d12h"


def parse_time_limit_s(text: str) -> int:
    """Read ``--time``: what ``parse_walltime_s`` reads, and all that sbatch reads; return seconds.

    sbatch (man sbatch, --time) takes a bare number for minutes, and ``A:B`` for minutes and seconds.
    """
    clean = re.sub("-$", "-0", text.strip())  # days alone, 2-
    if match := re.fullmatch(r"([0-9]{1,9})(?::([0-9]{1,2}))?", clean):
        minutes, seconds = int(match[1]), int(match[2] or 0)
        return parse_walltime_s(f"{minutes * 60 + seconds}s" if seconds < 60 else clean, "--time")
    if match := re.fullmatch(r"([0-9]{1,6}):([0-9]{1,2}):([0-9]{1,2})", clean):
        clean = f"{match[1]}:{match[2]:0>2}:{match[3]:0>2}"
    return parse_walltime_s(clean, "--time")


def parse_walltime_s(text: str, what: str = "walltime") -> int:
    """Read a walltime and return seconds; ``what``: its name in messages.

    Accepts ``HH:MM:SS``, ``D-HH[:MM[:SS]]`` and numbers with units (``90s``, ``30m``, ``1h30m``, ``2d``). A
    bare number or ``A:B`` is refused: Slurm reads the first as minutes and PBS as seconds, and ``A:B`` is
    minutes:seconds to Slurm (man sbatch, --time) and hours:minutes to many people. Raises BadInputError.
    """
    text = text.strip().lower()
    if re.fullmatch(_WITH_UNITS, text):
        parts = re.findall(r"(\d+)([dhms])", text)
        total = sum(int(count) * _UNIT_S[unit] for count, unit in parts)
    else:
        match = re.fullmatch(_WITH_DAYS, text) or re.fullmatch(_CLOCK, text)
        if match is None:
            raise BadInputError(f"bad {what} {text!r}", _HINT)
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        if minutes > 59 or seconds > 59:
            raise BadInputError(f"bad {what} {text!r}: minutes and seconds go up to 59", _HINT)
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total <= 0:
        raise BadInputError(f"bad {what} {text!r}: it must be longer than zero", _HINT)
    return total


def clock_s(pattern: str, text: str) -> int | None:
    """Return the seconds of a time; a group of the pattern has the number of its first letter's unit, ``d2``.

    None: the pattern does not match. So each scheduler says its own forms, and nothing else.
    """
    match = re.fullmatch(pattern, text.strip())
    parts = match.groupdict(default="0") if match else {}
    return sum(_UNIT_S[unit[0]] * int(count) for unit, count in parts.items()) if match else None


def format_walltime(seconds: int) -> str:
    """Write seconds as ``HH:MM:SS``, which Slurm and PBS read in the same way; hours may pass 99."""
    minutes, s = divmod(seconds, 60)
    h, m = divmod(minutes, 60)
    return f"{h:02d}:{m:02d}:{s:02d}"
