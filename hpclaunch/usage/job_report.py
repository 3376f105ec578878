"""From the facts of a job to its report. Pure."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from hpclaunch.amounts import counted, format_bytes, grouped, rounded
from hpclaunch.errors import note_text
from hpclaunch.job.job_documents import BindingDocument
from hpclaunch.job.record import JobRecord, RankReport, readable_cpus
from hpclaunch.plan.layout import cost_of
from hpclaunch.scheduler.scheduler_interface import AccountedJob, array_state
from hpclaunch.site.schema import Billing
from hpclaunch.usage import report_documents
from hpclaunch.usage.gather_report import JobFacts, Progress
from hpclaunch.usage.next_request import next_requests
from hpclaunch.usage.node_samples import NodeFile
from hpclaunch.usage.node_use import job_energy, mean, node_use, others_busy, over_time, rank_uses
from hpclaunch.usage.report_documents import EnergyUse, JobRun, JobTimes, NodeUse, RankUse, StepSpeed
from hpclaunch.walltime import format_walltime

_SCHEDULER_ENERGY = "whole nodes, by the scheduler's accounting"


def job_report(facts: JobFacts, billing: Billing | None, now: dt.datetime) -> report_documents.ReportDocument:
    """Return the report; ``billing``: the site's rule, if known; ``now``: a running job counts up to it."""
    record, accounted = facts.record, facts.accounted
    by_index = (facts.samples or {}).values()
    runs = [run for files in by_index for file in files.values() for run in file.runs if run.looks]
    times = _times(facts, now)
    nodes, ranks = tuple(_nodes(facts)), tuple(_ranks(facts))
    state = record.state if record else array_state(job.state for job in accounted)
    energy = [*job_energy(nodes), *_accounted_energy(accounted)]
    cost, why_no_cost = _cost(facts, billing, times)
    rank_memory = max(filter(None, (job.peak_memory for job in accounted)), default=None)
    job_memory = max(filter(None, (job.job_memory for job in accounted)), default=None)
    first = record or accounted[0]
    report = report_documents.ReportDocument(
        id=record.id if record else accounted[0].id.partition("_")[0],
        name=first.name,
        site=facts.site,
        scheduler=facts.scheduler,
        scheduler_id=record.scheduler_id if record else accounted[0].id.partition("_")[0],
        state=state,
        exit_code=record.exit_code if record else accounted[0].exit_code if len(accounted) == 1 else None,
        nodes=first.nodes,
        tasks=record.tasks if record else None,
        jobs=max(1, len(record.array) if record else len(accounted)),
        every_s=max((run.every for run in runs), default=0) or None,
        times=times,
        by_node=nodes,
        by_rank=ranks,
        cpu_s=sum(filter(None, (job.cpu_s for job in accounted))) or None,
        rank_memory=rank_memory,
        job_memory=job_memory,
        energy=tuple(energy),
        speed=_speed(facts),
        binding=msgspec.convert(facts.binding, BindingDocument | None, from_attributes=True),
        cost=cost,
        next=(),
        over_time=tuple(over_time(runs)),
        unknown=(
            *facts.unknown,
            *_unknown(facts, nodes, energy, times),
            *why_no_cost,
            *_growing(ranks),
            *_of_others(nodes, ranks),
        ),
    )
    cause = record.failure.cause if record and record.failure else None
    return msgspec.structs.replace(report, next=next_requests(report, cause))


def _moment(text: str | None) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _seconds(start: dt.datetime | None, end: dt.datetime | None) -> float | None:
    if start is None or end is None or start.tzinfo is None or end.tzinfo is None:
        return None
    return max(0.0, (end - start).total_seconds())


