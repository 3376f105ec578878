"""Nodes, ranks and GPUs: what a foreign script requests and starts, and the same on the target's nodes."""

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.binding.compute import bind
from hpclaunch.binding.node_binding import BindingRequest
from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.plan.request_rules import QueueChoice, choose_queue
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import cite
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.walltime import format_walltime, parse_walltime_s

_BINDS = ("mask_cpu", "map_cpu", "list", "taskset")
"""Values of ``binding.cpu`` for which hpclaunch computes the cores."""
_MOST_PER_NODE = 4096
"""Ranks per node where the node is not described."""


class SourceSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of the other machine's job; None: not requested, or known at run time only."""

    nodes: int | None = None
    ranks: int | None = None
    gpus: int | None = None
    cpus_per_rank: int | None = None


class TargetSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes here, as a job file states them; None: hpclaunch's own rule holds."""

    nodes: int | None = None
    tasks_per_node: int | None = None
    gpus_per_task: int | None = None
    cpus_per_task: int | None = None
    said: str = ""
    same: bool = False
    least_nodes: int = 1

    @property
    def known(self) -> dict[str, int]:
        """The keys of the job file that have a number."""
        keys = ("nodes", "tasks_per_node", "gpus_per_task", "cpus_per_task")
        return {key: getattr(self, key) for key in keys if getattr(self, key) is not None}


class TargetQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue of the target that takes the job."""

    name: str | None = None
    walltime_s: int | None = None
    nodes: int | None = None
    why: str = ""
    walltime_why: str = ""
    source: str = ""


def usable_cores(profile: SiteProfile) -> int | None:
    """Return the cores of a node that jobs get; None: the node is not described."""
    if profile.node is None:
        return None
    return profile.node.cores - len(parse_cpu_list(profile.node.reserved_cores))


def fit_sizes(source: SourceSizes, target: SiteProfile) -> TargetSizes:
    """Return the same job on the target's nodes: the same ranks, with the same number of GPUs.

    Every node gets the same number of ranks, since one binding serves them all.
    """
    gpus, cores = len(target.node.gpus) if target.node else None, usable_cores(target)
    ranks = source.ranks
    if ranks is None:
        return _without_ranks(source, gpus)
    each = max(1, source.gpus // ranks) if source.gpus else None
    if gpus and source.gpus:
        each = min(each or 1, gpus)
        most = gpus // each if source.gpus >= ranks else gpus * -(-ranks // source.gpus)
    else:
        most = -(-ranks // source.nodes) if source.nodes else ranks
    most = max(1, min(most, cores or _MOST_PER_NODE))
    bound = each if gpus and source.gpus else None
    per_node = _ranks_per_node(target, ranks, most, bound)
    nodes, known = ranks // per_node, gpus or target.node is None
    cpus = source.cpus_per_rank if cores is None or not source.gpus else None
    if cpus is not None and cores is not None:
        cpus = min(cpus, max(1, cores // per_node))
    if gpus and source.gpus is None and cores is not None:
        cpus = None
    if cpus is None:
        cpus = _cores_of_one_numa_node(target, per_node, bound)
    return TargetSizes(
        nodes=nodes,
        tasks_per_node=per_node,
        gpus_per_task=each if known and source.gpus and source.gpus >= ranks else None,
        cpus_per_task=cpus,
        said=_arithmetic(source, nodes, per_node, each if gpus else None, gpus),
        same=source.nodes == nodes,
        least_nodes=-(-ranks // most),
    )


def _ranks_per_node(target: SiteProfile, ranks: int, most: int, gpus_per_task: int | None) -> int:
    """Return the most ranks per node that give each node the same number, each on one NUMA node if it can."""
    counts = [count for count in range(min(most, ranks), 0, -1) if ranks % count == 0]
    topology, numa = _numa_nodes(target)
    if topology is None:
        return counts[0]
    for count in counts:
        stays = count < len(numa) or _stays_on_one(topology, count, gpus_per_task, None)
        if stays or _cores_of_one_numa_node(target, count, gpus_per_task):
            return count
    return counts[0]


def _numa_nodes(target: SiteProfile) -> tuple[NodeTopology | None, list[int]]:
    """Return the node whose ranks hpclaunch binds, and the usable CPUs of each NUMA node that has some."""
    topology = site_topology(target)
    if topology is None or target.binding.cpu not in _BINDS:
        return None, []
    return topology, [len(found) for node in topology.numa_nodes if (found := node.cpus & topology.usable)]


def _cores_of_one_numa_node(target: SiteProfile, per_node: int, gpus_per_task: int | None) -> int | None:
    """Return cores per rank where an equal share of the node would lie on two NUMA nodes; else None."""
    topology, nodes = _numa_nodes(target)
    if topology is None or not nodes or per_node < len(nodes):
        return None
    if _stays_on_one(topology, per_node, gpus_per_task, None):
        return None
    threads = target.node.threads_per_core if target.node else 1
    cores = min(nodes) // threads // -(-per_node // len(nodes))
    return cores if cores and _stays_on_one(topology, per_node, gpus_per_task, cores) else None


def _stays_on_one(topology: NodeTopology, per_node: int, gpus: int | None, cores: int | None) -> bool:
    """Tell whether each rank's cores lie on one NUMA node."""
    try:
        want = BindingRequest(tasks_per_node=per_node, gpus_per_task=gpus, cpus_per_task=cores)
        return all(len(rank.numa) <= 1 for rank in bind(topology, want).ranks)
    except BadInputError:  # its GPUs have fewer cores near them
        return cores is None


