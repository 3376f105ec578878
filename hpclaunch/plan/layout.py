"""A job as its plan needs it: its sizes, how they follow from --nodes and --tasks, its place and its GPUs."""

import msgspec

from hpclaunch.binding.node_binding import NodeBinding
from hpclaunch.errors import BadInputError
from hpclaunch.framework_table import FRAMEWORKS, Framework
from hpclaunch.plan.launch_plan import AtStart, Preflight, Staging, Supervision
from hpclaunch.plan.node_share import NodeShare
from hpclaunch.plan.request import JobRequest, Problem, Setting
from hpclaunch.plan.request_rules import QueueChoice, array_indices
from hpclaunch.plan.worker_launchers import Started
from hpclaunch.plural import counted
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.scheduler_interface import Allocation, Scheduler
from hpclaunch.site.schema import Billing, SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.walltime import format_walltime

_TORCH = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
BUNDLED = Framework(rank_variables=_TORCH, rendezvous=True, timeline=True)
"""The bundled runner: it takes the GPU of its local rank modulo those that it sees."""
UNKNOWN = Framework(rank_variables=_TORCH, rendezvous=True, timeline=True, device_by_local_rank=True)
"""None was named, and the program does not show one."""


def framework_of(request: JobRequest) -> Framework:
    """Return the row of the request's framework."""
    if request.framework:
        return FRAMEWORKS[request.framework]
    return BUNDLED if request.command.bundled else UNKNOWN


class JobPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the place where the job's folder will be; all None for a dry run."""

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


Gpus = tuple[tuple[int, ...], ...]
"""Indices of the GPUs of each local rank."""


