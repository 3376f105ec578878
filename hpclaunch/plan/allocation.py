"""An allocation that this shell is in already (``salloc``): a job then starts in it instead of queueing."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.plan.request import JobRequest


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """What Slurm gave, as its variables say (man salloc, OUTPUT ENVIRONMENT VARIABLES)."""

    job_id: str
    nodes: int
    cpus_per_node: int | None
    """CPUs, hardware threads counted, on the node that has the fewest."""


def allocation_here(environ: Mapping[str, str]) -> Allocation | None:
    """Return the allocation of this shell; None outside one, and in a batch job.

    A batch job that calls ``submit`` means the queue: it is a script that makes further jobs.
    """
    job_id = environ.get("SLURM_JOB_ID", "")
    if not job_id or environ.get("ENVIRONMENT") == "BATCH":
        return None
    nodes = environ.get("SLURM_JOB_NUM_NODES") or environ.get("SLURM_NNODES") or "1"
    cpus = [
        int(text) for text in re.findall(r"(\d+)(?:\(x\d+\))?", environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    ]
    return Allocation(
        job_id=job_id, nodes=int(nodes) if nodes.isdigit() else 1, cpus_per_node=min(cpus, default=None)
    )


def check_fit(allocation: Allocation, request: JobRequest, nodes: int, tasks_per_node: int) -> None:
    """Refuse what the allocation has no room for, and what only a job in the queue can have."""
    queue = "--no-here queues a job of its own"
    for name, value in (
        ("--after", request.after),
        ("--array", request.array),
        ("--max-restarts", request.max_restarts),
    ):
        if value:
            raise BadInputError(
                f"{name} is for jobs in the queue, this one runs in {_name(allocation)}", queue
            )
    if nodes > allocation.nodes:
        raise BadInputError(f"{nodes} nodes asked; {_name(allocation)} has {allocation.nodes}", queue)
    cpus = tasks_per_node * (request.cpus_per_task or 1) * request.threads_per_core
    if allocation.cpus_per_node is not None and cpus > allocation.cpus_per_node:
        raise BadInputError(
            f"{cpus} CPUs a node asked ({tasks_per_node} ranks); {_name(allocation)} has"
            f" {allocation.cpus_per_node}",
            f"ask for fewer, or {queue}",
        )


def _name(allocation: Allocation) -> str:
    return f"the allocation {allocation.job_id}"