def _without_ranks(source: SourceSizes, gpus: int | None) -> TargetSizes:
    """Return the sizes of a job whose ranks are known at run time only: one per GPU here."""
    nodes = source.nodes
    if source.gpus and gpus:
        nodes = -(-source.gpus // gpus)
    said = "the number of ranks is known at run time only: one per GPU here, else one per node"
    return TargetSizes(nodes=nodes, said=said, same=nodes == source.nodes)


def _arithmetic(source: SourceSizes, nodes: int, per_node: int, each: int | None, gpus: int | None) -> str:
    on = f" on {counted(source.nodes, 'node')}" if source.nodes else ""
    there = counted(source.ranks or 0, "rank") + on
    if source.gpus:
        there += f" with {counted(source.gpus, 'GPU')}"
    here = f"{counted(nodes, 'node')} x {counted(per_node, 'rank')}"
    if each and gpus and source.gpus:
        used = min(gpus, per_node * each) * nodes
        here += f" with {counted(used, 'GPU')}, {gpus} per node"
        if used != source.gpus:
            here += f": not the same number of GPUs ({source.gpus} there)"
    return f"{there} = {here}"


def fit_queue(target: SiteProfile, nodes: int | None, walltime_s: int | None) -> TargetQueue:
    """Return the first queue that takes the job; if there is none, with the time or the nodes that fit.

    ``walltime_s`` None: the script requests none, so half an hour is checked, hpclaunch's default.
    """
    wanted_s, wanted_nodes = walltime_s or 1800, nodes or 1
    for count in (wanted_nodes, *_other_nodes(target, wanted_nodes)):
        for seconds in (wanted_s, *_other_times(target, wanted_s, count)):
            choice = _choice(target, count, seconds)
            if choice is None:
                continue
            takes = f"takes {counted(count, 'node')} for {format_walltime(seconds)}"
            why = f"{format_walltime(wanted_s)} does not fit: {choice.name or target.name} {takes}"
            time, why = (walltime_s, "") if seconds == wanted_s else (seconds, why)
            return TargetQueue(
                name=choice.name,
                walltime_s=time,
                nodes=None if count == wanted_nodes else count,
                why=choice.reason,
                walltime_why=why,
                source=cite(target, choice.queue.source if choice.queue else None),
            )
    return TargetQueue(walltime_s=walltime_s, why="no queue of the profile takes such a job")


def _choice(target: SiteProfile, nodes: int, walltime_s: int) -> QueueChoice | None:
    """Return the queue that hpclaunch would take, else the first that may be named."""
    named = [name for name, queue in target.queues.items() if not (queue.by_request or queue.preemptable)]
    for name in (None, *named):
        try:
            choice = choose_queue(target, name, nodes, walltime_s)
        except SiteRuleError:
            continue
        if name is None:
            return choice
        reason = "the first that fits, though it is only used when it is named"
        return msgspec.structs.replace(choice, reason=reason)
    return None


def _other_times(target: SiteProfile, wanted_s: int, nodes: int) -> list[int]:
    """Return the walltimes at which limits lie: longer ones first for too short jobs, then shorter ones."""
    least = [parse_walltime_s(q.min_walltime) for q in target.queues.values() if q.min_walltime]
    most = [parse_walltime_s(q.max_walltime) for q in target.queues.values() if q.max_walltime]
    most += [parse_walltime_s(r.max_walltime) for q in target.queues.values() for r in q.routes]
    most += [q.max_node_minutes * 60 // nodes for q in target.queues.values() if q.max_node_minutes]
    longer = sorted(seconds for seconds in set(least) if seconds > wanted_s)
    shorter = sorted((seconds for seconds in set(most) if 0 < seconds < wanted_s), reverse=True)
    return [*longer, *shorter]


def _other_nodes(target: SiteProfile, wanted: int) -> list[int]:
    most = {queue.max_nodes for queue in target.queues.values() if queue.max_nodes}
    least = {queue.min_nodes for queue in target.queues.values()}
    fewer = sorted((count for count in most if count < wanted), reverse=True)
    return [*fewer, *sorted(count for count in least if count > wanted)]
