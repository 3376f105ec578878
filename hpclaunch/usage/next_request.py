"""The next request, with the arithmetic. Pure."""

import math
from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from hpclaunch.amounts import counted, format_bytes, listed
from hpclaunch.errors import case_texts
from hpclaunch.package_data import package_constants
from hpclaunch.scheduler.scheduler_interface import JobState
from hpclaunch.usage.node_samples import GIB
from hpclaunch.usage.node_use import others_busy
from hpclaunch.usage.report_documents import (
    JobTimes,
    NextRequest,
    NodeUse,
    RankUse,
    ReportDocument,
    Requested,
)
from hpclaunch.walltime import format_walltime

LIMIT = package_constants("usage/limits.yaml", "next_request")


def next_requests(report: ReportDocument, cause: str | None) -> tuple[NextRequest, ...]:
    """Return what to ask for: time, memory, cores, nodes; ``cause``: why the job failed, by its record.

    Without samples the accounting's memory counts, of a job with one node. A run cut short proposes nothing.
    """
    job_memory = report.job_memory if report.nodes == 1 else None
    early = _cut_short(report.state, report.times, cause)
    crowded = _crowded(report.by_node, report.by_rank)
    busy = (_cores(report.by_rank), _nodes(report.by_node, report.by_rank))
    memory = _memory(report.by_node, report.rank_memory, job_memory, cause)
    others = (memory, *(_held_back(one, crowded) for one in busy))
    part = early and f"{early}: a whole run may need more"
    return (_time(report.state, report.times, early), *(_held_back(one, part) for one in others))


def _cut_short(state: JobState, times: JobTimes, cause: str | None) -> str | None:
    """Return why a run says little about the next one; None: it came to its end, or to its limit."""
    ran, limit = times.wall_s, times.limit_s
    if state == "done" or (ran is not None and limit is not None and ran >= 0.98 * limit):
        return None
    return f"it is {state}" if state != "failed" else f"it failed{f' ({cause})' if cause else ''}"


def _held_back(one: NextRequest, why: str | None) -> NextRequest:
    if one.ask is None or why is None:
        return one
    return replace(one, ask=None, option=None, text=f"{one.text}; {why}")


def _crowded(nodes: Sequence[NodeUse], ranks: Sequence[RankUse]) -> str | None:
    """Return on which node processes of others took CPUs that ranks may have waited for; None: on none."""
    for node in nodes:
        if (
            (others := others_busy(node, ranks))
            > LIMIT.crowd * node.cpus
            > node.cpus - (node.cpus_busy or 0.0)
        ):
            busy = f"{others:.1f} of {node.cpus} CPUs of {node.node}"
            return f"processes of others kept {busy} busy: alone, ranks may keep more busy"
    return None


def _time(state: JobState, times: JobTimes, early: str | None) -> NextRequest:
    limit = "" if times.limit_s is None else f" of {format_walltime(times.limit_s)}"
    if times.wall_s is None:
        return _said("time: not known")
    ran = f"it ran {format_walltime(round(times.wall_s))}{limit}"
    if early is not None:
        return _said("time: not done", ran=ran, why=early)
    if state != "done":
        return _said("time: at its limit", ran=ran)
    needed = times.wall_s
    if times.restarts and times.run_s is not None:
        needed = times.run_s
        ran = f"it ran {format_walltime(round(needed))} in {len(times.runs)} runs{limit} each; in one run"
    seconds = math.ceil(needed * LIMIT.time_factor / LIMIT.step_s) * LIMIT.step_s
    ask, product = format_walltime(seconds), format_walltime(round(needed * LIMIT.time_factor))
    values = {"ran": ran, "factor": LIMIT.time_factor, "product": product}
    return _said("time: from its run", ask, f"--time {ask}", **values)


