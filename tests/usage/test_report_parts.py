"""Costs, times and what is not known of a report, from facts by hand."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.job.record import ArrayJob, JobRecord
from hpclaunch.job.store import Store
from hpclaunch.scheduler.scheduler_interface import AccountedJob
from hpclaunch.site.schema import Billing
from hpclaunch.usage.gather_report import JobFacts, LostWork, Progress
from hpclaunch.usage.job_report import job_report
from hpclaunch.usage.node_samples import NodeFile, NodeRun, RankSample, read_samples
from hpclaunch.usage.node_use import rank_uses
from hpclaunch.usage.report_documents import ReportDocument
from tests.testbed.kit import new_record
from tests.usage.made_samples import START, node_file

RULE = Billing(unit="node-hours", per_node_hour=1.0)


def at(seconds: int) -> str:
    return dt.datetime.fromtimestamp(START + seconds, dt.timezone.utc).isoformat()


NOW = dt.datetime.fromtimestamp(START + 7200, dt.timezone.utc)


@pytest.fixture
def record(tmp_path: Path) -> JobRecord:
    """A job on two nodes that ran an hour, after a minute in the queue."""
    made = new_record(Store(tmp_path), "slurm", tmp_path)
    times = {"created": at(-60), "started": at(0), "ended": at(3600)}
    return replace(made, state="done", exit_code=0, nodes=2, request={"exclusive": True}, **times)


def accounted(**more: Any) -> AccountedJob:
    return AccountedJob(**{"id": "17", "name": "try", "state": "done", "nodes": 2, "runs": 1, **more})


def report(record: JobRecord | None, billing: Billing | None = RULE, **facts: Any) -> ReportDocument:
    return job_report(JobFacts(record=record, site="x", scheduler="slurm", **facts), billing, NOW)


def cost(record: JobRecord | None, **facts: Any) -> tuple[float | None, str]:
    found = report(record, **facts).cost
    return (found.amount, found.text.partition(": ")[2]) if found else (None, "")


def test_a_job_costs_its_nodes_for_its_time_by_the_scheduler_where_that_counts_it(record: JobRecord) -> None:
    assert cost(record) == (2.0, "2 nodes x 01:00:00 x 1 node-hour per node and hour")
    assert cost(record, accounted=(accounted(elapsed_s=1800),))[0] == 1.0
    assert cost(record, accounted=(accounted(),))[0] == 2.0, "it does not say"
    assert cost(replace(record, ended=None, state="running"))[0] == 4.0, "up to now"
    running = replace(record, ended=None, state="running")
    assert cost(running, accounted=(accounted(elapsed_s=1800),))[0] == 4.0, "the accounting may be behind"
    assert cost(None, accounted=(accounted(started=at(0), ended=at(1800), elapsed_s=900),))[0] == 0.5


def test_the_most_that_a_rank_kept_busy_is_no_less_than_its_average() -> None:
    """The looks of the first seconds are too close for a rate of their own, and count in the average."""
    looks = [
        RankSample(time=time, cpu_s=used, memory=1, peak=1) for time, used in ((2, 2), (14, 13), (44, 14))
    ]
    run = NodeRun(node="n1", start=0, every=30, ranks={0: looks})
    (found,) = rank_uses(None, {"n1": NodeFile((run,), 0)}, {}, {}, {})
    assert (found.cpus_busy, found.cpus_most) == (0.318, 0.318)


def test_nodes_are_not_called_idle_whose_cpus_others_had(record: JobRecord) -> None:
    def nodes(others: float) -> str | None:
        idle = node_file((1,), cpus=2, busy=0.02)
        ticks = int(100 * others * 30)
        lines = idle.splitlines()
        looks = [at for at, line in enumerate(lines) if line.startswith("node ")]
        for look, at in enumerate(looks):
            words = lines[at].split()
            lines[at] = " ".join([*words[:2], f"cpu={ticks * look}/{200 * 30 * look + 1000}", *words[3:]])
        works = read_samples("n1", node_file((0,), cpus=2))
        samples = {None: {"n1": works, "n2": read_samples("n2", "\n".join(lines))}}
        return next(one.ask for one in report(record, samples=samples).next if one.what == "nodes")

    assert nodes(0.1) == "1"
    assert nodes(2.0) is None


def test_an_accounting_without_figures_of_a_running_job_is_named(record: JobRecord) -> None:
    said = "CPU time and memory by the scheduler: its accounting has none of them so far"
    running = replace(record, ended=None, state="running")
    assert said in report(running, accounted=(accounted(state="running"),)).unknown
    assert said not in report(running, accounted=(accounted(state="running", cpu_s=2.0),)).unknown
    assert said not in report(record, accounted=(accounted(),)).unknown


def test_the_cost_of_several_runs_or_jobs_says_so(record: JobRecord) -> None:
    again = replace(record, restarts=2)
    amount, text = cost(again, accounted=(accounted(elapsed_s=1800, runs=1),))
    assert (amount, text.endswith("; of several runs only what the scheduler counts to its last job")) == (
        2.0,
        True,
    )
    assert cost(again, accounted=(accounted(elapsed_s=1800, runs=3),))[0] == 1.0
    jobs = {index: ArrayJob(state="done", started=at(0), ended=at(900)) for index in (1, 2)}
    amount, text = cost(replace(record, array=jobs))
    assert (amount, text.endswith(" (the times of 2 jobs together)")) == (1.0, True)
    shared = replace(record, request={"exclusive": False})
    assert cost(shared)[1].endswith("; the rule is for whole nodes")


def test_a_cost_that_is_not_known_says_why(record: JobRecord) -> None:
    found = report(record, None)
    assert (found.cost, found.unknown[-1]) == (
        None,
        "the cost: the profile of x does not state what a job costs",
    )
    queued = replace(record, state="queued", started=None, ended=None)
    assert "the cost: how long the job ran is not known" in report(queued).unknown


def test_times_of_a_job(record: JobRecord) -> None:
    times = report(record).times
    assert (times.queue_s, times.wall_s, times.start_up_s, times.restarts) == (60.0, 3600.0, None, 0)
    queued = replace(record, state="queued", started=None, ended=None)
    found = report(queued)
    assert (found.times.queue_s, found.times.wall_s) == (None, None)
    assert "the time in the queue: the job has not started" in found.unknown
    waited = report(record, accounted=(accounted(queued_s=45, limit_s=7200),)).times
    assert (waited.queue_s, waited.limit_s) == (45.0, 7200)
    damaged = report(replace(record, started="yesterday")).times
    assert (damaged.queue_s, damaged.wall_s) == (None, None)
    local = report(replace(record, started=at(0)[:19])).times
    assert local.queue_s is None, "without a time zone it is no moment"


def test_work_that_was_made_twice_is_counted_or_bounded(record: JobRecord) -> None:
    assert report(record).times.lost is None
    lost = (LostWork(steps=14, seconds=3.25), LostWork(steps=1, seconds=2.0))
    counted = report(record, lost=lost).times
    assert (counted.restarts, counted.lost_steps, counted.lost_s) == (2, 15, 5.25)
    assert (counted.lost or "").startswith("15 steps, 5.2 s of training")
    clean = report(replace(record, restarts=1)).times
    assert (clean.lost_steps, (clean.lost or "").partition(" (")[0]) == (0, "none")
    unknown = report(record, accounted=(accounted(runs=2),)).times
    assert (unknown.restarts, unknown.lost_steps) == (1, None)
    assert unknown.lost == "not known: the program does not tell when it wrote its last checkpoint"
    text = node_file((0,), looks=3) + node_file((0,), start=START + 100, run=1, looks=3)
    samples = {None: {"n1": read_samples("n1", text)}}
    several = report(record, accounted=(accounted(runs=2),), samples=samples).times
    assert (several.between_runs_s, several.run_s, len(several.runs)) == (40.0, 120.0, 2)
    assert (several.lost or "").startswith("not known, at most the 00:01:00 of the runs before: ")


def test_the_ranks_of_an_array_ran_as_long_as_those_of_its_longest_job(record: JobRecord) -> None:
    """Not from the first rank of the first job to the end of the last one."""
    first = {"n1": read_samples("n1", node_file((0,), looks=3))}
    second = {"n2": read_samples("n2", node_file((0,), start=START + 1000, looks=4))}
    jobs = {index: ArrayJob(state="done", started=at(0), ended=at(90)) for index in (1, 2)}
    found = report(replace(record, array=jobs), samples={1: first, 2: second}).times
    assert (found.run_s, found.wall_s) == (90.0, 90.0)


def test_what_is_not_known_is_said(record: JobRecord) -> None:
    def unknown(changed: JobRecord | None = record, **facts: Any) -> str:
        return "\n".join(report(changed, **facts).unknown)

    one = {None: {"n1": read_samples("n1", node_file((0,)))}}
    assert "only 1 of 2 nodes have samples" in unknown(samples=one)
    assert "nodes have samples" not in unknown(replace(record, nodes=1), samples=one)
    assert "nodes have samples" not in unknown()
    short = {None: {"n1": read_samples("n1", node_file((0,), looks=1))}}
    assert "how busy CPUs were: the job was too short for two looks" in unknown(samples=short)
    running = replace(record, state="running", ended=None)
    assert "how busy CPUs were: there are no two looks so far" in unknown(running, samples=short)
    assert "how busy CPUs were" not in unknown(samples=one)
    assert "energy: no counter could be read" in unknown()
    assert "energy" not in unknown(accounted=(accounted(energy_j=5.0),))
    assert "steps per second: no timeline" in unknown()
    assert "steps per second" not in unknown(progress=Progress(step=5, seconds=2.0))
    assert "steps per second" not in unknown(None, accounted=(accounted(),)), "another program's job"
    damaged = {None: {"n1": read_samples("n1", node_file((0,)) + "x\ny\n")}}
    assert "2 lines of the samples are damaged and left out" in unknown(samples=damaged)
    assert "damaged" not in unknown(samples=one)


def test_speed_needs_steps_and_time(record: JobRecord) -> None:
    def speed(result: dict[str, Any]) -> Any:
        return report(record, result=result).speed

    found = speed({"steps": 30, "seconds": {"training": 10.0}})
    assert (found.steps, found.steps_per_s, found.trend) == (30, 3.0, None)
    for result in (
        {},
        {"steps": 30},
        {"steps": True, "seconds": {"training": 1.0}},
        {"steps": 3, "seconds": None},
    ):
        assert speed(result) is None
    assert speed({"steps": 30, "seconds": {"training": 0.0}}) is None
    history = [{"images_per_s": value} for value in (1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0)]
    assert speed({"steps": 30, "seconds": {"training": 10.0}, "history": history}).trend == 1.0
    assert speed({"steps": 30, "seconds": {"training": 10.0}, "history": history[1:]}).trend is None
    for step, seconds, per_s in ((6, 2.0, 3.0), (0, 2.0, None), (6, 0.0, None)):
        progress = report(record, progress=Progress(step=step, seconds=seconds)).speed
        assert (progress and progress.steps_per_s) == per_s
