"""Each verdict at its limit: jobs of 20 steps of 100 ms whose columns are given, and the figures by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hpclaunch.site.schema import AllreduceFigure
from hpclaunch.timeline import timeline_verdicts as limits
from hpclaunch.timeline.job_timeline import JobTimeline, Place
from hpclaunch.timeline.late_ranks import Lateness
from hpclaunch.timeline.rank_trace import COLUMNS, Collective, RankSteps, RankTrace
from hpclaunch.timeline.timeline_verdicts import floor_ms, nearest_figure, sequence_notes, shown_ms, verdicts
from tests.in_one_test import in_one_test

STEPS = 20
Column = float | Sequence[float]


def trace(rank: int = 0, form: str = "kineto", **more: Any) -> RankTrace:
    return RankTrace(rank, form, RankSteps(), **more)


def made(
    traces: Sequence[RankTrace], ranks: int | None = None, first: int = 0, **columns: Column
) -> JobTimeline:
    """A job whose ranks all have the same columns, in milliseconds; of what is not named: 0."""
    values = {"time": 100.0, **columns}
    full = {
        name: [float(value)] * STEPS if isinstance(value, int | float) else list(value)
        for name, value in ((name, values.get(name, 0.0)) for name in COLUMNS)
    }
    return JobTimeline(
        files=(),
        traces={one.rank: one for one in traces},
        ranks=ranks or len(traces),
        steps=STEPS,
        first=first,
        times=tuple([400.0] * first + full["time"]),
        columns={one.rank: full for one in traces},
        waits={},
        begins_within=False,
    )


def some(count: int, high: float, low: float = 0.0) -> list[float]:
    """So many high steps, then low ones."""
    return [high] * count + [low] * (STEPS - count)


def kinds(job: JobTimeline) -> list[str]:
    return [verdict.kind for verdict in verdicts(job, {})]


@in_one_test(
    "time, form, cycle, floor",
    [
        (100.0, "kineto", None, 5.0),  # 5 % of a step
        (10.0, "kineto", None, 2.0),
        (10.0, "horovod", None, 2.0),  # two cycles of 1 ms, Horovod's default
        (10.0, "horovod", 4.0, 8.0),
        (10.0, "horovod", 20.0, 10.0),  # of cycles longer than five times the default no more than that
        (400.0, "horovod", 4.0, 20.0),
    ],
)
def test_what_is_worth_a_verdict(time: float, form: str, cycle: float | None, floor: float) -> None:
    assert floor_ms(made([trace(form=form, cycle_ms=cycle)], time=time)) == floor


def test_times_are_shown_with_three_digits_and_long_ones_in_seconds() -> None:
    shown = {None: "-", 0.25: "0.25 ms", 99.94: "99.9 ms", 100.0: "100 ms", 9_999.0: "9999 ms"}
    assert {time: shown_ms(time) for time in shown} == shown
    assert (shown_ms(10_000.0), shown_ms(83_250.0)) == ("10.0 s", "83.2 s")


def test_input_is_a_cause_above_fifteen_percent_of_a_quarter_of_the_steps() -> None:
    assert kinds(made([trace()], input=some(5, 16.0))) == ["input"]
    assert kinds(made([trace()], input=some(4, 16.0))) == ["none"]
    assert kinds(made([trace()], input=some(5, 15.0))) == ["none"]
    assert kinds(made([trace(sees_input=False)], input=some(5, 16.0))) == ["none"]
    (found,) = verdicts(made([trace(), trace(1)], input=some(10, 40.0)), {})
    assert (found.late_ms, found.share_of_steps) == (40.0, 0.5)
    assert "every rank waits for its data in 10 of 20 steps, 40 ms of a step of 100 ms" in found.evidence
    assert "the rank waits" in verdicts(made([trace()], input=40.0), {})[0].evidence


def test_tensors_are_small_up_to_sixteen_kib_and_from_fifty_per_step() -> None:
    def small(tensors: int, each: float, spent: float) -> bool:
        sizes: dict[str, Any] = {"tensors": float(tensors), "bytes": tensors * each, "messages": 2.0}
        return "small-tensors" in kinds(made([trace()], moving=spent, **sizes))

    assert small(50, 16 << 10, 20.0)
    assert not small(49, 16 << 10, 20.0)
    assert not small(50, (16 << 10) + 1, 20.0)
    assert not small(50, 0, 20.0), "their size is not known"
    assert not small(50, 16 << 10, 19.0), "of a step 20 % at least"
    job = made([trace()], moving=10.0, queueing=10.0, copying=5.0, tensors=100.0, bytes=1e5, messages=4.0)
    (found,) = verdicts(job, {})
    assert found.evidence == (
        "100 tensors per step of 1000 bytes on average, in 4 messages: 25 % of the step is spent on 100 kB"
    )
    assert (found.late_ms, "bucket_cap_mb of DDP" in found.remedy) == (25.0, True)
    job.traces[0].collectives.kinds["allreduce"] = Collective(count=3, unknown=1)
    assert kinds(job) == ["none"]


def test_tensors_one_after_the_other_are_named_from_ten_per_step_and_four_of_five() -> None:
    def serial(tensors: int, alone: int, part: float, **more: Any) -> bool:
        counts: dict[str, Any] = {"tensors": float(tensors), "requests": float(alone), "bytes": 1e9}
        job = made([trace(form="horovod", sees_computing=False, **more)], 2, negotiating=part, **counts)
        return "negotiation" in kinds(job)

    assert serial(10, 8, 20.0)
    assert not serial(9, 9, 20.0)
    assert not serial(10, 7, 20.0)
    assert not serial(10, 8, 19.0)
    counts: dict[str, Any] = {"tensors": 20.0, "requests": 20.0, "bytes": 1e9, "negotiating": 40.0}
    assert kinds(made([trace()], **counts)) == ["none"], "not Horovod"
    found = verdicts(made([trace(form="horovod", sees_computing=False)], 2, **counts), {})[0]
    assert found.evidence.startswith("20 of 20 tensors per step are requested only after the one before")
    assert (found.late_ms, "negotiating takes 40 % of the step" in found.evidence) == (40.0, True)


def test_idle_is_above_a_quarter_of_half_of_the_steps() -> None:
    assert kinds(made([trace()], rest=some(10, 26.0))) == ["idle"]
    assert kinds(made([trace()], rest=some(9, 26.0))) == ["none"]
    assert kinds(made([trace()], rest=some(20, 25.0))) == ["none"]
    (found,) = verdicts(made([trace()], rest=some(10, 40.0)), {})
    assert found.evidence == "in 10 of 20 steps nothing is executed for 40 ms in a step, on every rank"
    assert (found.late_ms, found.share_of_steps) == (40.0, 0.5)


def test_a_pause_takes_more_than_three_steps_and_is_mostly_rest() -> None:
    """The trace has no computing, so that a step of 100 ms has a rest of 90 ms."""

    def paused(count: int, time: float, rest: float) -> list[str]:
        times: dict[str, Any] = {"time": some(count, time, 100.0), "rest": some(count, rest, 90.0)}
        return kinds(made([trace(form="runner", sees_computing=False, sees_input=False)], **times))

    assert paused(3, 310.0, 300.0) == ["idle"]
    assert paused(2, 310.0, 300.0) == ["none"], "fewer than three"
    assert paused(3, 300.0, 290.0) == ["none"], "not longer than three steps"
    assert paused(3, 310.0, 245.0) == ["none"], "155 ms more than usual: not more than half of it"
    job = made(
        [trace(form="runner", sees_computing=False, sees_input=False)],
        time=some(4, 500.0, 100.0),
        rest=some(4, 490.0, 90.0),
    )
    (found,) = verdicts(job, {})
    assert found.evidence == (
        "in 4 of 20 steps nothing is communicated for 400 ms more than usual between two steps"
    )


def figure(message: int, **more: Any) -> AllreduceFigure:
    return AllreduceFigure(nodes=2, gpus=8, message_bytes=message, bus_gb_s=100.0, **more)


def test_a_bandwidth_is_compared_with_messages_up_to_four_times_as_large() -> None:
    """Two ranks, so that the bus bandwidth is the bytes by the time: 1 MB in 20 us is 50 GB/s."""

    def slow(size: int, seconds: float, *figures: AllreduceFigure) -> list[Any]:
        job = made([trace(), trace(1)], moving=40.0)
        for one in job.traces.values():
            one.collectives.kinds["allreduce"] = Collective(1, size, messages=1, seconds=seconds)
        return [found for found in verdicts(job, {}, figures) if found.kind == "bandwidth"]

    assert slow(10**6, 20e-6) == [], "the site gives none"
    (found,) = slow(10**6, 20e-6, figure(4 * 10**6))
    assert (found.late_ms, "bus bandwidth of 50 GB/s" in found.evidence) == (20.0, True)
    assert "plugin" not in found.evidence
    assert slow(10**6, 20e-6, figure(4 * 10**6 + 4)) == []
    assert slow(10**6, 19e-6, figure(10**6)) == [], "more than half of the site's"
    (found,) = slow(10**6, 20e-6, figure(10**6, bus_gb_s_without_plugin=26.0))
    assert "and 26 GB/s where the fabric's plugin is missing" in found.evidence
    (found,) = slow(10**6, 20e-6, figure(10**6, bus_gb_s_without_plugin=24.0))
    assert "plugin" not in found.evidence, "not less than twice what it would be without"
    figures = [figure(10**6), figure(10**8)]
    assert [nearest_figure(figures, size).message_bytes for size in (9 * 10**6, 11 * 10**6)] == [10**6, 10**8]


def test_a_start_counts_above_five_seconds_a_tenth_of_the_record_and_ten_steps() -> None:
    def start(begins_ms: float, lasts_ms: float, time: float = 100.0, first: int = 0) -> list[str]:
        one = trace(form="runner", sees_computing=False, sees_input=False)
        one.steps.columns["start"].append(begins_ms * 1e3)
        one.steps.last = lasts_ms * 1e3
        return kinds(made([one], first=first, time=time))

    assert start(5_000, 20_000) == ["start"]
    assert start(4_999, 20_000) == ["none"]
    assert start(5_000, 50_000) == ["start"]
    assert start(5_000, 50_100) == ["none"], "less than a tenth"
    assert start(6_000, 20_000, time=600.0) == ["start"]
    assert start(5_990, 20_000, time=600.0) == ["none"], "less than ten steps"
    assert start(4_400, 20_000, first=2) == ["start"], "two first steps of 400 ms take 600 ms too long"
    assert start(4_399, 20_000, first=2) == ["none"]


def test_a_late_rank_gets_the_phase_that_explains_half_of_its_lateness() -> None:
    job = made([trace(), trace(1), trace(2)])
    late = Lateness(1, 20, 20, 40.0, 1.0)
    mine = dict(job.columns[1])
    job = JobTimeline(**{**vars(job), "columns": {**job.columns, 1: mine}})
    for phase, text in (
        ("input", "waiting for its input"),
        ("computing", "computing"),
        ("rest", "outside of"),
    ):
        for value, said in ((20.0, True), (19.0, False)):
            mine.update(
                dict.fromkeys(("input", "computing", "rest"), [0.0] * STEPS), **{phase: [value] * STEPS}
            )
            found = limits._straggler(job, late, {1: Place("n7", "3")})
            assert (f"; 20 ms of it {text}" in found.evidence) == said
            assert ("check its binding" in found.remedy) != said
    assert (found.rank, found.node, found.gpu) == (1, "n7", "3")
    assert found.evidence.startswith("rank 1 (n7, GPU 3) comes last in 20 of 20 steps, 40 ms after")
    grows = Lateness(1, 20, 15, 40.0, 1.0, (30.0, 50.0), grows_ms=(10.0, 60.0))
    assert (
        "15 of 20 steps, 40 ms (95 % of the bootstrap: 30 ms to 50 ms), growing from 10 ms to 60 ms, after"
    ) in limits._straggler(job, grows, {}).evidence
    every = limits._straggler(job, Lateness(1, 20, 5, 40.0, 1.0, every=4), {})
    assert "5 of 20 steps, 40 ms, in each 4th step" in every.evidence
    assert (every.share_of_steps, every.late_ms, every.noise_ms) == (0.25, 40.0, 1.0)


def test_what_a_job_without_a_finding_says_of_its_ranks() -> None:
    horovod: dict[str, Any] = {"form": "horovod", "sees_computing": False, "sees_input": False}
    for traces, ranks, said in (
        ([trace(**horovod)], 2, "when each of them asks is hidden by Horovod's response cache"),
        ([trace(**horovod)], 1, "there is one rank only"),
        ([trace()], 2, "the traces of all ranks are needed"),
        ([trace(), trace(1)], 2, "the traces do not tell how long each rank waits"),
    ):
        (found,) = verdicts(made(traces, ranks), {})
        assert found.kind == "none"
        assert said in found.evidence
    (found,) = verdicts(made([trace()], 2, moving=21.0), {})
    assert "21 % of a step is communication; " in found.evidence
    assert found.remedy == "give the timelines of all ranks: they tell a late rank from a slow network"
    (found,) = verdicts(made([trace()], 2, moving=20.0), {})
    assert ("communication" in found.evidence, found.remedy) == (False, "none needed")
    assert "HOROVOD_CACHE_CAPACITY=0" in verdicts(made([trace(**horovod)], 2), {})[0].remedy


def test_the_ranks_that_others_wait_for_where_profiles_end() -> None:
    def ended(waiting: Sequence[int], ranks: int, failed: int | None = None) -> Any:
        traces = [trace(rank, unfinished=("allreduce",) if rank in waiting else ()) for rank in range(ranks)]
        job = JobTimeline(**{**vars(made(traces)), "failed": failed})
        found = [each for each in verdicts(job, {1: Place("n7")}) if each.kind == "ended"]
        return found[0] if found else None

    assert ended([], 4) is None
    assert (ended([0, 2, 3], 4).rank, ended([0, 2, 3], 4).node) == (1, "n7")
    two = ended([0, 1], 4)
    assert (two.rank, "wait for rank 2, 3 in allreduce" in two.evidence) == (None, True)
    assert ended([0], 3) is None, "more have ended than wait: they ended in another way"
    assert ended([0, 1], 2) is None, "all wait for one another"
    assert ended([], 4, failed=1).rank == 1
    assert "rank 1 failed first" in ended([], 4, failed=1).evidence
    assert "rank 3" in ended([0, 1, 2], 4, failed=1).evidence, "the traces themselves tell"


def test_ranks_at_different_numbers_of_a_flight_recorder_are_named() -> None:
    def notes(*sequences: dict[int, str]) -> list[str]:
        return sequence_notes({rank: trace(rank, sequence={"0": one}) for rank, one in enumerate(sequences)})

    same = {6: "allreduce", 7: "allreduce"}
    assert notes(same) == notes(same, same) == notes(same, {7: "allreduce"}) == []
    assert notes(same, same, {6: "allreduce"}, {5: "barrier", 6: "allreduce"}) == [
        "process group 0: rank 2 (#6), 3 (#6) ended before allreduce #7, which other ranks called"
    ]
    (note,) = notes(same, same, {6: "allreduce", 7: "barrier"})
    assert "rank 2 in barrier #7" in note
    assert "rank 0" not in note


def test_a_trace_of_three_steps_is_judged_and_one_of_two_is_not() -> None:
    short = made([trace(unfinished=("allreduce.w",))])
    for count, kind in (
        (3, "nothing else stands out"),
        (2, "2 steps: too few to judge; the trace ends within"),
    ):
        columns = {0: {name: values[:count] for name, values in short.columns[0].items()}}
        job = JobTimeline(**{**vars(short), "times": short.times[:count], "columns": columns})
        (found,) = verdicts(job, {})
        assert kind in found.evidence
    assert found.remedy == "record at least 4 steps, better 20"


def test_a_message_with_the_floor_of_half_a_step_is_hidden_lateness() -> None:
    """One rank writes, of two; behind Horovod's cache it does not say for whom it waits."""
    one = trace(form="horovod", sees_computing=False, sees_input=False, sees_waiting=True)
    (found,) = verdicts(made([one], 2, negotiating=50.0, rest=50.0), {})
    assert (found.kind, found.rank, found.late_ms) == ("straggler", None, 50.0)
    assert kinds(made([one], 1, negotiating=50.0, rest=50.0)) == ["none"], "no other rank"
    one.sees_waiting = False
    assert kinds(made([one], 2, negotiating=50.0, rest=50.0)) == ["none"]


@pytest.mark.parametrize("rank", [0, 1])
def test_only_the_rank_that_negotiates_is_excused_by_small_tensors(rank: int) -> None:
    traces = [trace(one, "horovod", sees_computing=False, sees_input=False) for one in range(3)]
    job = made(traces, tensors=100.0, bytes=1e5, messages=2.0, negotiating=60.0)
    waits = {one: [0.0 if one == rank else 30.0] * STEPS for one in range(3)}
    found = verdicts(JobTimeline(**{**vars(job), "waits": waits}), {})
    assert [(each.kind, each.rank) for each in found if each.kind == "straggler"] == (
        [("straggler", 1)] if rank else []
    )
    small = next(each for each in found if each.kind == "small-tensors")
    assert ("; rank 0, which negotiates for all ranks, comes 30 ms after" in small.evidence) == (rank == 0)