def _memory(
    nodes: Sequence[NodeUse], rank_memory: int | None, job_memory: int | None, cause: str | None
) -> NextRequest:
    if cause == "out of host memory":
        return _said("memory: too little")
    known = [node for node in nodes if node.memory_peak is not None]
    if not known and job_memory:
        return _gibibytes("memory: accounted", job_memory)
    if not known:
        once = ": its ranks were looked at once only, as they started" if nodes else ""
        largest = f"; its largest task had {format_bytes(rank_memory)}" if rank_memory else ""
        return _said("memory: not known", more=f"{once}{largest}")
    most = max(known, key=lambda node: node.memory_peak or 0)
    of = f" of {format_bytes(most.memory_of)}" if most.memory_of else ""
    if rank_memory and rank_memory > (most.memory_peak or 0):
        return _gibibytes("memory: of a task", rank_memory, seen=format_bytes(most.memory_peak or 0))
    shared = "all its ranks at a look, what they share in each"
    whose = "the job's" if most.memory_source == "cgroup" else shared
    return _gibibytes("memory: sampled", most.memory_peak or 0, node=most.node, of=of, whose=whose)


def _gibibytes(case: str, peak: int, **values: str) -> NextRequest:
    needed = math.ceil(peak * LIMIT.memory_factor / GIB)
    values |= {"peak": format_bytes(peak), "needed": f"{needed} GiB"}
    return _said(case, f"{needed}G", factor=LIMIT.memory_factor, **values)


def _cores(ranks: Sequence[RankUse]) -> NextRequest:
    known = [rank for rank in ranks if rank.cpus_busy is not None]
    if not known:
        return _said("cores: not known")
    most = max(known, key=lambda rank: rank.cpus_most or rank.cpus_busy or 0.0)
    peak = most.cpus_most if most.cpus_most is not None else most.cpus_busy or 0.0
    cores = max(1, math.ceil(peak - 0.05))
    bound = f" of {most.cpus_bound} that it was bound to" if most.cpus_bound else ""
    found = f"rank {most.rank} kept the most CPUs busy: {peak:.1f}{bound} (mean {most.cpus_busy:.1f})"
    if most.cpus_bound and cores >= most.cpus_bound:
        fewer = ("fewer are too few", "a rank has one at least")[cores == 1]
        all_used = "it used all, so more may help" if peak > 0.9 * most.cpus_bound else fewer
        return _said("cores: as now", found=found, used=all_used)
    return _said("cores: from its peak", str(cores), f"--cpus-per-task {cores}", found=found)


def _nodes(nodes: Sequence[NodeUse], ranks: Sequence[RankUse]) -> NextRequest:
    busy: dict[str, float] = {}
    for rank in ranks:
        if rank.cpus_busy is not None:
            busy[rank.node] = busy.get(rank.node, 0.0) + rank.cpus_busy
    known = [node for node in nodes if node.node in busy]
    if not known:
        return _said("nodes: not known")
    without_gpus = [node for node in known if all((gpu.busy or 0.0) < LIMIT.idle_gpu for gpu in node.gpus)]
    idle = list(dict.fromkeys(node.node for node in without_gpus if busy[node.node] < LIMIT.idle_cpus))
    if idle:
        worked = len({node.node for node in nodes} - {*idle}) or "none"
        values = {"idle": counted(len(idle), "node"), "names": listed(idle)}
        request = (str(worked), f"--nodes {worked}") if worked != "none" else ()
        return _said(
            "nodes: idle", *request, cpus=LIMIT.idle_cpus, gpu=LIMIT.idle_gpu, worked=worked, **values
        )
    least = min(known, key=lambda node: busy[node.node] / max(1, node.cpus))
    gpus = [gpu.busy for node in known for gpu in node.gpus if gpu.busy is not None]
    of_gpus = f", GPUs {sum(gpus) / len(gpus):.0f} % on average" if gpus else ""
    share = f"{busy[least.node]:.1f} of {least.cpus} CPUs{of_gpus}"
    return _said(("nodes: one", "nodes: as now")[len(nodes) > 1], node=least.node, share=share)


def _said(case: str, ask: str | None = None, option: str | None = None, **values: Any) -> NextRequest:
    """Return a request with its text of ``next_request.yaml``."""
    text = case_texts("usage/next_request.yaml", case, ask=ask, **values)
    what = cast("Requested", case.partition(": ")[0])
    return NextRequest(what=what, ask=ask, option=option, text=text)
