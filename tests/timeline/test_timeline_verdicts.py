"""Verdicts on timelines with faults that are known because they were put in."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.site.schema import AllreduceFigure
from hpclaunch.timeline.job_timeline import JobTimeline, combined, shares
from hpclaunch.timeline.read_timeline import read_timeline
from hpclaunch.timeline.timeline_documents import Verdict
from hpclaunch.timeline.timeline_verdicts import verdicts
from tests.how_much import examples
from tests.in_one_test import in_one_test
from tests.timeline.made_timelines import (
    Training,
    always,
    each,
    everywhere,
    heavy,
    horovod,
    kineto,
    normal,
    runner,
)

FORMS: dict[str, Callable[[Training], list[bytes]]] = {
    "horovod": lambda training: [horovod(training, cache=False)],
    "runner": lambda training: [runner(training)],
    "profiler": kineto,
    "updates": lambda training: kineto(training, marked=False, clock_ms=700.0),
}
NOISES = {"normal": normal(0.1), "heavy": heavy}


def job_of(files: list[bytes]) -> JobTimeline:
    return combined([read_timeline(f"rank{rank}.json", [data], rank) for rank, data in enumerate(files)])


def first(files: list[bytes]) -> Verdict:
    return verdicts(job_of(files), {})[0]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(4), deadline=None)
@given(ranks=st.integers(2, 9), seed=st.integers(0, 99), noise=st.sampled_from(sorted(NOISES)))
def test_a_balanced_training_has_no_late_rank(form: str, ranks: int, seed: int, noise: str) -> None:
    training = Training(ranks=ranks, steps=30, tensors=2, noise=NOISES[noise], seed=seed)
    assert [v.kind for v in verdicts(job_of(FORMS[form](training)), {}) if v.kind == "straggler"] == []


def test_behind_the_response_cache_noise_is_not_a_late_rank() -> None:
    """Up to 12 ranks: the last of more with heavy noise keeps the others waiting for half of each step.

    The rules have an error rate (2 of 1,400 such trainings), so that the trainings here are always the same.
    """
    named = [
        (ranks, seed, noise)
        for noise in sorted(NOISES)
        for ranks in (2, 5, 8, 12)
        for seed in range(examples(1))
        if first(
            [horovod(Training(ranks, steps=40, tensors=2, noise=NOISES[noise], seed=seed), cache=True)]
        ).kind
        == "straggler"
    ]
    assert named == []


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(4), deadline=None)
@given(st.data())
def test_a_slow_rank_is_named(form: str, data: st.DataObject) -> None:
    ranks = data.draw(st.integers(2, 9))
    slow, late = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(20, 300))
    training = Training(ranks=ranks, steps=30, tensors=2, seed=late, slow_computing=always(slow, late))
    found = first(FORMS[form](training))
    assert (found.kind, found.rank) == ("straggler", slow)
    assert found.share_of_steps == pytest.approx(1.0, abs=0.1)
    assert found.late_ms == pytest.approx(late, abs=12)


@in_one_test("form", FORMS)
@in_one_test("period, ranks", [(3, 2), (5, 3), (10, 8)])
def test_a_rank_that_is_slow_in_some_steps_is_named_with_their_share(
    form: str, period: int, ranks: int
) -> None:
    fault = each(period, ranks - 1, 80.0)
    training = Training(ranks=ranks, steps=100, tensors=2, noise=normal(0.1), slow_computing=fault)
    found = first(FORMS[form](training))
    assert (found.kind, found.rank) == ("straggler", ranks - 1)
    assert found.share_of_steps == pytest.approx(1 / period, abs=0.03)
    assert found.late_ms == pytest.approx(80, abs=12)


def test_two_slow_ranks_are_both_named_the_slower_first() -> None:
    def fault(rank: int, _: int) -> float:
        return {3: 60.0, 5: 40.0}.get(rank, 0.0)

    job = job_of(kineto(Training(ranks=8, slow_computing=fault)))
    assert [(v.kind, v.rank) for v in verdicts(job, {})][:2] == [("straggler", 3), ("straggler", 5)]


@pytest.mark.parametrize(("fault", "share"), [(always(1, 60.0), 1.0), (each(4, 1, 80.0), 0.25)])
def test_behind_the_response_cache_a_late_rank_has_no_name_and_a_setting_that_shows_it(
    fault: Callable[[int, int], float], share: float
) -> None:
    found = first([horovod(Training(ranks=3, steps=60, slow_computing=fault), cache=True)])
    assert (found.kind, found.rank) == ("straggler", None)
    assert found.share_of_steps == pytest.approx(share, abs=0.05)
    assert "HOROVOD_CACHE_CAPACITY=0" in found.remedy


def test_rank_0_itself_cannot_be_seen_behind_the_cache_and_this_is_said() -> None:
    found = first([horovod(Training(ranks=3, slow_computing=always(0, 60.0)), cache=True)])
    assert found.kind == "none"
    assert "HOROVOD_CACHE_CAPACITY=0" in found.remedy


@pytest.mark.parametrize("form", ["runner", "profiler"])
def test_input_that_is_slow_on_one_rank_makes_it_late_and_on_all_ranks_is_input(form: str) -> None:
    one = first(FORMS[form](Training(slow_input=always(2, 60.0))))
    assert (one.kind, one.rank) == ("straggler", 2)
    assert "its input" in one.evidence
    every = first(FORMS[form](Training(slow_input=everywhere(60.0))))
    assert (every.kind, every.rank) == ("input", None)
    assert every.late_ms == pytest.approx(61, abs=5)


def test_many_small_tensors() -> None:
    training = Training(tensors=200, elements=64, computing_ms=10.0, message_ms=15.0, steps=10)
    found = first([horovod(training, cache=True)])
    assert found.kind == "small-tensors"
    assert "200 tensors per step" in found.evidence
    assert "HOROVOD_CYCLE_TIME" in found.remedy
    few = Training(tensors=20, elements=64, computing_ms=10.0, message_ms=15.0, steps=10)
    assert "small-tensors" not in [v.kind for v in verdicts(job_of([horovod(few, cache=True)]), {})]


def test_tensors_that_are_negotiated_one_after_the_other() -> None:
    training = Training(tensors=20, elements=1 << 20, message_ms=40.0, serial=True)
    found = verdicts(job_of([horovod(training, cache=True)]), {})
    assert "negotiation" in [verdict.kind for verdict in found]


def test_a_bandwidth_far_below_the_sites() -> None:
    site = AllreduceFigure(
        nodes=2, gpus=8, message_bytes=16 << 20, bus_gb_s=100.0, bus_gb_s_without_plugin=2.0
    )
    training = Training(tensors=1, elements=4 << 20, message_ms=12.0)
    job = job_of([horovod(training, cache=True)])
    found = verdicts(job, {}, [site])[0]
    assert found.kind == "bandwidth"
    assert "100 GB/s" in found.evidence
    assert "plugin is missing" in found.evidence
    fast = job_of([horovod(Training(tensors=1, elements=4 << 20, message_ms=0.2), cache=True)])
    assert "bandwidth" not in [verdict.kind for verdict in verdicts(fast, {}, [site])]
    small = job_of([horovod(Training(tensors=1, elements=64), cache=True)])
    assert "bandwidth" not in [verdict.kind for verdict in verdicts(small, {}, [site])]


def test_shares_of_a_step_sum_to_the_whole() -> None:
    for form in FORMS.values():
        job = job_of(form(Training(slow_computing=always(1, 30.0))))
        assert sum(value or 0.0 for value in shares(job).values()) == pytest.approx(1.0, abs=1e-6)
        assert shares(job)["waiting"] == pytest.approx(0.28 if job.sees_computing else 0.38, abs=0.1)


def test_too_few_steps_are_not_judged() -> None:
    found = verdicts(job_of([horovod(Training(steps=2), cache=False)]), {})
    assert [(v.kind, v.rank) for v in found] == [("none", None)]
    assert "too few" in found[0].evidence


def test_a_rank_that_few_steps_do_not_name_is_not_said_to_be_in_time() -> None:
    """By chance one of two ranks comes last in seven of seven steps once in 64 times, in eight in 128."""
    for steps, kind in ((4, "none"), (7, "none"), (8, "straggler")):
        found = first(kineto(Training(ranks=2, steps=steps, slow_computing=always(1, 50.0))))
        assert found.kind == kind, steps
        assert "none is late" not in found.evidence
        if kind == "none":
            assert "2 ranks are compared; rank 1 comes " in found.evidence
            assert "do not tell that from chance" in found.evidence
            assert found.remedy == "record more steps: twice as many, and 20 at least"
    even = first(kineto(Training(ranks=2, steps=8)))
    assert "2 ranks are compared, none is late by more than" in even.evidence
    assert even.remedy == "none needed"


@pytest.mark.slow
def test_a_trace_with_many_kernels_is_the_sum_of_its_steps() -> None:
    """More intervals than are held at once: 400 kernels per step, and collectives at the same time."""
    events: list[dict[str, object]] = []

    def kernel(name: str, start: float, duration: float, thread: int) -> None:
        times = {"ts": start, "dur": duration}
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": thread, **times})

    for step in range(400):
        begin = 21_000.0 * step
        for number in range(400):
            kernel("gemm", begin + 50.5 * number + 20, 30.0, 7)
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 10_000, 9000.0, 20)
        name = "Optimizer.step#SGD.step"
        times = {"ts": begin + 20_300, "dur": 200}
        events.append({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, **times})
    events.reverse()
    data = json.dumps({"traceEvents": events}).encode()
    job = job_of([data])
    assert job.steps == 400
    part = shares(job)
    assert part["computing"] == pytest.approx(400 * 30 / 21_000, rel=0.01)
    assert part["moving"] == pytest.approx(9000 / 21_000 * (1 - 30 / 50.5), rel=0.02)
    assert sum(value or 0.0 for value in part.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("within", [False, True])
def test_a_timeline_that_begins_within_the_run_shows_no_slow_start(within: bool) -> None:
    """The first step at 60 s is late, unless the steps before it were only not recorded."""
    events = json.loads(runner(Training(ranks=2)))
    for event in events:
        event["ts"] = event.get("ts", 0) + 60_000_000
    began = {"start_time_since_epoch_in_micros": 1, **({"steps_before": 10} if within else {})}
    head = {"name": "process_name", "ph": "M", "pid": 0, "args": began}
    kinds = [verdict.kind for verdict in verdicts(job_of([json.dumps([head, *events]).encode()]), {})]
    assert kinds == (["none"] if within else ["start"])


def test_rank_0_that_is_late_because_it_negotiates_many_tensors_is_no_straggler() -> None:
    many = Training(ranks=2, tensors=100, elements=64, message_ms=30.0, slow_computing=always(0, 40.0))
    found = verdicts(job_of([horovod(many, cache=False)]), {})
    assert [verdict.kind for verdict in found] == ["small-tensors"]
    assert "; rank 0, which negotiates for all ranks, comes 4" in found[0].evidence
    other = Training(ranks=2, tensors=100, elements=64, message_ms=30.0, slow_computing=always(1, 40.0))
    kinds = [(v.kind, v.rank) for v in verdicts(job_of([horovod(other, cache=False)]), {})]
    assert ("straggler", 1) in kinds
