"""The nodes of a large cluster as a few lines: of nodes that are alike one, with their number. Pure."""

import re
from collections.abc import Iterator

_OWN = re.compile(
    r"\b(?:NodeName|NodeAddr|NodeHostName|CPUAlloc|CPULoad|AllocMem|FreeMem|State|BootTime|SlurmdStartTime|LastBusyTime"
    r"|ResumeAfterTime|AllocTRES|CurrentWatts|AveWatts|CapWatts|ExtSensors\w+|Owner|Weight|Port|GresUsed"
    r"|AvailableFeatures|ActiveFeatures|RealMemory|CfgTRES|OS|Version|Comment|Extra|Reason)=.*?(?=\s+[A-Z]\w*=|$)"
)
"""What differs from node to node of one kind."""
COUNT = "HpclaunchNodes"
"""Key of the number of nodes that a line stands for."""


def reduced(listing: str) -> str:
    """Return ``scontrol show node --oneliner`` with one line for each kind and state, and their number."""
    return "".join(f"{line} {COUNT}={count}\n" for line, count in _counted(listing))


def _counted(listing: str) -> Iterator[tuple[str, int]]:
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    for line in filter(str.strip, listing.splitlines()):
        state = re.search(r"\bState=(\S+)", line)
        kind = _OWN.sub("", line) + (state[1] if state else "")
        first.setdefault(kind, re.sub(r"\s+Reason=.*", "", line))
        counts[kind] = counts.get(kind, 0) + 1
    return ((line, counts[kind]) for kind, line in first.items())
