"""The ``#COBALT`` lines of a batch script (Cobalt's man qsub; ALCF's guide to Theta and ThetaGPU)."""

import re
from collections.abc import Sequence

from hpclaunch.scheduler.directive_reader import (
    After,
    Directive,
    DirectiveReader,
    RequestedResources,
    given_number,
    gnu_facts,
)


def _requested(directives: Sequence[Directive]) -> RequestedResources:
    return RequestedResources(
        nodes=given_number(directives, "nodecount"),
        tasks=given_number(directives, "proccount"),
        walltime_s=given_number(directives, "time", cobalt_time_s),
    )


def cobalt_time_s(text: str) -> int | None:
    """Read a time as Cobalt does (man qsub, --time): minutes, or H:M:S."""
    match = re.fullmatch(r"(\d{1,9})|(\d{1,6}):(\d{1,6}):(\d{1,6})", text.strip())
    if match is None:
        return None
    if match[1]:
        return int(match[1]) * 60
    return (int(match[2]) * 60 + int(match[3])) * 60 + int(match[4])


def _read_after(text: str) -> After | None:
    match = re.fullmatch(r"\d+(:\d+)*", text.strip())
    return After(tuple(text.strip().split(":")), False) if match else None


DIRECTIVES = DirectiveReader(
    **gnu_facts("cobalt"),
    requested=_requested,
    mail_by_user=frozenset({"begin", "end"}),
    read_after=_read_after,
)
