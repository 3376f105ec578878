"""Launchers of ranks inside a job: the words before the program, and how a rank learns its number."""

from collections.abc import Iterable

import msgspec

from hpclaunch.scheduler.job_header import Line


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks for a launcher to start; ``cpu_bind`` is the launcher's own spelling, None: it binds nothing."""

    nodes: int
    tasks_per_node: int
    cpus_per_task: int = 1
    threads_per_core: int = 1
    bound_cpus: int = 0
    """Most CPUs that a rank's shell binds itself to; 0: the ranks do not bind themselves."""
    gpus_per_task: int = 0
    cpu_bind: str | None = None
    ranks_bind: bool = False
    """Whether each rank's shell binds itself and chooses its GPUs, so that the launcher must do neither."""
    mpi_plugin: str | None = None
    options: tuple[str, ...] = ()
    """Further options from the site profile, such as --network=disable_rdzv_get."""
    in_allocation: bool = False
    """True: the allocation around it was made for something else, so the sizes must be given."""

    @property
    def tasks(self) -> int:
        """Ranks of the whole job."""
        return self.nodes * self.tasks_per_node


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """One launcher under one scheduler."""

    name: str
    """How a profile names it."""
    rank: str
    """A rank's number, as a shell expression that the rank's shell expands."""
    local_rank: str
    start: str = ""
    """Its words for all ranks as shell text, with fields and properties of ``Launch`` in braces."""
    each_node: str = ""
    """The same for one process on each of ``{nodes}`` nodes."""
    shell_lines: tuple[Line, ...] = ()
    """Lines that the shell of a job needs before it."""
    cpu_bindings: tuple[str, ...] = ()
    """Values of ``binding.cpu`` in a profile that are options of this launcher; ``taskset`` and ``none`` fit
    every launcher."""
    cores_option: str = "--cpu-bind=cores"
    """Its words for ``cores`` of those, each rank on its own share of the job's cores."""
    unbound: str | None = None
    """Its words for processes that may use all CPUs of the job; None: those that it starts may."""
    takes_plugin: bool = False
    """Whether ``--mpi`` of submit is an option of it."""
    plugin_list: tuple[str, ...] = ()
    """Command that lists its MPI plugins; empty: it has none to choose from."""
    overlap: tuple[str, ...] = ()
    """Options that let a process per node run while the ranks do; empty: there are none."""
    known_to_jax: bool = False
    """Whether ``jax.distributed.initialize()`` finds the ranks that it starts, by its own variables."""
    rank_guard: str | None = None
    """File of ``hpclaunch/remote`` whose function, of the same name, ends a job whose ranks would not find
    each other, where that is certain."""
    rank_end: str | None = None
    """The same for what a rank's shell does after the program, whose exit code is the argument; None: the
    shell becomes the program."""
    session_file: str | None = None
    """File of ``hpclaunch/remote`` that makes a folder of the job's own for the launcher's session files."""
    text_file: str | None = None
    """File of ``hpclaunch/remote`` whose text ``words`` have as a variable, named like it without ``.sh``."""
    starts_mpi: bool = True
    """Whether ranks that it starts can find each other by MPI."""
    without_mpi: str | None = None
    """Launcher of the same scheduler for ranks that do without MPI; None: this one starts them, too."""

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


# Open MPI binds by default; MPICH's hydra does not bind and ignores these.
UNBOUND = Line(
    text="export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none",
    reason="Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it",
)
# For Open MPI's names, then MPICH hydra's.
MPIEXEC_RANK = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
MPIEXEC_LOCAL_RANK = "${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}"


class Mpiexec(Launcher, frozen=True, kw_only=True):
    """Any MPI's mpiexec: only options that Open MPI 4 and 5 and MPICH's hydra share."""

    name: str = "mpiexec"
    start: str = "mpiexec -n {tasks}"
    each_node: str = 'mpiexec -n {nodes} -machinefile "$HPCLAUNCH_JOB_FOLDER/nodes"'
    rank: str = MPIEXEC_RANK
    local_rank: str = MPIEXEC_LOCAL_RANK
    shell_lines: tuple[Line, ...] = (UNBOUND,)


class Mpirun(Mpiexec, frozen=True, kw_only=True):
    """The mpirun of an MPI that does not find the job's nodes in the scheduler's variables."""

    each_node: str = 'mpirun -n {nodes} -machinefile "$HPCLAUNCH_JOB_FOLDER/nodes"'
