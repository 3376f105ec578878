"""What a report says to ask for next time."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hpclaunch.usage.next_request import _cores, _crowded, _cut_short, _held_back, _memory, _nodes, _time
from hpclaunch.usage.report_documents import GpuUse, JobRun, JobTimes, NextRequest, NodeUse, RankUse
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
        ([rank(0, 1, 0.5, 0.8)], None, "of 1 that it was bound to (mean 0.5); a rank has one at least"),
        ([rank(0, 1, 0.9, 0.97)], None, "it used all, so more may help"),
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


def test_ranks_that_waited_for_cpus_of_others_are_no_measure_of_cores() -> None:
    """Two workers that compute all the time, on two CPUs where twenty other processes compute, too."""
    own = [rank(0, 2, 0.25, 0.25)]
    full = node("n1", cpus=2, cpus_busy=2.0)
    why = _crowded([full], own)
    assert why == "processes of others kept 1.8 of 2 CPUs of n1 busy: alone, ranks may keep more busy"
    assert _held_back(_cores(own), why).ask is None
    assert _crowded([node("n1", cpus=2, cpus_busy=1.5)], own) is None, "a CPU was idle at times"
    assert _crowded([full], [rank(0, 2, 1.9, 2.0)]) is None, "its own ranks"
    assert _crowded([full], [rank(0, 2, None, None)]) is None
    assert _crowded([node("n1", cpus=2, cpus_busy=None)], own) is None


def times(wall_s: float | None = 1000.0, limit_s: int | None = 3600, **more: Any) -> JobTimes:
    known = dict.fromkeys(
        ("submitted", "started", "ended", "queue_s", "start_up_s", "run_s", "between_runs_s")
    )
    lost = dict.fromkeys(("lost", "lost_steps", "lost_s"))
    facts: dict[str, Any] = {
        **known,
        **lost,
        "wall_s": wall_s,
        "limit_s": limit_s,
        "restarts": 0,
        "runs": (),
        **more,
    }
    return JobTimes(**facts)


def test_time_is_what_it_took_and_a_quarter_in_steps_of_five_minutes() -> None:
    found = _time("done", times(), None)
    assert (found.ask, found.option) == ("00:25:00", "--time 00:25:00"), "1,250 s are more than 20 minutes"
    assert "it ran 00:16:40 of 01:00:00; x 1.25, as runs differ, = 00:20:50" in found.text
    assert _time("done", times(960.0), None).ask == "00:20:00"
    assert _time("done", times(3600.0), None).ask == "01:15:00", (
        "a job that is done was not ended at its limit"
    )
    assert "it ran 00:16:40; x" in _time("done", times(limit_s=None), None).text
    assert _time("done", times(None), None).text == "how long it ran is not known"
    runs = (JobRun(index=None, start=0, end=300), JobRun(index=None, start=400, end=700))
    again = _time("done", times(run_s=600.0, restarts=1, runs=runs), None)
    assert (again.ask, "it ran 00:10:00 in 2 runs of 01:00:00 each" in again.text) == ("00:15:00", True)
    assert _time("done", times(run_s=None, restarts=1), None).ask == "00:25:00"


def test_time_of_a_job_that_did_not_end_well_is_not_guessed() -> None:
    for state, wall_s, cause, said in (
        ("failed", 3528.0, None, "was ended at its limit"),  # 98 %
        ("failed", 3527.0, None, "; it failed, so how long"),
        ("failed", 100.0, "out of host memory", "; it failed (out of host memory), so"),
        ("cancelled", 100.0, None, "; it is cancelled, so"),
        ("running", 100.0, None, "; it is running, so"),
    ):
        early = _cut_short(state, times(wall_s), cause)  # type: ignore[arg-type]
        found = _time(state, times(wall_s), early)  # type: ignore[arg-type]
        assert (found.ask, said in found.text) == (None, True), (state, wall_s)
    assert _cut_short("failed", times(9999.0, None), None) == "it failed"


def test_a_run_that_was_cut_short_is_no_measure_of_a_whole_one() -> None:
    """Its ranks may have died in their imports, or have been looked at there."""
    found = _memory([node("n1", memory_peak=5 << 30)], None, None, None)
    held = _held_back(found, "it is running: a whole run may need more")
    assert (held.ask, held.option) == (None, None)
    assert held.text == f"{found.text}; it is running: a whole run may need more"
    assert _held_back(found, _cut_short("done", times(), None)) is found
    assert _held_back(found, _cut_short("failed", times(3600.0), None)) is found, "it came to its limit"
    silent = _memory([], None, None, None)
    assert _held_back(silent, "it failed") is silent


def node(name: str, **more: Any) -> NodeUse:
    facts: dict[str, Any] = {"index": None, "looks": 9, "cpus": 8, "cpus_busy": 1.0, "memory_peak": None}
    facts |= {"memory_source": None, "memory_of": None, "gpus": (), "energy": ()}
    return NodeUse(node=name, **{**facts, **more})


def gpu(busy: float | None) -> GpuUse:
    return GpuUse(name="0", ranks=(), busy=busy, memory_peak=None, memory_of=None, power_w=None, source="")


def test_memory_is_the_largest_peak_of_a_node_and_a_fifth_in_whole_gibibytes() -> None:
    nodes = [
        node("n1", memory_peak=5 << 30),
        node("n2", memory_peak=10 << 30, memory_of=64 << 30),
        node("n3"),
    ]
    found = _memory(nodes, None, 99 << 30, "failed")
    assert found.ask == "12G"
    assert "most on n2: 10" in found.text
    assert "64" in found.text
    assert "(all its ranks at a look, what they share in each)" in found.text
    assert _memory([node("n1", memory_peak=(10 << 30) + 1)], None, None, None).ask == "13G"
    late = _memory(nodes, 13 << 30, None, None)
    assert (late.ask, "13 GiB of the largest task alone" in late.text) == ("16G", True), (
        "it grew after the last look"
    )
    assert _memory(nodes, 9 << 30, None, None) == found
    own = _memory([node("n1", memory_peak=1, memory_source="cgroup")], None, None, None)
    assert (own.ask, "(the job's)" in own.text) == ("1G", True)
    accounted = _memory([node("n1")], 1 << 30, 5 << 30, None)
    assert (accounted.ask, "on its one node, by the scheduler" in accounted.text) == ("6G", True)
    assert _memory(nodes, None, None, "out of host memory").ask is None


def test_memory_that_is_not_known_is_said_with_what_is() -> None:
    assert _memory([], None, None, None).text == "the job's peak on a node is not known"
    assert _memory([node("n1")], 1 << 30, None, None).text.startswith(
        "the job's peak on a node is not known: its ranks were looked at once only, as they started; "
    )


def test_nodes_whose_ranks_and_gpus_did_nothing_are_named() -> None:
    def nodes(*gpus: float | None, busy: float = 0.04) -> NextRequest:
        uses = [node("n1"), node("n2", gpus=tuple(map(gpu, gpus)))]
        return _nodes(uses, [rank(0, 4, 3.0, 3.0), replace(rank(1, 4, busy, busy), node="n2")])

    idle = nodes()
    assert (idle.ask, idle.option) == ("1", "--nodes 1")
    assert idle.text == (
        "1 node did nothing (its ranks kept below 0.05 CPUs and 1 % of its GPUs busy): n2; 1 worked"
    )
    assert nodes(0.9, None).ask == "1"
    worked = nodes(busy=0.05)
    assert worked.ask is None
    assert worked.text.startswith(
        "as now: each node worked, the ranks of n2 kept the least busy, 0.1 of 8 CPUs;"
    )
    gpus = nodes(1.0, 50.0, None)
    assert (gpus.ask, "0.0 of 8 CPUs, GPUs 26 % on average" in gpus.text) == (None, True)
    twice = _nodes([replace(node("n1"), index=at) for at in (1, 2)], [rank(0, 4, 0.0, 0.0)])
    assert twice.text.startswith("1 node did nothing"), "two jobs of an array on one node"
    only = _nodes([node("n1")], [rank(0, 4, 0.0, 0.0)])
    assert (only.ask, only.option) == (None, None), "a job needs a node"
    assert only.text.endswith("n1; none worked")
    assert (
        _nodes([node("n1")], [rank(0, 4, None, None)]).text
        == "how busy the ranks kept the nodes is not known"
    )
    two = _nodes([node("n1")], [rank(0, 4, 0.03, None), rank(1, 4, 0.03, None)])
    assert two.text.startswith("as now: its ranks kept 0.1 of 8 CPUs of n1 busy;"), "together above the limit"
