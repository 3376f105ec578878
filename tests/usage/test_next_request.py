"""What a report says to ask for next time."""

from __future__ import annotations

from hpclaunch.usage.next_request import _cores
from hpclaunch.usage.report_documents import RankUse
from tests.in_one_test import in_one_test


def rank(number: int, bound: int | None, busy: float | None, most: float | None) -> RankUse:
    return RankUse(
        rank=number,
        index=None,
        node="n1",
        cpus_bound=bound,
        cpus_busy=busy,
        cpus_most=most,
        memory_peak=None,
        gpu_busy=None,
        waiting_ms=None,
    )


@in_one_test(
    "ranks, ask, said",
    [
        ([rank(0, 4, 2.0, 3.7)], None, "it used all, so more may help"),
        ([rank(0, 4, 2.0, 3.6)], None, "fewer are too few"),
        ([rank(0, 4, 2.0, 3.3)], None, "fewer are too few"),
        ([rank(0, 4, 2.0, 3.04)], "3", "rank 0 kept the most CPUs busy: 3.0 of 4 that it was bound to"),
        ([rank(0, None, 0.0, 0.0)], "1", "rank 0 kept the most CPUs busy: 0.0 (mean 0.0)"),
        ([rank(0, 8, 2.5, None), rank(1, 8, 0.5, 2.0)], "3", "rank 0 kept the most CPUs busy: 2.5"),
        ([rank(0, 8, None, None)], None, ""),
    ],
)
def test_cores_follow_from_the_busiest_rank(ranks: list[RankUse], ask: str | None, said: str) -> None:
    found = _cores(ranks)
    assert (found.ask, said in found.text) == (ask, True)
    assert found.option == (f"--cpus-per-task {ask}" if ask else None)
