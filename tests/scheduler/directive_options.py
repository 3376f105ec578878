"""What a reader makes of a script, for the tests of all of them."""

from __future__ import annotations

from hpclaunch.scheduler.directive_reader import RequestedResources
from hpclaunch.scheduler.directive_readers import read_directives


def active(script: str, first_command: int | None = None) -> list[tuple[str, str | None]]:
    """Name and value of each option that counts."""
    found = read_directives(script, [first_command] if first_command else [], frozenset())
    return [(each.name, each.value) for each in found if each.active]


def requested(script: str) -> RequestedResources:
    """The numbers of a script's directives."""
    found = read_directives(script, [], frozenset())
    return found[0].reader.requested(found)
