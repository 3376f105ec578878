"""A job as its plan needs it: its sizes, how they follow from --nodes and --tasks, its place, its GPUs.

Where the scheduler reports the sizes of nodes, while where their GPUs are attached is not known, a job gets a
part of each node, and its ranks bind there by what they see at their start. The parts of a LaunchPlan stand
here, too.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Literal

import msgspec
from msgspec.structs import replace

from hpclaunch.amounts import amount_of, counted
from hpclaunch.binding.node_binding import NodeBinding, RankBinding, share_gpus
from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.framework_table import FRAMEWORKS, Framework
from hpclaunch.plan.request import JobRequest, Problem, Setting
from hpclaunch.plan.request_rules import QueueChoice, array_indices, kibibytes
from hpclaunch.plan.script_commands import ScriptCommand
from hpclaunch.plan.worker_launchers import Started
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.scheduler_interface import Allocation, Scheduler
from hpclaunch.site.schema import Billing, FrameworkCores, Node, SiteProfile
from hpclaunch.site.site_scheduler import source_of
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.walltime import format_walltime


class Supervision(msgspec.Struct, frozen=True, kw_only=True):
    """The watchdog and the restarts of the launch."""

    max_restarts: int
    exit_code: int
    timer_s: int | None
    idle_s: int | None
    look: tuple[str, ...] = ()
    look_s: int = 0


class AtStart(msgspec.Struct, frozen=True, kw_only=True):
    """How each rank chooses its cores at its start (``remote/bind_here.sh``)."""

    ranks: int
    cores: int
    threads: int
    gpus: tuple[tuple[int, ...], ...]
    slices: bool
    some_gpus: bool


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """How each node is checked before the ranks start; all words are shell text."""

    probe: tuple[str, ...]
    judge: tuple[str, ...]
    limit_s: int
    again: str | None


class Staging(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are copied to the nodes before the ranks start; all words are shell text."""

    launch: tuple[str, ...]
    root: str
    pairs: tuple[tuple[str, str], ...]
    links: Literal["refuse", "keep"]
    afterwards: Literal["stay", "leave", "here", "keep"]


class KnownJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its way to a plan: request, site and settings so far, and remarks about them."""

    request: JobRequest
    settings: tuple[Setting, ...]
    profile: SiteProfile
    is_file: bool = False
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    commands: tuple[ScriptCommand, ...] = ()


class NodeShare(msgspec.Struct, frozen=True, kw_only=True):
    """The job's request on each node."""

    gpus: int
    cores: int
    memory: str | None
    at_start: AtStart | None = None


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
    of = len(node.gpus) or 1
    part = gpus or of * whole
    cores = request.cpus_per_task or max(1, node.cores * part // of // tasks_per_node)
    share = NodeShare(gpus=gpus, cores=cores, memory=_memory(request, node, part, tasks_per_node * cores))
    if not _may_bind(request, profile, every_core=whole or tasks_per_node * cores == node.cores):
        return share
    at_start = AtStart(
        ranks=tasks_per_node,
        cores=cores,
        threads=request.threads_per_core,
        gpus=tuple(share_gpus(range(gpus), tasks_per_node, request.gpus_per_task)) if gpus else (),
        slices=node.gpu_slices,
        some_gpus=0 < part < of,
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
        ranks = counted(tasks_per_node, "rank")
        raise BadInputError.case("MIG: several ranks", ranks=ranks, gpu=node.gpu_type, request=request)


def _memory(request: JobRequest, node: Node, part: int, cores: int) -> str | None:
    """Return the part of a node's memory of this many GPUs, or of these cores where they are more."""
    total = kibibytes(node.memory_request or "")
    if not total or request.memory:
        return None
    share = max(total * part // (len(node.gpus) or 1), total * min(cores, node.cores) // node.cores)
    return f"{share >> 10}M"


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
    files: str | None = None
    job_id: str | None = None
    python: str | None = None
    after: tuple[str, ...] | None = None
    allocation: Allocation | None = None
    mpi_plugin: str | None = None
    mpi_library: str | None = None
    mpi_reason: str = "chosen when the job is submitted: what srun offers and the program's MPI needs"


Gpus = tuple[tuple[int, ...], ...]
"""Indices of the GPUs of each local rank."""


class JobLayout(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its machine, and its numbers, settled."""

    request: JobRequest
    profile: SiteProfile
    scheduler: Scheduler
    launcher: Launcher
    framework: Framework
    place: JobPlace
    settings: tuple[Setting, ...]
    nodes: int
    tasks_per_node: int
    walltime_s: int
    choice: QueueChoice
    binding: NodeBinding | None
    gpus_per_node: int | None
    bus_ids: dict[int, str]
    cores_per_task: int
    cpus_per_task: int
    gpus_by_number: tuple[tuple[int, ...], ...] = ()
    share: NodeShare | None = None
    launched: Started | None = None
    started: Started | None = None
    no_startup: str = ""

    @property
    def overlapping(self) -> tuple[str, ...]:
        """Words that start a process on each node, next to the ranks; none where the script runs there."""
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
    def launched_cpus(self) -> int:
        """Hardware threads of each of them."""
        return self.cpus_per_task * (self.tasks_per_node // self.launched_per_node)

    @property
    def requested_cpus(self) -> int | None:
        """The same for the scheduler; None with a mask of CPUs, where Slurm refuses -c."""
        return None if self.binding else self.launched_cpus


class LaunchPlan(JobLayout, frozen=True, kw_only=True):
    """Everything a script needs, computed; templates only lay it out."""

    header: tuple[Line, ...]
    environment: tuple[Line, ...]
    rank_setup: tuple[Line, ...]
    node_setup: tuple[Line, ...] = ()
    argv: tuple[str, ...]
    proof: dict[str, tuple[str, ...]] = {}
    launch: tuple[str, ...]
    supervision: Supervision | None
    preflight: Preflight | None = None
    staging: Staging | None = None
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


_ONE_OR_MORE = ("nodes", "tasks", "tasks_per_node", "cpus_per_task", "threads_per_core")
_COUNTS = {**dict.fromkeys(_ONE_OR_MORE, 1), "gpus_per_task": 0}
"""Count -> its least value."""


def resolve(request: JobRequest, gpus_per_node: int | None, *, one_node: bool = False) -> tuple[int, int]:
    """Return (nodes, tasks per node).

    Every node gets the same number of ranks, since one binding serves them all. Where the request leaves the
    ranks open there is one for each GPU (or each ``gpus_per_task`` GPUs), else one for each node; likewise
    for ranks without GPUs (``gpus_per_task`` 0). ``one_node``: the machine is this one alone. Raises
    BadInputError for counts that are too low and for counts that contradict each other.
    """
    for name, least in _COUNTS.items():
        value = getattr(request, name)
        if value is not None and value < least:
            raise BadInputError(f"--{name.replace('_', '-')} {value}: it must be at least {least}")
    usual = max(1, (gpus_per_node or 1) // (request.gpus_per_task or 1)) if request.gpus_per_task != 0 else 1
    tasks, nodes, per_node = request.tasks, request.nodes, request.tasks_per_node
    if one_node:
        if nodes not in (None, 1):
            raise BadInputError.case("nodes: one machine", nodes=nodes, site=request.site)
        nodes = 1
    if tasks is None:
        return nodes or 1, per_node or usual
    if nodes is None:
        nodes = -(-tasks // (per_node or usual))
    if per_node is None:
        per_node = max(1, tasks // nodes)
    if nodes * per_node != tasks:
        fit, among = nodes * per_node, counted(nodes, "node")
        values = {"tasks": tasks, "each": per_node, "nodes": nodes, "right": counted(fit, "task")}
        raise BadInputError.case("tasks: uneven", fit=fit, among=among, **values)
    return nodes, per_node


def check_fit(allocation: Allocation, request: JobRequest, nodes: int, tasks_per_node: int) -> None:
    """Refuse what the allocation has no room for, and what only a job in the queue can have."""
    for name, value in (
        ("--after", request.after),
        ("--begin", request.begin),
        ("--array", request.array),
        ("--max-restarts", request.max_restarts),
    ):
        if value:
            raise BadInputError.case("here: of the queue", name=name, allocation=allocation)
    if nodes > allocation.nodes:
        raise BadInputError.case("here: nodes", nodes=nodes, allocation=allocation)
    cpus = tasks_per_node * (request.cpus_per_task or 1) * request.threads_per_core
    if allocation.cpus_per_node is not None and cpus > allocation.cpus_per_node:
        asked = f"{counted(cpus, 'CPU')} per node requested ({counted(tasks_per_node, 'rank')})"
        raise BadInputError.case("here: CPUs", asked=asked, allocation=allocation)


def _words(allocation: Allocation) -> str:
    return f"the allocation {allocation.job_id}"


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """An upper bound: whole nodes, for the whole walltime, with all restarts and all jobs of an array."""

    amount: float
    unit: str
    text: str


def cost_at_most(job: JobLayout) -> Cost | None:
    """Return what the job costs at most; None where the profile does not know the rule."""
    billing, request = job.profile.billing, job.request
    if billing is None:
        return None
    runs = 1 + request.max_restarts
    jobs = len(array_indices(request.array, job.scheduler)) if request.array else 1
    cost = cost_of(billing, job.nodes, job.walltime_s, {"runs": runs, "jobs": jobs})
    return replace(cost, text=f"it costs at most {cost.text}")


def spread_note(job: JobLayout) -> Iterator[str]:
    """Yield that each rank takes a whole node where only ``--tasks`` was given and no GPU settles it."""
    counts = (job.request.nodes, job.request.tasks_per_node, job.gpus_per_node)
    if job.is_queued and job.nodes > job.tasks_per_node == 1 and not any(counts):
        yield note_text("ranks: spread", ranks=job.tasks)


def array_note(job: JobLayout) -> Iterator[str]:
    """Yield that the queue takes fewer jobs of one user than the array has."""
    request, queue = job.request, job.choice.queue
    jobs = len(array_indices(request.array, job.scheduler)) if request.array else 1
    if queue and queue.max_jobs and jobs > queue.max_jobs:
        yield note_text("array: too many", jobs=jobs, queue=job.choice.name, most=queue.max_jobs)


def cost_of(billing: Billing, nodes: int, seconds: int, times: Mapping[str, int] | None = None) -> Cost:
    """Return what whole nodes cost for this long; ``times``: noun in the plural -> how many of it."""
    amount = nodes * seconds / 3600 * billing.per_node_hour * prod((times or {}).values())
    rate = f"{amount_of(billing.per_node_hour, billing.unit, 'g')} per node and hour"
    more = [f"{number} {noun}" for noun, number in (times or {}).items() if number > 1]
    factors = " x ".join((counted(nodes, "node"), format_walltime(seconds), rate, *more))
    text = f"{amount_of(amount, billing.unit)}: {factors}"
    return Cost(amount=amount, unit=billing.unit, text=text)


def check_budget(job: JobLayout) -> None:
    """Refuse a job that may cost more than ``--budget``, or whose cost is unknown then."""
    budget = job.request.budget
    if budget is None or job.place.allocation:
        return
    cost = cost_at_most(job)
    if cost is None:
        raise BadInputError.case("budget: unknown cost", budget=budget, site=job.profile.name)
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
    values = {"ranks": len(job.gpus), "gpus": counted(count, "GPU"), "count": count}
    raise BadInputError.case("GPUs: shared", framework=framework, **values)


def sharing_note(job: JobLayout) -> str | None:
    """Return the note for an unknown program whose ranks share GPUs; None: they do not."""
    if job.local_rank_fits:
        return None
    count = len({gpu for each in job.gpus for gpu in each})
    return note_text("GPUs: shared", ranks=len(job.gpus), gpus=counted(count, "GPU"))
