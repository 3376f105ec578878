"""The nodes' reports before the ranks started: the lines that a preflight writes to the job's folder."""

from collections.abc import Iterable
from typing import Literal

import msgspec

PREFIX = "hpclaunch-preflight "
_HARDWARE = ("cpus", "gpus", "clock")


class NodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check of the preflight on one node."""

    host: str
    check: str
    """cpus, gpus, fabric-plugin, clock, space, answer, or the module that was imported."""
    status: Literal["have", "missing", "unknown"]
    evidence: str


def read_preflight(log: str) -> tuple[NodeVerdict, ...]:
    """Return the reports, the last one of each check of a node; other lines are ignored."""
    found: dict[tuple[str, str], NodeVerdict] = {}
    for line in log.splitlines():
        _, mark, text = line.partition(PREFIX)
        if not mark:
            continue
        try:
            said = msgspec.json.decode(text, type=NodeVerdict)
        except msgspec.DecodeError:
            continue
        found[said.host, said.check] = said
    return tuple(found.values())


def failed_nodes(said: Iterable[NodeVerdict]) -> dict[str, str]:
    """Return node -> what is wrong with it. What all of them lack makes none of them bad.

    A node that is alone is bad only where the check is about its hardware.
    """
    said = tuple(said)
    answered = {each.host for each in said if each.check != "answer"}
    missing: dict[str, set[str]] = {}
    for each in said:
        if each.status == "missing":
            missing.setdefault(each.check, set()).add(each.host)
    wrong: dict[str, list[str]] = {}
    for each in said:
        alike = len(answered) > 1 or each.check not in _HARDWARE
        everywhere = alike and missing.get(each.check) == answered
        if each.status == "missing" and not everywhere:
            wrong.setdefault(each.host, []).append(f"{each.check}: {each.evidence}")
    return {host: "; ".join(words) for host, words in wrong.items()}
