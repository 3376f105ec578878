"""The ``#flux:`` lines of a batch script (RFC 36; man flux-batch)."""

import re
from collections.abc import Sequence

from hpclaunch.scheduler import directive_reader

_UNIT_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _requested(directives: Sequence[directive_reader.Directive]) -> directive_reader.RequestedResources:
    nodes = directive_reader.given_number(directives, "nodes")
    slots = directive_reader.given_number(directives, "nslots")
    each = directive_reader.given_number(directives, "gpus-per-slot")
    count = slots or nodes  # without slots there is one on each node (man flux-batch)
    return directive_reader.RequestedResources(
        nodes=nodes,
        gpus=each._replace(value=each.value * (count.value if count else 1)) if each else None,
        walltime_s=directive_reader.given_number(directives, "time-limit", flux_time_s),
    )


def flux_time_s(text: str, usual: str = "m") -> int | None:
    """Read minutes, or a number with ms, s, m, h or d (RFC 23); ``usual``: the unit of a number alone."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d|)", text.strip())
    return int(float(match[1]) * _UNIT_S[match[2] or usual]) if match else None


DIRECTIVES = directive_reader.DirectiveReader(**directive_reader.gnu_facts("flux"), requested=_requested)
