"""The sizes of a job as its plan needs them, how they follow from --nodes and --tasks, and its place."""

import msgspec

from hpclaunch.binding.node_binding import NodeBinding
from hpclaunch.errors import BadInputError
from hpclaunch.plan.launch_plan import AtStart
from hpclaunch.plan.node_share import NodeShare
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.request_rules import QueueChoice
from hpclaunch.plan.worker_launchers import Started
from hpclaunch.plural import counted
from hpclaunch.scheduler.scheduler_interface import Allocation


class JobPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan must know about the place where the job's folder will be; all None for a dry run."""

    folder: str | None = None
    """Absolute path of the job folder."""
    files: str | None = None
    """Folder of the script's files; None: ``files`` in the job folder."""
    job_id: str | None = None
    python: str | None = None
    """Interpreter for jobs on this machine (its folder goes first on PATH, for the MPI installed with it)."""
    after: tuple[str, ...] | None = None
    """The scheduler's ids of the jobs to wait for; None: as in the request."""
    allocation: Allocation | None = None
    """The allocation to start in; None: the job is queued."""
    mpi_plugin: str | None = None
    """The plugin that the target offers, looked up only where the profile leaves it open."""
    mpi_reason: str = "chosen when the job is submitted: what srun offers and the program's MPI needs"


class JobLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a job, settled."""

    nodes: int
    tasks_per_node: int
    walltime_s: int
    choice: QueueChoice
    binding: NodeBinding | None
    gpus_per_node: int | None
    bus_ids: dict[int, str]
    """GPU -> PCI address, where the topology knows it."""
    cores_per_task: int
    """Cores of each rank where the launcher chooses them (no ``binding``)."""
    cpus_per_task: int
    """The same as the scheduler counts: hardware threads of those cores."""
    gpus_by_number: tuple[tuple[int, ...], ...] = ()
    """GPUs of each local rank in the order of their numbers, where the launcher chooses the cores."""
    share: NodeShare | None = None
    """The job's part of a node, where the scheduler alone describes the nodes."""
    started: Started | None = None
    """The program's own launcher, which starts the ranks of each node; None: the site's does."""

    @property
    def at_start(self) -> AtStart | None:
        """How each rank binds itself at its start; None: it does not."""
        return self.share.at_start if self.share else None

    @property
    def tasks(self) -> int:
        """Ranks of the whole job."""
        return self.nodes * self.tasks_per_node

    @property
    def starter(self) -> str:
        """The processes that the site's launcher starts, in words."""
        return f"{self.started.launcher.name}, which starts the ranks" if self.started else "ranks"

    @property
    def launched_per_node(self) -> int:
        """Processes of each node that the site's launcher starts."""
        return 1 if self.started else self.tasks_per_node

    @property
    def launched_cpus(self) -> int:
        """Hardware threads of each of them."""
        return self.cpus_per_task * (self.tasks_per_node // self.launched_per_node)


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
