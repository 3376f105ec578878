"""What the nodes said before the ranks started: the lines that a preflight leaves in the log."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hpclaunch.job.model import NodeVerdict

PREFIX = "hpclaunch-preflight "


def read_preflight(log: str) -> tuple[NodeVerdict, ...]:
    """Return what the nodes said, of each check of a node the last word; other lines are passed over."""
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
    """Return node -> what is wrong with it."""
    wrong: dict[str, list[str]] = {}
    for each in said:
        if each.status == "missing":
            wrong.setdefault(each.host, []).append(f"{each.check}: {each.evidence}")
    return {host: "; ".join(words) for host, words in wrong.items()}
