"""Launchers of ranks inside a job: the words before the program, and how a rank learns its number."""

from collections.abc import Iterable

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.job_header import Line


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks for a launcher to start; ``cpu_bind`` is the launcher's own spelling, None: it binds nothing."""

    nodes: int
    tasks_per_node: int
    cpus_per_task: int = 1
    threads_per_core: int = 1
    bound_cpus: int = 0
    gpus_per_task: int = 0
    cpu_bind: str | None = None
    ranks_bind: bool = False
    mpi_plugin: str | None = None
    options: tuple[str, ...] = ()
    in_allocation: bool = False

    @property
    def tasks(self) -> int:
        """Ranks of the whole job."""
        return self.nodes * self.tasks_per_node


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """One launcher under one scheduler."""

    name: str
    rank: str
    local_rank: str
    start: str = ""
    each_node: str = ""
    shell_lines: tuple[Line, ...] = ()
    cpu_bindings: tuple[str, ...] = ()
    cores_option: str = "--cpu-bind=cores"
    unbound: str | None = None
    takes_plugin: bool = False
    plugin_list: tuple[str, ...] = ()
    overlap: tuple[str, ...] = ()
    known_to_jax: bool = False
    rank_guard: str | None = None
    rank_end: str | None = None
    session_file: str | None = None
    text_file: str | None = None
    starts_mpi: bool = True
    without_mpi: str | None = None

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Return the launcher's words as shell text; the script's shell expands variables in them."""
        values = {**msgspec.structs.asdict(launch), "tasks": launch.tasks, "cpu_bind": launch.cpu_bind or ""}
        return (*self.start.format_map(values).split(), *launch.options)

    def one_per_node(self, nodes: int) -> tuple[str, ...]:
        """Return the words, as shell text, that start one unbound process per node of the job.

        They are not MPI programs; one that fails must not end the rest. The names of the nodes, each once,
        are in the file ``nodes`` of the job's folder.
        """
        return tuple(self.each_node.format(nodes=nodes).split())

    def words_in_allocation(self, launch: Launch) -> tuple[str, ...]:
        """Return the words that start a few ranks of a check in an allocation that has other ranks, too."""
        return self.words(launch)

    def environment(self, cpus_per_task: int | None, header: Iterable[str]) -> tuple[Line, ...]:
        """Return the shell lines that the launcher needs before it is called.

        ``cpus_per_task``: as the job requested it of the scheduler, None: it did not. ``header``: the options
        that the job was submitted with.
        """
        return self.shell_lines

    def outer_settings(self, header: Iterable[str]) -> tuple[str, ...]:
        """Return variables of an outer allocation that the launcher would read as options, as shell words.

        The options of ``header`` set theirs again.
        """
        return ()


LINES = msgspec.json.decode(text_beside(__file__, "lines.json"), type=dict[str, tuple[Line, ...]])
"""Lines before a launcher. Open MPI binds by default, counts cores and refuses root; hydra does not."""


class Mpiexec(Launcher, frozen=True, kw_only=True):
    """Any MPI's mpiexec: only options that Open MPI 4 and 5 and MPICH's hydra share."""

    name: str = "mpiexec"
    start: str = "mpiexec -n {tasks}"
    each_node: str = 'mpiexec -n {nodes} -machinefile "$HPCLAUNCH_JOB_FOLDER/nodes"'
    # Open MPI's names, then those of MPICH's hydra.
    rank: str = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    local_rank: str = "${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}"
    shell_lines: tuple[Line, ...] = LINES["unbound"]
    rank_end: str | None = "mpi_rank_end.sh"


class Mpirun(Mpiexec, frozen=True, kw_only=True):
    """The mpirun of an MPI that does not find the job's nodes in the scheduler's variables."""

    each_node: str = 'mpirun -n {nodes} -machinefile "$HPCLAUNCH_JOB_FOLDER/nodes"'
