"""The ``#COBALT`` lines of a batch script (Cobalt's man qsub; ALCF's guide to Theta and ThetaGPU)."""

import re
from collections.abc import Sequence

from hpclaunch.scheduler import directive_reader


def _requested(directives: Sequence[directive_reader.Directive]) -> directive_reader.RequestedResources:
    return directive_reader.RequestedResources(
        nodes=directive_reader.given_number(directives, "nodecount"),
        tasks=directive_reader.given_number(directives, "proccount"),
        walltime_s=directive_reader.given_number(directives, "time", cobalt_time_s),
    )


def cobalt_time_s(text: str) -> int | None:
    """Read a time as Cobalt does (man qsub, --time): minutes, or H:M:S."""
    match = re.fullmatch(r"(\d{1,9})|(\d{1,6}):(\d{1,6}):(\d{1,6})", text.strip())
    if match is None:
        return None
    if match[1]:
        return int(match[1]) * 60
    return (int(match[2]) * 60 + int(match[3])) * 60 + int(match[4])


DIRECTIVES = directive_reader.DirectiveReader(
    **directive_reader.gnu_facts("cobalt"),
    requested=_requested,
)
