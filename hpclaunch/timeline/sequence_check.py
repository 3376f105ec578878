"""Collectives that do not match between ranks, from the numbers of flight recorders."""

from collections import Counter
from collections.abc import Mapping

from hpclaunch.timeline.rank_trace import RankTrace

_MOST = 10
"""Differences that are named."""


def sequence_notes(traces: Mapping[int, RankTrace]) -> list[str]:
    """Return a sentence for each collective that is not the same on all ranks, and for ranks that are
    behind."""
    groups: dict[str, dict[int, dict[int, str]]] = {}
    for rank, trace in traces.items():
        for group, sequence in trace.sequence.items():
            groups.setdefault(group, {})[rank] = sequence
    notes: list[str] = []
    for group, by_rank in sorted(groups.items()):
        if len(by_rank) > 1:
            notes += _differences(group, by_rank) or _behind(group, by_rank)
    return notes[:_MOST]


def _differences(group: str, by_rank: Mapping[int, Mapping[int, str]]) -> list[str]:
    """Return the first number at which the ranks called different collectives."""
    for number in sorted({number for sequence in by_rank.values() for number in sequence}):
        called = {rank: sequence[number] for rank, sequence in by_rank.items() if number in sequence}
        if len(set(called.values())) > 1:
            usual, _ = Counter(called.values()).most_common(1)[0]
            wrong = [
                f"rank {rank} in {what} #{number}" for rank, what in sorted(called.items()) if what != usual
            ]
            return [
                f"collectives do not match in process group {group}: {', '.join(wrong[:4])}, other ranks in "
                f"{usual} #{number}"
            ]
    return []


def _behind(group: str, by_rank: Mapping[int, Mapping[int, str]]) -> list[str]:
    """Return which ranks have not called what other ranks have."""
    last = {rank: max(sequence) for rank, sequence in by_rank.items() if sequence}
    newest = max(last.values())
    behind = sorted(rank for rank, number in last.items() if number < newest)
    if not behind:
        return []
    ahead = next(rank for rank, number in last.items() if number == newest)
    names = ", ".join(f"{rank} (#{last[rank]})" for rank in behind[:8])
    return [
        f"process group {group}: rank {names} ended before {by_rank[ahead][newest]} #{newest}, which other "
        f"ranks called"
    ]