def _times(facts: JobFacts, now: dt.datetime) -> JobTimes:
    record, accounted = facts.record, facts.accounted
    submitted = min(filter(None, (job.submitted for job in accounted)), default=None)
    submitted = submitted or (record.created if record else None)
    spans = _spans(facts)
    starts, ends = [start for start, _ in spans if start], [end for _, end in spans]
    started = min(starts, default=None)
    ended = None if not ends or None in ends else max(filter(None, ends))
    runs = tuple(_runs(facts.samples or {}))
    begin, end = _moment(started), _moment(ended) or (now if started else None)
    # The scheduler knows the start of the last run where it has requeued the job, and whole seconds only.
    seen = [run.start for run in runs if begin is None or run.start >= begin.timestamp() - 2]
    first_rank = dt.datetime.fromtimestamp(min(seen), dt.timezone.utc) if seen else None
    by_index = {index: [run for run in runs if run.index == index] for index in {run.index for run in runs}}
    gaps = [max(0, after.start - before.end) for own in by_index.values() for before, after in pairwise(own)]
    counted_runs = (job.runs - 1 for job in accounted)
    restarts = max(record.restarts if record else 0, *counted_runs, len(gaps), len(facts.lost))
    lost, lost_steps, lost_s = _lost(facts, restarts, runs)
    waited = accounted[0].queued_s if len(accounted) == 1 and begin is not None else None
    spans_of = [sum(run.end - run.start for run in own) for own in by_index.values()]
    ran = float(max(spans_of)) if len(runs) > 1 else _seconds(first_rank, end)
    return JobTimes(
        submitted=submitted,
        started=started,
        ended=ended,
        queue_s=rounded(_seconds(_moment(submitted), begin) if waited is None else float(waited)),
        start_up_s=rounded(_seconds(begin, first_rank)),
        run_s=rounded(ran),
        wall_s=rounded(
            max(filter(None, (_seconds(_moment(s), _moment(e) or now) for s, e in spans)), default=None)
        ),
        limit_s=_limit(facts),
        restarts=restarts,
        between_runs_s=float(sum(gaps)) if gaps else None,
        lost=lost,
        lost_steps=lost_steps,
        lost_s=lost_s,
        runs=runs,
    )


def _spans(facts: JobFacts) -> list[tuple[str | None, str | None]]:
    record = facts.record
    if record is None:
        return [(job.started, job.ended) for job in facts.accounted]
    if record.array:
        return [(job.started, job.ended) for job in record.array.values() if job.started]
    return [(record.started, record.ended)]


def _limit(facts: JobFacts) -> int | None:
    limit = next((job.limit_s for job in facts.accounted if job.limit_s), None)
    if limit is None and facts.record is not None:
        limit = facts.record.limit_s
    return limit if isinstance(limit, int) else None


def _runs(samples: Mapping[int | None, Mapping[str, NodeFile]]) -> Iterable[JobRun]:
    """Yield the runs of a job in their order, each from its first rank to the last look on any node."""
    for index, by_node in sorted(samples.items(), key=lambda item: item[0] or 0):
        spans: dict[tuple[str, int], tuple[int, int]] = {}
        for file in by_node.values():
            seen: dict[str, int] = {}
            for run in file.runs:
                key = (run.label, seen.setdefault(run.label, 0))
                seen[run.label] += 1
                start = min([run.start, *run.ranks_started.values()])
                old = spans.get(key, (start, run.last))
                spans[key] = (min(old[0], start), max(old[1], run.last))
        for start, end in sorted(spans.values()):
            yield JobRun(index=index, start=start, end=end)


_Lost = tuple[str | None, int | None, float | None]
"""In words, steps, seconds."""


def _lost(facts: JobFacts, restarts: int, runs: Sequence[JobRun]) -> _Lost:
    """Return the work that was made twice, and where that is known from."""
    record = facts.record
    if not restarts:
        return None, None, None
    if facts.lost:
        steps, seconds = sum(one.steps for one in facts.lost), sum(one.seconds for one in facts.lost)
        how = "counted by the bundled training from its checkpoints and its progress"
        text = f"{counted(steps, 'step')}, {seconds:.1f} s of training ({how})"
        return text, steps, round(seconds, 3)
    if record is not None and record.restarts >= restarts:
        how = "before each restart the program has said by its exit code that its checkpoint was written"
        return f"none ({how})", 0, 0.0
    last_of = {run.index: run for run in runs}
    before = sum(run.end - run.start for run in runs if run is not last_of[run.index])
    most = f", at most the {format_walltime(before)} of the runs before" if before else ""
    return f"not known{most}: the program does not tell when it wrote its last checkpoint", None, None


