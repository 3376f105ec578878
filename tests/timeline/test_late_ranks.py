"""The statistics of late ranks: error rates on equal ranks, exact distributions, and what must be found."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.timeline.job_timeline import combined
from hpclaunch.timeline.late_ranks import _period, _share_test, hidden_lateness, late_ranks, long_ones
from hpclaunch.timeline.read_timeline import read_timeline
from hpclaunch.timeline.timeline_documents import Verdict
from hpclaunch.timeline.timeline_verdicts import verdicts
from tests.how_much import examples
from tests.timeline.made_timelines import Training, horovod, kineto

Delay = Callable[[random.Random], float]
NOISES: dict[str, Delay] = {
    "exponential": lambda draw: draw.expovariate(1 / 10),
    "of a power law": lambda draw: 5 * draw.paretovariate(1.2),
    "with rare long pauses": lambda draw: draw.expovariate(1 / 5) + 300 * (draw.random() < 0.03),
}


def waits(
    draw: random.Random, noise: Delay, late: Callable[[int, int], float], ranks: int = 3, steps: int = 60
) -> dict[int, list[float]]:
    """Return how long each rank waits per step for the last one."""
    rows: list[list[float]] = []
    for step in range(steps):
        ready = [noise(draw) + late(rank, step) for rank in range(ranks)]
        rows.append([max(ready) - each for each in ready])
    return {rank: [row[rank] for row in rows] for rank in range(ranks)}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_equal_ranks_are_named_in_one_file_of_a_hundred_at_most(noise: str) -> None:
    """The rate is 1 %: of 300 files 3; 9 and more would have a probability of 0.4 %."""
    draw = random.Random(noise)
    files = (waits(draw, NOISES[noise], lambda _rank, _step: 0.0, 2 + number % 4) for number in range(300))
    assert sum(bool(late_ranks(each, 2.0)) for each in files) < 9


def test_pauses_are_found_among_noise_of_which_some_is_as_long_as_a_tenth_of_them() -> None:
    found = 0
    for seed in range(40):
        draw = random.Random(seed)
        chosen = draw.sample(range(60), 6)
        pauses = waits(
            draw,
            NOISES["exponential"],
            lambda rank, step, chosen=chosen: 300.0 * (rank == 1 and step in chosen),  # type: ignore[misc]
        )
        found += [(each.rank, each.every) for each in late_ranks(pauses, 2.0)] == [(1, None)]
    assert found >= 38


def test_four_pauses_of_one_rank_of_three_need_equal_distances_or_noise_that_is_far_below() -> None:
    def late(steps: set[int]) -> Callable[[int, int], float]:
        return lambda rank, step: 300.0 * (rank == 1 and step in steps)

    noise = NOISES["exponential"]
    (periodic,) = late_ranks(waits(random.Random(1), noise, late({9, 24, 39, 54})), 2.0)
    assert (periodic.rank, periodic.every, periodic.late_steps) == (1, 15, 4)
    heavy = NOISES["of a power law"]
    assert late_ranks(waits(random.Random(1), heavy, late({4, 30, 39})), 2.0) == []
    (clear,) = late_ranks(waits(random.Random(1), lambda draw: draw.random(), late({4, 20, 39, 47})), 2.0)
    assert (clear.rank, clear.every, clear.late_steps) == (1, None, 4)


def test_pauses_that_meet_ranks_in_turn_name_none() -> None:
    for seed in range(20):
        draw = random.Random(seed)
        who = {step: draw.randrange(3) for step in draw.sample(range(60), 6)}
        if max(list(who.values()).count(rank) for rank in range(3)) < 5:
            files = waits(
                draw,
                NOISES["exponential"],
                lambda rank, step, who=who: 300.0 * (who.get(step) == rank),  # type: ignore[misc]
            )
            assert late_ranks(files, 2.0) == []


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 2)), min_size=1, max_size=7),
    st.integers(0, 2),
)
def test_the_chance_of_a_ranks_part_is_that_of_all_ways_to_give_the_moments_to_ranks(
    moments: list[tuple[int, int]], rank: int
) -> None:
    costs = [cost for cost, _ in moments]
    parts = [round(cost / (sum(costs) / 500)) for cost in costs]
    mine = sum(part for part, (_, whose) in zip(parts, moments, strict=True) if whose == rank)
    every = itertools.product(range(3), repeat=len(parts))
    as_much = [sum(part for part, one in zip(parts, way, strict=True) if one == 0) >= mine for way in every]
    assert _share_test(moments, rank, 3) == pytest.approx(min(1.0, 3 * sum(as_much) / len(as_much)))


@pytest.mark.parametrize("noise", ["exponential", "of a power law"])
def test_a_gap_that_noise_has_is_rarely_one(noise: str) -> None:
    draw = random.Random(noise)
    files = [[NOISES[noise](draw) for _ in range(60)] for _ in range(400)]
    assert sum(long_ones(values)[1] < 0.05 for values in files) <= 30
    far = [*files[0], *(max(files[0]) * 8 + 10 * number for number in range(6))]
    assert long_ones(far)[0] == 6
    assert long_ones(far)[1] < 0.01


def test_steps_at_equal_distances_are_a_period_also_with_one_missing_and_one_more() -> None:
    assert _period(range(7, 60, 8), 60)[0] == 8
    assert _period(range(7, 60, 8), 60)[1] < 1e-5
    assert _period([7, 15, 18, 31, 39, 47, 55], 60)[1] < 0.05
    draw = random.Random(0)
    chances = [_period(sorted(draw.sample(range(60), 5)), 60)[1] for _ in range(400)]
    assert sum(chance < 0.05 for chance in chances) <= 30


def test_a_lateness_without_a_name_is_seen_above_a_trend_and_not_in_the_range_of_equal_ranks() -> None:
    seen = 0
    for seed in range(100):
        draw = random.Random(seed)
        equal = [max(v) - min(v) for v in ([draw.gauss(0, 5) for _ in range(16)] for _ in range(60))]
        seen += hidden_lateness(equal, 2.0, 16, 100.0) is not None
        growing = [2.0 * step + draw.expovariate(1 / 4) for step in range(60)]
        found = hidden_lateness(growing, 2.0, 3, 1000.0)
        assert found is not None
        assert found.grows_ms is not None
    assert seen <= 3


def judged(files: list[bytes]) -> list[Verdict]:
    read = [read_timeline(f"rank{rank}.json", [data], rank) for rank, data in enumerate(files)]
    return [verdict for verdict in verdicts(combined(read), {}) if verdict.kind == "ended"]


@pytest.mark.parametrize(("cache", "rank"), [(False, 2), (True, None)])
def test_a_rank_that_others_wait_for_at_the_end_ended_first(cache: bool, rank: int | None) -> None:
    events = json.loads(horovod(Training(ranks=3, steps=20, tensors=2), cache=cache))
    last = max(event["ts"] for event in events if event.get("name") == "NEGOTIATE_ALLREDUCE")
    first = min(event["ts"] for event in events[-20:] if event.get("name") == "NEGOTIATE_ALLREDUCE")
    kept = [
        event
        for event in events
        if event["ph"] == "M" or event["ts"] < first or event.get("name") in ("NEGOTIATE_ALLREDUCE", "0", "1")
    ]
    (found,) = judged([json.dumps(kept).encode()])
    assert found.rank == rank
    assert last >= first
    assert ("rank 2" if rank else "a rank that is not in the file") in found.evidence
    assert judged([json.dumps(events).encode()]) == []
    barrier = {"ph": "B", "name": "NEGOTIATE_BARRIER", "ts": last + 10**6, "pid": 9}
    named = {"name": "process_name", "ph": "M", "pid": 9, "args": {"name": "barrier.noname"}}
    asked = {"ph": "X", "name": "0", "ts": last + 10**6, "pid": 9, "dur": 0}
    assert judged([json.dumps([*events, named, barrier, asked]).encode()]) == []


def test_the_rank_without_a_trace_or_without_the_last_collective_ended_first() -> None:
    files = kineto(Training(ranks=3, steps=20))
    died = [json.loads(data) for data in files]
    for trace in died:
        while not trace["traceEvents"][-1]["name"].startswith("gloo"):
            trace["traceEvents"].pop()
    waiting = [json.dumps(trace).encode() for trace in died]
    assert [each.rank for each in judged([*waiting[:2], files[2]])] == [2]
    assert [each.rank for each in judged(waiting[:2])] == [2]
    assert judged(waiting) == judged(files) == []
