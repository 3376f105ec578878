"""When a study stops, and which points are comparable: without any job."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.scaling.study_report import as_text
from hpclaunch.study.point_measure import known_elapsed_s, pop_factors, read_metric, steady
from hpclaunch.study.run_study import PointJob, why_stop
from hpclaunch.study.study_file import (
    StudyFile,
    StudyPoint,
    next_point,
    planned_points,
    report_of,
    with_more_points,
)

ALIKE = {"profile": "p", "versions": "v"}


def point(size: int, seconds: float | None = None, **more: Any) -> StudyPoint:
    state = "planned" if seconds is None else "measured"
    facts: dict[str, Any] = {"size": size, "repeat": 1, "nodes": size, "ranks": size, "fingerprint": ALIKE}
    return StudyPoint(**{**facts, "state": state, "seconds": seconds, "measured_by": "x", **more})


def study(*points: StudyPoint, **more: Any) -> StudyFile:
    facts: dict[str, Any] = {"settings": {}, "is_program": True, "workdir": "/", "by": "nodes"}
    return StudyFile(name="s", token="t", kind="strong", points=points, **{**facts, **more})


def job(most_cost: float | None, nodes: int = 1, walltime_s: int | None = None) -> PointJob:
    plan = SimpleNamespace(nodes=nodes, limit_s=walltime_s)
    return PointJob(job=cast(Any, None), plan=cast(Any, plan), script="", most_cost=most_cost)


def test_sizes_take_turns() -> None:
    """A machine that becomes slower does so for all sizes."""
    order = [(one.size, one.repeat) for one in planned_points((4, 1, 2), 2)]
    assert order == [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (4, 2)]
    more = with_more_points(study(*planned_points((1, 4), 2)), planned_points((2,), 2))
    assert [(one.size, one.repeat) for one in more.points] == order
    failed = point(1, state="failed", repeat=1)
    document, _ = report_of(study(failed, point(2, 5), point(1, 10, repeat=2)))
    assert [one.size for one in document.points] == [1, 2]


def test_repeats_are_added_until_the_interval_is_narrow() -> None:
    """One size is known to 1 %, the other has repeats of 10, 11 and 12 s: it is next."""
    exact = [point(1, 10 + n / 100, repeat=n + 1) for n in range(3)]
    spread = [point(2, 10 + n, repeat=n + 1) for n in range(3)]
    grown, one = next_point(study(*exact, *spread, until=0.05))
    assert one is not None
    assert (one.size, one.repeat, len(grown.points)) == (2, 4, 7)
    assert next_point(study(*exact, *spread)) == (study(*exact, *spread), None)
    assert next_point(study(*exact, until=0.05))[1] is None
    assert next_point(study(*exact[:2], until=0.05))[1] is not None  # two that agree by chance
    planned = point(4, repeat=1)
    assert next_point(study(*exact, *spread, planned, until=0.05))[1] == planned
    many = [point(2, 10 + n % 3, repeat=n + 1) for n in range(30)]
    assert next_point(study(*many, until=0.001))[1] is None


def test_a_study_stops_where_its_node_hours_would_be_passed() -> None:
    four = point(4, repeat=2)
    known = study(point(1, 10, node_hours=0.5), point(4, 3, node_hours=1), four, node_hours=2)
    why = "1.5 node-hours spent and the job may take 1; the limit is 2"
    assert why_stop(known, four, job(None)) == why
    assert why_stop(study(*known.points, node_hours=2.6), four, job(None)) is None
    new = study(point(1, 10, node_hours=0.5), point(4), node_hours=2)
    assert why_stop(new, new.points[1], job(None, 4, 1200)) is None
    assert "may take 2" in str(why_stop(new, new.points[1], job(None, 4, 1800)))
    assert why_stop(new, new.points[1], job(None, 4)) is None  # as long as the longest so far
    short = study(*new.points, node_hours=0.9)
    assert "may take 0.5" in str(why_stop(short, new.points[1], job(None, 4)))


def test_figures_of_the_warm_up_do_not_count() -> None:
    """After the first, which never counts: a clock that becomes slower, then steady steps with an outlier."""
    warm, rest = [5, 40, 60, 90], [100, 101, 99, 30, 100, 102, 98]
    log = "\n".join(f"images/s: {one}" for one in (*warm, *rest))
    assert read_metric(r"images/s: (\S+)", log) == 100
    assert steady([40.0, 60, 100, 101, 99, 100]) == [100, 101, 99, 100]
    assert steady([100.0, 101, 99, 100]) == [100, 101, 99, 100]
    rising = [float(n) for n in range(1, 9)]
    assert len(steady(rising)) >= 4


def test_a_loss_that_the_spread_of_the_repeats_explains_is_no_collapse() -> None:
    """0.0089 and 0.0370 s on one rank, 0.054 s on two: no verdict. Steady repeats: a collapse."""
    noisy = [point(1, one, repeat=n) for n, one in enumerate((0.0089, 0.0370), 1)]
    slow = [point(2, one, repeat=n) for n, one in enumerate((0.0537, 0.0560), 1)]
    document, _ = report_of(study(*noisy, *slow))
    (remark,) = document.points[1].remarks
    assert remark.startswith("not told apart: efficiency 21% of that of 1")
    assert document.points[1].plus_minus is not None
    calm = [point(1, one, repeat=n) for n, one in enumerate((0.0228, 0.0230), 1)]
    document, _ = report_of(study(*calm, *slow))
    assert document.points[1].remarks[0].startswith("collapse: 2.40 times the time with 1 rank")
    assert document.points[0].step_s.plus_minus == pytest.approx(6.31 / 2 * math.log(230 / 228), rel=0.01)


def test_a_study_stops_where_its_budget_would_be_passed() -> None:
    four = point(4)
    known = study(point(1, 10, cost=0.5), point(2, 5, cost=0.6), four, budget=2)
    assert why_stop(known, four, job(0.9)) is None
    assert why_stop(known, four, job(0.95)) == "1.1 are spent and the job may cost 0.95; the budget is 2"
    assert "states no price" in str(why_stop(known, four, job(None)))


def test_a_study_stops_below_an_efficiency() -> None:
    four = point(4)
    good = study(point(1, 10), point(2, 6), four, stop_below=0.8)
    bad = study(point(1, 10), point(2, 9), four, stop_below=0.8)
    assert why_stop(good, four, job(None)) is None
    assert why_stop(bad, four, job(None)) == "the efficiency with 2 ranks was 0.56, below 0.8"
    repeat = point(2, repeat=2)
    assert why_stop(study(point(1, 10), point(2, 9), repeat, stop_below=0.8), repeat, job(None)) is None


def test_a_size_whose_jobs_all_failed_ends_the_study() -> None:
    four = point(4)
    failed = point(2, state="failed", remark="job 1 failed: exit 1")
    assert why_stop(study(point(1, 10), failed, four), four, job(None)) == "all jobs with 2 nodes failed"


def test_elapsed_time_of_less_than_a_second_measures_nothing() -> None:
    def record(elapsed_s: int | None) -> Any:
        return SimpleNamespace(id="j1", ended="2026-11-22T10:00:09+00:00", elapsed_s=elapsed_s)

    assert known_elapsed_s(record(2)) == 2
    with pytest.raises(BadInputError, match="job j1 took less than a second"):
        known_elapsed_s(record(0))
    with pytest.raises(BadInputError, match="job j1: its start and end are not known"):
        known_elapsed_s(record(None))


def test_ranks_of_several_gpus_are_not_gpus() -> None:
    """Nodes of four GPUs with one rank each: the study is by GPUs and states the ranks."""
    points = [point(n, 8 / n, gpus=4 * n) for n in (1, 2)]
    document, _ = report_of(study(*points))
    assert [(p.ranks, p.gpus, p.size) for p in document.points] == [(1, 4, 4), (2, 8, 8)]
    assert document.points[1].efficiency == 1
    assert document.recommended is not None
    assert "is 8 GPUs (2 nodes): 100%" in document.recommended.sentence


def test_points_of_another_environment_are_not_comparable() -> None:
    other = point(4, 2.6, fingerprint={"profile": "p", "versions": "w"})
    document, _ = report_of(study(point(1, 10), point(2, 5), other, point(8, 1.3)))
    assert [p.comparable for p in document.points] == [True, True, False, True]
    assert document.points[2].remarks == ("not comparable with the smallest size: versions differs",)
    assert document.recommended is not None
    assert document.recommended.ranks == 8


def test_elapsed_time_is_no_step() -> None:
    """The number of steps of a job is not known: no throughput, and the sentence says what was measured."""
    how = "elapsed time of the job, start-up included"
    points = [point(n, 20 / n, measured_by=how) for n in (1, 2)]
    document, _ = report_of(study(*points, batch=64))
    assert [p.throughput for p in document.points] == [None, None]
    assert document.recommended is not None
    assert "10 s per job, start-up included." in document.recommended.sentence


def test_times_in_whole_seconds_recommend_nothing() -> None:
    short = [point(n, 2, remark="2 s of elapsed time are known to the second only") for n in (1, 2)]
    document, _ = report_of(study(*short))
    assert document.recommended is None
    assert "no recommendation: some times are known to the second only" in as_text(document)


def test_a_super_linear_size_is_recommended_with_its_doubt() -> None:
    document, _ = report_of(study(point(1, 10), point(2, 4)))
    assert document.recommended is not None
    assert "2 ranks (2 nodes): 125%, 4 s per step. More than 100% needs" in document.recommended.sentence
    plain, _ = report_of(study(point(1, 10), point(2, 5)))
    assert plain.recommended is not None
    assert "More than 100%" not in plain.recommended.sentence


def test_pop_factors_of_our_runner() -> None:
    """Ranks useful for 4 and 6 s of 8 s: the mean wait is 1 s."""
    balance, communication = pop_factors({"seconds": {"training": 8, "compute": 5, "waiting": 1}})
    assert balance == pytest.approx(5 / 6)
    assert communication == pytest.approx(6 / 8)
    assert pop_factors({}) == (None, None)
    one = point(1, 10, load_balance=0.9, communication_efficiency=0.8, cost=0.25)
    document, _ = report_of(study(one, point(2, 5, cost=0.5), point(2, 5.1, repeat=2, cost=0.25)))
    assert (document.facts["1"].load_balance, document.facts["2"].cost) == (0.9, 0.75)


def test_of_several_figures_the_first_is_left_out() -> None:
    log = "images/s: 10\nimages/s: 1,000.5\nimages/s: 1,200.5\n"
    assert read_metric(r"images/s: (\S+)", log) == pytest.approx(1100.5)
    assert read_metric(r"images/s: (\S+)", "images/s: 10\n") == 10
    for text in ("inf", "nan", "fast"):
        with pytest.raises(BadInputError, match=f"'{text}' is not a number"):
            read_metric(r"images/s: (\S+)", f"images/s: {text}\n")
