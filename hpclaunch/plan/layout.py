"""The sizes of a job, and the place of its folder, as its plan needs them."""

import msgspec

from hpclaunch.binding.node_binding import NodeBinding
from hpclaunch.plan.launch_plan import AtStart
from hpclaunch.plan.node_share import NodeShare
from hpclaunch.plan.request_rules import QueueChoice
from hpclaunch.plan.worker_launchers import Started
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