def _nodes(facts: JobFacts) -> Iterable[NodeUse]:
    # Bytes per node that the accounting says the job had.
    asked = next((job.memory // max(1, job.nodes) for job in facts.accounted if job.memory), None)
    for index, by_node in sorted((facts.samples or {}).items(), key=lambda item: item[0] or 0):
        for node, file in sorted(by_node.items()):
            if any(run.looks for run in file.runs):
                yield node_use(index, file, _buses(facts, node), asked)


def _reports(facts: JobFacts) -> tuple[RankReport, ...]:
    return facts.binding.ranks if facts.binding else ()


def _buses(facts: JobFacts, node: str) -> dict[str, tuple[int, ...]]:
    """Return PCI address -> ranks of a node that see this GPU."""
    here = [report for report in _reports(facts) if report.host == node]
    found = grouped((address, report.rank) for report in here for address in _addresses(report))
    return {address: tuple(ranks) for address, ranks in found.items()}


def _addresses(report: RankReport) -> tuple[str, ...]:
    return tuple(address for address in report.bus.split(",") if address and address != "unknown")


def _ranks(facts: JobFacts) -> Iterable[RankUse]:
    reports = {report.rank: report for report in _reports(facts)}
    bound = {rank: count for rank, report in reports.items() if (count := len(readable_cpus(report.cpus)))}
    gpus = {rank: _addresses(report) for rank, report in reports.items()}
    waiting = {one.rank: one.waiting_ms for one in facts.timeline.by_rank} if facts.timeline else {}
    for index, by_node in sorted((facts.samples or {}).items(), key=lambda item: item[0] or 0):
        yield from rank_uses(index, by_node, bound, gpus, waiting)


def _accounted_energy(accounted: Sequence[AccountedJob]) -> Iterable[EnergyUse]:
    joules = [job.energy_j for job in accounted if job.energy_j]
    seconds = sum(job.elapsed_s or 0 for job in accounted if job.energy_j)
    if joules:
        power = rounded(sum(joules) / seconds, 1) if seconds else None
        yield EnergyUse(joules=sum(joules), power_w=power, source="scheduler", how=_SCHEDULER_ENERGY)


def _cost(
    facts: JobFacts, billing: Billing | None, times: JobTimes
) -> tuple[report_documents.CostUsed | None, tuple[str, ...]]:
    if billing is None:
        return None, (f"the cost: the profile of {facts.site} does not state what a job costs",)
    spans = [spent for s, e in _spans(facts) if (spent := _seconds(_moment(s), _moment(e) or _last(times)))]
    nodes = facts.record.nodes if facts.record else facts.accounted[0].nodes if facts.accounted else 0
    if not spans or not nodes:
        return None, ("the cost: how long the job ran is not known",)
    seconds = round(sum(spans))
    accounted = [job.elapsed_s for job in facts.accounted if job.elapsed_s is not None]
    counted_runs = sum(job.runs - 1 for job in facts.accounted if job.elapsed_s is not None)
    all_runs = counted_runs >= times.restarts
    if times.ended and len(accounted) == len(spans) and all_runs:
        seconds = sum(accounted)
    jobs = f" (the times of {len(spans)} jobs together)" if len(spans) > 1 else ""
    runs = "" if all_runs else "; of several runs only what the scheduler counts to its last job"
    cost = cost_of(billing, nodes, seconds)
    exclusive = facts.record is not None and facts.record.request.get("exclusive", True)
    shared = "" if exclusive else "; the rule is for whole nodes"
    amount = round(cost.amount, 6)
    return report_documents.CostUsed(
        amount=amount, unit=cost.unit, text=f"{cost.text}{jobs}{runs}{shared}"
    ), ()


def _last(times: JobTimes) -> dt.datetime | None:
    start = _moment(times.started)
    return start + dt.timedelta(seconds=times.wall_s) if start and times.wall_s is not None else None


def billing_of(record: JobRecord) -> Billing | None:
    """Return the site's rule as it was when the job was submitted; None: none can be read."""
    try:
        return msgspec.convert(record.plan["profile"]["billing"], Billing)
    except (LookupError, TypeError, msgspec.ValidationError):  # an older version did not record it
        return None


def _speed(facts: JobFacts) -> StepSpeed | None:
    if facts.timeline is not None and facts.timeline.step_ms.get("median"):
        median = facts.timeline.step_ms["median"] or 0.0
        return StepSpeed(
            steps=facts.timeline.steps,
            steps_per_s=rounded(1000 / median),
            trend=_trend([1 / ms for ms in facts.timeline.every_step_ms if ms > 0]),
            source="timeline",
        )
    result = facts.result or {}
    steps, seconds = _number(result.get("steps")), _number((result.get("seconds") or {}).get("training"))
    begun = _number(result.get("resumed_from_step")) or 0
    if steps is None or not seconds:
        return _speed_so_far(facts.progress)
    history = [entry for entry in result.get("history") or [] if isinstance(entry, dict)]
    speeds = [speed for entry in history if (speed := _number(entry.get("images_per_s")))]
    return StepSpeed(
        steps=int(steps),
        steps_per_s=rounded((steps - begun) / seconds),
        trend=_trend(speeds),
        source="result",
    )


def _speed_so_far(progress: Progress | None) -> StepSpeed | None:
    if progress is None or not progress.step or progress.seconds <= 0:
        return None
    per_second = rounded(progress.step / progress.seconds)
    return StepSpeed(steps=progress.step, steps_per_s=per_second, trend=None, source="progress")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _trend(speeds: Sequence[float]) -> float | None:
    """Return the change from the first third to the last one, without the very first value."""
    rest = speeds[1:]
    if len(rest) < 6:
        return None
    third = len(rest) // 3
    first, last = mean(rest[:third]), mean(rest[-third:])
    return rounded((last or 0.0) / first - 1) if first else None


def _growing(ranks: Sequence[RankUse]) -> Iterable[str]:
    for rank in [rank for rank in ranks if rank.memory_grows][:1]:
        sizes = " to ".join(map(format_bytes, rank.memory_grows or ()))
        yield note_text("report: memory grows", rank=rank.rank, sizes=sizes)


def _of_others(nodes: Sequence[NodeUse], ranks: Sequence[RankUse]) -> Iterable[str]:
    for node in sorted(nodes, key=lambda node: -(node.cpus_busy or 0.0)):
        if (others := others_busy(node, ranks)) > max(0.5, 0.1 * node.cpus):
            yield note_text("report: others", node=node, others=others)
            break


def _unknown(
    facts: JobFacts, nodes: Sequence[NodeUse], energy: Sequence[EnergyUse], times: JobTimes
) -> Iterable[str]:
    record = facts.record
    damaged = sum(file.damaged for by_node in (facts.samples or {}).values() for file in by_node.values())
    if damaged:
        yield f"{damaged} lines of the samples are damaged and left out"
    if nodes and record is not None and not record.array and len(nodes) < record.nodes:
        yield f"only {len(nodes)} of {record.nodes} nodes have samples"
    if nodes and max(node.looks for node in nodes) < 2:
        few = (
            "there are no two looks so far" if times.ended is None else "the job was too short for two looks"
        )
        yield f"how busy CPUs were: {few} (--sample 5 looks more often)"
    if not energy:
        yield "energy: no counter could be read (Cray's pm_counters, RAPL), and the scheduler reports none"
    if times.started and times.ended is None and {job.cpu_s for job in facts.accounted} == {None}:
        yield "CPU time and memory by the scheduler: its accounting has none of them so far"
    planned_gpus = record is not None and any(report.gpus not in ("", "none") for report in _reports(facts))
    if planned_gpus and nodes and not any(node.gpus for node in nodes):
        yield "GPU use: neither nvidia-smi, amd-smi nor rocm-smi is on the nodes, nor amdgpu's files in /sys"
    if times.queue_s is None:
        yield "the time in the queue: the job has not started"
    if _speed(facts) is None and record is not None:
        yield "steps per second: no timeline and nothing of the bundled training is in the job's folder"
