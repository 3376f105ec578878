"""How many nodes, and how many ranks on each: --nodes, --tasks, --tasks-per-node; room in an allocation."""

from hpclaunch.errors import BadInputError
from hpclaunch.plan.request import JobRequest
from hpclaunch.plural import counted
from hpclaunch.scheduler.scheduler_interface import Allocation

_COUNTS = {"nodes": 1, "tasks": 1, "tasks_per_node": 1, "gpus_per_task": 0, "cpus_per_task": 1} | {
    "threads_per_core": 1
}
"""Count -> its least value."""


def resolve(request: JobRequest, gpus_per_node: int | None, *, one_node: bool = False) -> tuple[int, int]:
    """Return (nodes, tasks per node).

    Every node gets the same number of ranks, since one binding serves them all. Where the request leaves the
    ranks open there is one for each GPU (or each ``gpus_per_task`` GPUs), else one for each node; likewise
    for ranks without GPUs (``gpus_per_task`` 0).
    ``one_node``: the machine is this one alone.
    Raises BadInputError for counts that are too low and for counts that contradict each other.
    """
    for name, least in _COUNTS.items():
        value = getattr(request, name)
        if value is not None and value < least:
            raise BadInputError(f"{_option(name)} {value}: it must be at least {least}")
    usual = max(1, (gpus_per_node or 1) // (request.gpus_per_task or 1)) if request.gpus_per_task != 0 else 1
    tasks, nodes, per_node = request.tasks, request.nodes, request.tasks_per_node
    if one_node:
        if nodes not in (None, 1):
            raise BadInputError(
                f"--nodes {nodes}: site {request.site} is this one machine", "leave --nodes out"
            )
        nodes = 1
    if tasks is None:
        return nodes or 1, per_node or usual
    if nodes is None:
        nodes = -(-tasks // (per_node or usual))
    if per_node is None:
        per_node = max(1, tasks // nodes)
    if nodes * per_node != tasks:
        raise BadInputError(
            f"--tasks {tasks} do not fit on {counted(nodes, 'node')} with the same number on each"
            f" ({nodes} x {per_node} = {nodes * per_node})",
            f"ask for {counted(nodes * per_node, 'task')}, or set --nodes and --tasks-per-node",
        )
    return nodes, per_node


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def check_fit(allocation: Allocation, request: JobRequest, nodes: int, tasks_per_node: int) -> None:
    """Refuse what the allocation has no room for, and what only a job in the queue can have."""
    queue = "--no-here queues the job instead"
    for name, value in (
        ("--after", request.after),
        ("--begin", request.begin),
        ("--array", request.array),
        ("--max-restarts", request.max_restarts),
    ):
        if value:
            raise BadInputError(
                f"{name} is for jobs in the queue, this one runs in {_words(allocation)}", queue
            )
    if nodes > allocation.nodes:
        raise BadInputError(f"{nodes} nodes requested; {_words(allocation)} has {allocation.nodes}", queue)
    cpus = tasks_per_node * (request.cpus_per_task or 1) * request.threads_per_core
    if allocation.cpus_per_node is not None and cpus > allocation.cpus_per_node:
        raise BadInputError(
            f"{counted(cpus, 'CPU')} per node requested ({counted(tasks_per_node, 'rank')});"
            f" {_words(allocation)} has {allocation.cpus_per_node}",
            f"ask for fewer, or {queue}",
        )


def _words(allocation: Allocation) -> str:
    return f"the allocation {allocation.job_id}"
