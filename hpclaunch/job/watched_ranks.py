"""Several roll calls of one job taken together: each rank is stuck, slow, waiting or fine. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from hpclaunch.remote.roll_call import REMEDIES, kind_of_wait, names_of, words_of

PROGRESS = ("stuck", "slow", "waits", "unknown", "fine")
"""What a rank may be, as `stacks_document.RankStand` explains, the worst first."""


def watched(calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the last roll call with the ``progress`` of each rank; suspects are those that are stuck, and
    where none is and none moves, those of the last roll call."""
    last, reports = dict(calls[-1]), []
    for one in last["by_rank"]:
        seen = [other for call in calls for other in call["by_rank"] if other["rank"] == one["rank"]]
        slow = 2 * sum(_waited_for(one["rank"], call) for call in calls) > len(calls)
        progress = _progress(seen, slow=slow)
        reports.append({**one, "progress": progress})
    stuck = [one for one in reports if one["progress"] == "stuck"]
    moving = any(one["progress"] in ("slow", "fine") for one in reports)
    if stuck or moving:
        reports = [{**one, "suspect": one["progress"] == "stuck"} for one in reports]
    last["kind"] = _kind(last["kind"], stuck, moving=moving)
    suspects = [one["rank"] for one in reports if one["suspect"]]
    finding = _finding(reports, len(calls))
    more = {"remedy": REMEDIES.get(last["kind"]), "suspects": suspects, "finding": finding}
    return {**last, "by_rank": reports, **more}


def _kind(of_last: str, stuck: list[dict[str, Any]], *, moving: bool) -> str:
    """Return the kind of wait of the ranks that are stuck; without one that of the last roll call."""
    if not stuck or of_last == "missing":
        return "moving" if moving and not stuck else of_last
    return "stopped" if any(one["state"] in ("T", "t") for one in stuck) else kind_of_wait(stuck)


def _progress(seen: Sequence[Mapping[str, Any]], *, slow: bool) -> str:
    places = {(one["what"], one["number"], one["path"], one["at"]) for one in seen}
    if len(places) > 1 or any(one["moved"] for one in seen):
        return "slow" if slow else "fine"
    if all(one["collective"] for one in seen):
        return "waits"
    return "stuck" if any(one["at"] for one in seen) else "unknown"


def _waited_for(rank: int, call: Mapping[str, Any]) -> bool:
    """Tell whether a rank was in no collective while most other ranks were in one."""
    others = [one["collective"] for one in call["by_rank"] if one["rank"] != rank]
    outside = any(one["rank"] == rank and not one["collective"] for one in call["by_rank"])
    return outside and 2 * sum(others) > len(others)


def _finding(reports: Sequence[dict[str, Any]], looks: int) -> str:
    parts = []
    for progress in PROGRESS:
        group = [one for one in reports if one["progress"] == progress]
        if group:
            parts.append(f"{progress}: {names_of(group)}, now {words_of(group[0])}")
    return "; ".join([f"{looks} looks", *parts]) if parts else "no rank of the job can be seen on its nodes"