class JobLayout(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its machine, and its numbers, settled."""

    request: JobRequest
    profile: SiteProfile
    place: JobPlace
    settings: tuple[Setting, ...]
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
    def framework(self) -> Framework:
        """The row of its framework."""
        return framework_of(self.request)

    @property
    def scheduler(self) -> Scheduler:
        """The site's scheduler."""
        return site_scheduler(self.profile)

    @property
    def launcher(self) -> Launcher:
        """The site's launcher."""
        return site_launcher(self.profile)

    @property
    def overlapping(self) -> tuple[str, ...]:
        """Words that start one process on each node beside the ranks; none where the script runs on it."""
        words = (*self.launcher.one_per_node(self.nodes), *self.launcher.overlap)
        return () if self.scheduler.starts_at_once else words

    @property
    def is_queued(self) -> bool:
        """Whether a scheduler starts it, later."""
        return not (self.scheduler.starts_at_once or self.place.allocation)

    @property
    def queue(self) -> str | None:
        """The name of its queue; None: the site's usual one, or none."""
        return self.choice.name

    @property
    def limit_s(self) -> int | None:
        """Its walltime in seconds; None where nothing ends it."""
        return self.walltime_s if self.is_queued else None

    @property
    def gpus(self) -> Gpus:
        """The planned GPUs of each local rank; empty where no GPU is planned."""
        if self.at_start:
            return self.at_start.gpus
        gpus = tuple(rank.gpus for rank in self.binding.ranks) if self.binding else self.gpus_by_number
        return gpus if any(gpus) else ()

    @property
    def visible(self) -> tuple[int, ...]:
        """The GPUs that all ranks of a node see; empty: each sees only its own."""
        return visible_gpus(self.framework.device_by_local_rank, self.gpus)

    @property
    def local_rank_fits(self) -> bool:
        """Whether LOCAL_RANK is the number of a GPU that the rank sees, or no GPU is planned."""
        return not (self.framework.device_by_local_rank and are_shared(self.gpus))

    @property
    def at_start(self) -> AtStart | None:
        """How each rank binds itself at its start; None: it does not."""
        return self.share.at_start if self.share else None

    @property
    def bound_cpus(self) -> frozenset[int]:
        """CPUs of a node that its binding names; empty without one."""
        ranks = self.binding.ranks if self.binding else ()
        return frozenset(cpu for rank in ranks for cpu in rank.cpus)

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
    def requested_cpus(self) -> int | None:
        """The same for the scheduler; None beside a mask of CPUs, with which Slurm refuses -c."""
        return None if self.binding else self.launched_cpus

    @property
    def launched_cpus(self) -> int:
        """Hardware threads of each of them."""
        return self.cpus_per_task * (self.tasks_per_node // self.launched_per_node)


class LaunchPlan(JobLayout, frozen=True, kw_only=True):
    """Everything a script needs, computed; templates only lay it out."""

    header: tuple[Line, ...]
    """Scheduler directives in order, without the #SBATCH or #PBS sentinel."""
    environment: tuple[Line, ...]
    """Shell lines before the launch: setup, exports, unsets."""
    rank_setup: tuple[Line, ...]
    """Shell lines that each rank runs before it becomes the command."""
    node_setup: tuple[Line, ...] = ()
    """Shell lines that run on each node before the program's own launcher."""
    argv: tuple[str, ...]
    """The command, exactly as given; the template quotes it."""
    proof: dict[str, tuple[str, ...]] = {}
    """The reference for each rank's binding, a word for each local rank: its ``cpus``, the ``numa`` nodes
    of its cores, its GPUs' addresses (``bus``) and, where it sees more GPUs, the numbers of its ``own``."""
    launch: tuple[str, ...]
    """The launcher and its options as shell text."""
    supervision: Supervision | None
    """None: neither restarts nor a watchdog were requested."""
    preflight: Preflight | None = None
    staging: Staging | None = None
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


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
            raise BadInputError(f"--{name.replace('_', '-')} {value}: it must be at least {least}")
    usual = max(1, (gpus_per_node or 1) // (request.gpus_per_task or 1)) if request.gpus_per_task != 0 else 1
    tasks, nodes, per_node = request.tasks, request.nodes, request.tasks_per_node
    if one_node:
        if nodes not in (None, 1):
            raise BadInputError(
                f"--nodes {nodes}: site {request.site} is this one machine",
                "leave --nodes out; ranks are --tasks, in a study --ranks",
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


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """An upper bound: whole nodes, for the whole walltime, with all restarts and all jobs of an array."""

    amount: float
    unit: str
    text: str
    """With the arithmetic, for the user."""


def cost_at_most(job: JobLayout) -> Cost | None:
    """Return what the job costs at most; None where the profile does not know the rule."""
    billing, request = job.profile.billing, job.request
    if billing is None:
        return None
    runs = 1 + request.max_restarts
    jobs = len(array_indices(request.array, job.scheduler)) if request.array else 1
    hours = job.walltime_s / 3600
    amount = job.nodes * hours * billing.per_node_hour * runs * jobs
    factors = [
        counted(job.nodes, "node"),
        format_walltime(job.walltime_s),
        f"{billing.per_node_hour:g} {billing.unit} per node and hour",
        *([f"{runs} runs"] if runs > 1 else []),
        *([f"{jobs} jobs"] if jobs > 1 else []),
    ]
    text = f"it costs at most {amount:,.4g} {billing.unit}: {' x '.join(factors)}"
    return Cost(amount=amount, unit=billing.unit, text=text)


def cost_of(billing: Billing, nodes: int, seconds: int) -> Cost:
    """Return what whole nodes cost that a job has had for this long."""
    amount = nodes * seconds / 3600 * billing.per_node_hour
    rate = f"{billing.per_node_hour:g} {billing.unit} per node and hour"
    factors = f"{counted(nodes, 'node')} x {format_walltime(seconds)} x {rate}"
    return Cost(amount=amount, unit=billing.unit, text=f"{amount:,.4g} {billing.unit}: {factors}")


def check_budget(job: JobLayout) -> None:
    """Refuse a job that may cost more than ``--budget``, or whose cost is unknown then."""
    budget = job.request.budget
    if budget is None or job.place.allocation:
        return
    cost = cost_at_most(job)
    if cost is None:
        raise BadInputError(
            f"--budget {budget:g}: the profile of {job.profile.name} does not state what a job costs",
            "leave --budget out, or add billing: to your own profile",
        )
    if cost.amount > budget:
        raise BadInputError(f"--budget {budget:g}: {cost.text}", "request fewer nodes or a shorter walltime")


# The rule: where a program takes the GPU whose number is its local rank, each rank sees all planned GPUs of
# its node, and the GPU with the number of its local rank is its own. Programs do so as their tutorials say
# (``cuda:LOCAL_RANK`` in torch's and DeepSpeed's; "Pin each GPU to a single process" in Horovod's README; JAX
# on Slurm and Open MPI, jax/_src/clusters). A program of which nothing is known is taken for one of these: it
# sees no fewer GPUs than its LOCAL_RANK counts. Ranks that take the first GPU that they see, such as those of
# mpi4py programs, see only their own.


def are_shared(gpus: Gpus) -> bool:
    """Whether two ranks of a node have the same GPU, or one has none."""
    every = [gpu for each in gpus for gpu in each]
    return len(set(every)) < len(every) or not all(gpus)


def visible_gpus(by_local_rank: bool, gpus: Gpus) -> tuple[int, ...]:
    """Return what all ranks of a node see, in this order; empty: each sees only its own.

    First the first GPU of each local rank, then the second ones: the GPU numbered LOCAL_RANK is a rank's own.
    """
    if not by_local_rank or not gpus or are_shared(gpus):
        return ()
    most = max(map(len, gpus))
    return tuple(each[at] for at in range(most) for each in gpus if at < len(each))


def positions(gpus: Gpus, visible: tuple[int, ...]) -> Gpus:
    """Return the places of each local rank's GPUs in the list of visible ones."""
    return tuple(tuple(visible.index(gpu) for gpu in each) for each in gpus)


def check_sharing(job: JobLayout) -> None:
    """Refuse ranks that share GPUs where the named framework numbers its GPU by the local rank."""
    framework = job.request.framework
    if framework is None or job.local_rank_fits:
        return
    count = len({gpu for each in job.gpus for gpu in each})
    raise BadInputError(
        f"{len(job.gpus)} ranks per node share {counted(count, 'GPU')}, but a program of {framework} takes"
        f" the GPU whose number is its local rank: from local rank {count} on there is none",
        f"--tasks-per-node {count} gives each rank its own; --gpus-per-task 0 is for programs without GPUs;"
        " --framework none shows each rank one GPU, as number 0",
    )


def sharing_note(job: JobLayout) -> str | None:
    """Return the note for an unknown program whose ranks share GPUs; None: they do not."""
    if job.local_rank_fits:
        return None
    count = len({gpu for each in job.gpus for gpu in each})
    return (
        f"{len(job.gpus)} ranks per node share {counted(count, 'GPU')}: each rank sees only its own, as"
        " number 0, and LOCAL_RANK is not set, since a program could take it for the number of a GPU"
    )
