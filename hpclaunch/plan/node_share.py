"""The part of a node that a job gets, how its ranks bind there, and the cores that a site documents. Pure.

For nodes whose sizes the scheduler reports, while where their GPUs are attached is not known.
"""

from fractions import Fraction

import msgspec
from msgspec.structs import replace

from hpclaunch.binding.locality import share_gpus
from hpclaunch.binding.node_binding import NodeBinding, RankBinding
from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.plan.launch_plan import AtStart
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.request_rules import QueueChoice, kibibytes
from hpclaunch.plural import counted
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.queue_limits import source_of
from hpclaunch.site.schema import FrameworkCores, Node, SiteProfile
from hpclaunch.topology.node_topology import NodeTopology


class NodeShare(msgspec.Struct, frozen=True, kw_only=True):
    """The job's request on each node."""

    gpus: int
    cores: int
    """Of each rank."""
    memory: str | None
    """None: memory is not given out here, or the request names it."""
    at_start: AtStart | None = None
    """None: the launcher binds the ranks, since the job may not know which cores of the node are its own."""


def node_share(
    request: JobRequest,
    profile: SiteProfile,
    choice: QueueChoice,
    tasks_per_node: int,
    *,
    by_local_rank: bool,
) -> NodeShare | None:
    """Return the job's part of each node; None: the profile knows more of its nodes, or less.

    A job that has whole nodes gets all that they have. Otherwise each rank gets one GPU, or those that the
    request names, and the same part of the cores and the memory; without GPUs one core.

    ``by_local_rank``: the program takes the GPU whose number is its local rank. Raises BadInputError for
    several ranks on MIG instances: a process sees one (NVIDIA's MIG user guide, "CUDA Device Enumeration"),
    and NCCL does not work between them.
    """
    node = profile.node
    if node is None or profile.binding.cpu != "at_start":
        return None
    _check_slices(request, node, tasks_per_node, by_local_rank=by_local_rank)
    whole = request.exclusive or choice.is_whole_node
    gpus = _gpus_of_job(request, node, tasks_per_node, whole=whole)
    part = Fraction(gpus, len(node.gpus)) if gpus else Fraction(whole)
    cores = request.cpus_per_task or max(1, int(node.cores * part) // tasks_per_node)
    share = NodeShare(gpus=gpus, cores=cores, memory=_memory(request, node, part, tasks_per_node * cores))
    if not _may_bind(request, profile, every_core=whole or tasks_per_node * cores == node.cores):
        return share
    at_start = AtStart(
        ranks=tasks_per_node,
        cores=cores,
        threads=request.threads_per_core,
        gpus=tuple(share_gpus(range(gpus), tasks_per_node, request.gpus_per_task)) if gpus else (),
        slices=node.gpu_slices,
        some_gpus=0 < part < 1,
    )
    return msgspec.structs.replace(share, at_start=at_start)


def _may_bind(request: JobRequest, profile: SiteProfile, *, every_core: bool) -> bool:
    """Whether the ranks bind themselves: they must not take cores of other jobs."""
    return (every_core or profile.binding.confined) and request.binding != "off"


def _gpus_of_job(request: JobRequest, node: Node, tasks_per_node: int, *, whole: bool) -> int:
    if request.gpus_per_task == 0 or whole:
        return 0 if request.gpus_per_task == 0 else len(node.gpus)
    return min(len(node.gpus), tasks_per_node * (request.gpus_per_task or 1))


def _check_slices(request: JobRequest, node: Node, tasks_per_node: int, *, by_local_rank: bool) -> None:
    if not node.gpu_slices or request.gpus_per_task == 0 or tasks_per_node == 1:
        return
    if by_local_rank and request.framework:
        raise BadInputError(
            f"{counted(tasks_per_node, 'rank')} per node on MIG instances ({node.gpu_type}): a process"
            f" sees one of them, and {request.framework} cannot communicate between them",
            "--tasks-per-node 1, or whole GPUs: --gpu-type",
        )


def _memory(request: JobRequest, node: Node, part: Fraction, cores: int) -> str | None:
    """Return the part of a node's memory that goes with these GPUs, or these cores where they are more."""
    total = kibibytes(node.memory_request or "")
    if not total or request.memory:
        return None
    share = max(part, Fraction(min(cores, node.cores), node.cores))
    return f"{int(total * share) >> 10}M"


def documented_cores(request: JobRequest, profile: SiteProfile, tasks_per_node: int) -> FrameworkCores | None:
    """Return the site's list for the job's framework; None: there is none for this number of ranks.

    Nor is there one where the request says how many cores or threads each rank gets.
    """
    asked = request.cpus_per_task is not None or request.threads_per_core != 1
    found = None if asked else profile.binding.cores_for.get(request.framework or "")
    return found if found and len(found.cores) == tasks_per_node else None


def with_documented_cores(
    binding: NodeBinding, documented: FrameworkCores | None, topology: NodeTopology
) -> NodeBinding:
    """Return the binding with the site's cores; the GPUs of each rank stay."""
    if documented is None:
        return binding
    ranks = zip(binding.ranks, map(parse_cpu_list, documented.cores), strict=True)
    return NodeBinding(ranks=tuple(_moved(rank, cores, topology) for rank, cores in ranks))


def _moved(rank: RankBinding, cores: frozenset[int], topology: NodeTopology) -> RankBinding:
    numa = tuple(node.id for node in topology.numa_nodes if node.cpus & cores)
    groups = {core.l3 for core in topology.cores if core.l3 is not None and cores.intersection(core.cpus)}
    return replace(rank, cpus=tuple(sorted(cores)), numa=numa, l3=tuple(sorted(groups)))


def cores_line(request: JobRequest, profile: SiteProfile, tasks_per_node: int) -> list[str]:
    """Return the sentence on the cores for the head of a script."""
    documented = documented_cores(request, profile, tasks_per_node)
    if documented is None:
        return []
    source = source_of(profile, documented.source)
    return [f"Cores as the site documents them for {request.framework}: {documented.reason} ({source})."]


def threads_line(request: JobRequest, profile: SiteProfile, cores: int, reason: str) -> Line:
    """Return OMP_NUM_THREADS, which OpenMP, OpenBLAS and MKL read, for ranks with this number of cores."""
    documented = profile.binding.threads_for.get(request.framework or "")
    if documented is None or documented.value >= cores or request.cpus_per_task is not None:
        return Line(text=f"export OMP_NUM_THREADS={max(1, cores)}", reason=reason)
    source = source_of(profile, documented.source)
    text = f"export OMP_NUM_THREADS={documented.value}"
    return Line(text=text, reason=f"threads for each rank: {documented.reason}", source=source)
