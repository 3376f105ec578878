"""The next request, with the arithmetic. Pure."""

import math
from collections.abc import Sequence

from hpclaunch.plural import counted, listed
from hpclaunch.scheduler.scheduler_interface import JobState
from hpclaunch.units import format_bytes
from hpclaunch.usage.node_samples import GIB
from hpclaunch.usage.report_documents import JobTimes, NextRequest, NodeUse, RankUse
from hpclaunch.walltime import format_walltime

_TIME_FACTOR = 1.25
_MEMORY_FACTOR = 1.2
_STEP_S = 300
_IDLE_CPUS = 0.05
"""Kept busy by all ranks of a node; below it the node did nothing."""
_IDLE_GPU = 1.0
"""Percent."""


def next_requests(
    state: JobState,
    times: JobTimes,
    nodes: Sequence[NodeUse],
    ranks: Sequence[RankUse],
    *,
    rank_memory: int | None,
    job_memory: int | None,
    cause: str | None,
) -> tuple[NextRequest, ...]:
    """Return what to ask for: time, memory, cores, nodes.

    ``rank_memory``, ``job_memory``: bytes of the largest rank, and of a job on one node, by the accounting,
    which are used where there are no samples; ``cause``: why the job failed, by its record.
    """
    return (
        _time(state, times, cause),
        _memory(nodes, rank_memory, job_memory, cause),
        _cores(ranks),
        _nodes(nodes, ranks),
    )


def _time(state: JobState, times: JobTimes, cause: str | None) -> NextRequest:
    limit = "" if times.limit_s is None else f" of {format_walltime(times.limit_s)}"
    if times.wall_s is None:
        return _nothing("time", "how long it ran is not known")
    ran = f"it ran {format_walltime(round(times.wall_s))}{limit}"
    if times.limit_s is not None and state != "done" and times.wall_s >= 0.98 * times.limit_s:
        return _nothing(
            "time",
            f"{ran} and was ended at its limit: how long it would need is not known; more than that, or"
            " --max-restarts with checkpoints",
        )
    if state != "done":
        why = f"it is {state}" if state != "failed" else f"it failed{f' ({cause})' if cause else ''}"
        return _nothing("time", f"{ran}; {why}, so how long it needs is not known")
    needed = times.wall_s
    if times.restarts and times.run_s is not None:
        needed = times.run_s
        ran = f"it ran {format_walltime(round(needed))} in {len(times.runs)} runs{limit} each; in one run"
    seconds = math.ceil(needed * _TIME_FACTOR / _STEP_S) * _STEP_S
    ask, product = format_walltime(seconds), format_walltime(round(needed * _TIME_FACTOR))
    text = f"{ran}; x {_TIME_FACTOR:g}, as runs differ, = {product}, in steps of 5 minutes: {ask}"
    return NextRequest(what="time", ask=ask, option=f"--time {ask}", text=text)


def _memory(
    nodes: Sequence[NodeUse], rank_memory: int | None, job_memory: int | None, cause: str | None
) -> NextRequest:
    if cause == "out of host memory":
        return _nothing("memory", "it ran out of memory: more than it had, how much more is not known")
    known = [node for node in nodes if node.memory_peak is not None]
    if not known and job_memory:
        needed = math.ceil(job_memory * _MEMORY_FACTOR / GIB)
        product = f"x {_MEMORY_FACTOR:g} = {needed} GiB"
        found = f"{format_bytes(job_memory)} on its one node, by the scheduler; {product}"
        return NextRequest(what="memory", ask=f"{needed}G", option=None, text=found)
    if not known:
        once = ": its ranks were looked at once only, as they started" if nodes else ""
        largest = f"; its largest rank had {format_bytes(rank_memory)}" if rank_memory else ""
        return _nothing("memory", f"the job's peak on a node is not known{once}{largest}")
    most = max(known, key=lambda node: node.memory_peak or 0)
    peak = most.memory_peak or 0
    needed = math.ceil(peak * _MEMORY_FACTOR / GIB)
    of = f" of {format_bytes(most.memory_of)}" if most.memory_of else ""
    exact = most.memory_source == "cgroup"
    whose = "the job's" if exact else "all its ranks at a look, what they share in each"
    text = f"most on {most.node}: {format_bytes(peak)}{of} ({whose}); x {_MEMORY_FACTOR:g} = {needed} GiB"
    text += " per node; whole nodes cost the same with less"
    return NextRequest(what="memory", ask=f"{needed}G", option=None, text=text)


def _cores(ranks: Sequence[RankUse]) -> NextRequest:
    known = [rank for rank in ranks if rank.cpus_busy is not None]
    if not known:
        return _nothing("cores", "how busy each rank kept its CPUs is not known")
    most = max(known, key=lambda rank: rank.cpus_most or rank.cpus_busy or 0.0)
    peak = most.cpus_most if most.cpus_most is not None else most.cpus_busy or 0.0
    cores = max(1, math.ceil(peak - 0.05))
    bound = f" of {most.cpus_bound} that it was bound to" if most.cpus_bound else ""
    found = f"rank {most.rank} kept the most CPUs busy: {peak:.1f}{bound} (mean {most.cpus_busy:.1f})"
    if most.cpus_bound and cores >= most.cpus_bound:
        all_used = "it used all, so more may help" if peak > 0.9 * most.cpus_bound else "fewer are too few"
        return _nothing("cores", f"as now: {found}; {all_used}")
    text = f"{found}, rounded up: {cores} per rank; peaks between two looks are not seen"
    return NextRequest(what="cores", ask=str(cores), option=f"--cpus-per-task {cores}", text=text)


def _nodes(nodes: Sequence[NodeUse], ranks: Sequence[RankUse]) -> NextRequest:
    busy: dict[str, float] = {}
    for rank in ranks:
        if rank.cpus_busy is not None:
            busy[rank.node] = busy.get(rank.node, 0.0) + rank.cpus_busy
    known = [node for node in nodes if node.node in busy]
    if not known:
        return _nothing("nodes", "how busy the ranks kept the nodes is not known")
    without_gpus = [node for node in known if all((gpu.busy or 0.0) < _IDLE_GPU for gpu in node.gpus)]
    idle = [node for node in without_gpus if busy[node.node] < _IDLE_CPUS]
    if idle:
        names = listed([node.node for node in idle])
        ask = len({node.node for node in nodes} - {node.node for node in idle})
        why = f"its ranks kept below {_IDLE_CPUS:g} CPUs and {_IDLE_GPU:.0f} % of its GPUs busy"
        text = f"{counted(len(idle), 'node')} did nothing ({why}): {names}; {ask} worked"
        option = f"--nodes {ask}" if ask else None
        return NextRequest(what="nodes", ask=str(ask) if ask else None, option=option, text=text)
    least = min(known, key=lambda node: busy[node.node] / max(1, node.cpus))
    gpus = [gpu.busy for node in known for gpu in node.gpus if gpu.busy is not None]
    of_gpus = f", GPUs {sum(gpus) / len(gpus):.0f} % on average" if gpus else ""
    share = f"{busy[least.node]:.1f} of {least.cpus} CPUs{of_gpus}"
    return _nothing(
        "nodes",
        f"as now: each node worked, the ranks of {least.node} kept the least busy, {share}; whether more or"
        " fewer would be faster or cheaper tells hpclaunch scale",
    )


def _nothing(what: str, text: str) -> NextRequest:
    return NextRequest(what=what, ask=None, option=None, text=text)  # type: ignore[arg-type]
