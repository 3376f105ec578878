"""Lines of scripts with the reason of each, ``script_lines.json``, by their names. Pure."""

import re

import msgspec
from msgspec.structs import replace

from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.job_header import Line

_LINES = msgspec.json.decode(text_beside(__file__, "script_lines.json"), type=dict[str, Line])
_FACT = re.compile(r"@(\w+)@")


def line(name: str, /, **facts: object) -> Line:
    """Return a line, with these facts where its text or reason has ``@FACT@``."""
    found = _LINES[name]
    text, reason = (_FACT.sub(lambda at: str(facts[at[1]]), each) for each in (found.text, found.reason))
    return replace(found, text=text, reason=reason)
