"""The part of a node that a job gets, and how its ranks bind themselves there. Pure.

For nodes whose sizes the scheduler reports, while where their GPUs are attached is not known.
"""

from fractions import Fraction

import msgspec

from hpclaunch.binding.locality import share_gpus
from hpclaunch.errors import BadInputError
from hpclaunch.plan.launch_plan import AtStart
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.request_rules import QueueChoice, kibibytes
from hpclaunch.plural import counted
from hpclaunch.site.schema import Node, SiteProfile


class NodeShare(msgspec.Struct, frozen=True, kw_only=True):
    """What the job requests of each node."""

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
