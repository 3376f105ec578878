"""The ``#COBALT`` lines of a batch script (Cobalt's man qsub; ALCF's guide to Theta and ThetaGPU)."""

from collections.abc import Sequence

from hpclaunch.scheduler import directive_reader
from hpclaunch.walltime import clock_s


def _requested(directives: Sequence[directive_reader.Directive]) -> directive_reader.RequestedResources:
    return directive_reader.RequestedResources(
        nodes=directive_reader.given_number(directives, "nodecount"),
        tasks=directive_reader.given_number(directives, "proccount"),
        walltime_s=directive_reader.given_number(directives, "time", cobalt_time_s),
    )


def cobalt_time_s(text: str) -> int | None:
    """Read a time as Cobalt does (man qsub, --time): minutes, or H:M:S."""
    return clock_s(r"(?P<m>\d{1,9})|(?P<h>\d{1,6}):(?P<m2>\d{1,6}):(?P<s>\d{1,6})", text)


DIRECTIVES = directive_reader.DirectiveReader(**directive_reader.gnu_facts("cobalt"), requested=_requested)
