"""Whether a job fits the allocation that this shell is in already."""

from hpclaunch.errors import BadInputError
from hpclaunch.plan.request import JobRequest
from hpclaunch.plural import counted
from hpclaunch.scheduler.scheduler_interface import Allocation


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
                f"{name} is for jobs in the queue, this one runs in {_name(allocation)}", queue
            )
    if nodes > allocation.nodes:
        raise BadInputError(f"{nodes} nodes requested; {_name(allocation)} has {allocation.nodes}", queue)
    cpus = tasks_per_node * (request.cpus_per_task or 1) * request.threads_per_core
    if allocation.cpus_per_node is not None and cpus > allocation.cpus_per_node:
        raise BadInputError(
            f"{counted(cpus, 'CPU')} per node requested ({counted(tasks_per_node, 'rank')});"
            f" {_name(allocation)} has {allocation.cpus_per_node}",
            f"ask for fewer, or {queue}",
        )


def _name(allocation: Allocation) -> str:
    return f"the allocation {allocation.job_id}"
