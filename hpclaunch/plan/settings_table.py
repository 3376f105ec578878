"""Every setting of a job, described once: type, default, and its text in ``submit --help`` and the docs.

``JobRequest`` has these fields, ``JobSettings`` has them all as optional ones, and ``hpclaunch submit`` has
an option for each row with a group. This module must not import msgspec, which would add 10 ms to
``submit --help``.
"""

# No annotations from __future__: the table is read from the annotations.
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from msgspec import Struct

    from hpclaunch.plan.request import Command
    from hpclaunch.site.job_environment import Environment
else:

    class Struct:
        """Takes a struct's options, so that the class below can be written as the struct it becomes."""

        def __init_subclass__(cls, **options: object) -> None: ...


class Key(NamedTuple):
    """What the help and the docs say about a setting, in addition to its type and its default value."""

    help: str
    group: str = ""
    """Title in ``submit --help``; empty: a key of the job file only."""
    default: str = ""
    """Text for a default that is computed."""
    options: tuple[str, ...] = ()
    """Names of the option, where they are not the key's."""
    metavar: str | None = None
    commas: bool = False
    """A list that the option takes as one value with commas; else the option is repeated."""
    limits: tuple[int, int] | None = None
    """Lowest and highest value that the option takes."""


WHERE, SIZE, RANKS, BEFORE = "What and where", "Size", "Ranks", "Before it starts"
OTHER_JOBS, RESTARTS = "Other jobs", "Restarts and hangs"


class SettingsTable(Struct, frozen=True, kw_only=True):
    """What is requested for a job, after all sources of settings were merged; None: not specified."""

    site: Annotated[
        str,
        Key(
            "Site profile: a name (hpclaunch sites list) or the path of a YAML file.",
            WHERE,
            "the detected one",
        ),
    ]
    command: Annotated[
        "Command",
        Key("Program and arguments that every rank runs, or `[mnist, ...]` for the bundled training."),
    ]
    name: Annotated[str, Key("Name of the job.", WHERE, "the name of the program")] = "hpclaunch"
    account: Annotated[str | None, Key("Project account that the job is charged to.", WHERE)] = None
    queue: Annotated[
        str | None,
        Key("Partition, QOS or queue.", WHERE, "the first that fits", options=("--partition", "--queue")),
    ] = None
    directives: Annotated[
        tuple[str, ...],
        Key(
            "Extra directive for the scheduler, such as --mail-type=END; it is not changed.",
            WHERE,
            options=("--sbatch-arg", "--directive"),
        ),
    ] = ()

    nodes: Annotated[int | None, Key("Number of nodes.", SIZE, "as many as the tasks need")] = None
    tasks: Annotated[int | None, Key("Number of ranks of the whole job.", SIZE)] = None
    tasks_per_node: Annotated[int | None, Key("Ranks per node.", SIZE, "one per GPU, else one")] = None
    gpus_per_task: Annotated[
        int | None, Key("GPUs per rank.", SIZE, "the node's GPUs divided among its ranks")
    ] = None
    cpus_per_task: Annotated[
        int | None, Key("Cores per rank.", SIZE, "the node's cores divided among its ranks")
    ] = None
    threads_per_core: Annotated[int, Key("Hardware threads used per core.", SIZE)] = 1
    time: Annotated[str | None, Key("Walltime limit: 30m, 2h, 02:00:00, 1-12:00:00.", SIZE)] = None
    exclusive: Annotated[bool, Key("Whole nodes, not shared with other jobs.", SIZE)] = True

    framework: Annotated[
        Literal["horovod", "torch", "deepspeed", "mpi4py", "none"] | None,
        Key("Framework of the program: sets what this framework needs, nothing else.", RANKS),
    ] = None
    zero_stage: Annotated[
        int | None, Key("ZeRO stage in DeepSpeed's configuration.", RANKS, limits=(0, 3))
    ] = None
    timeline: Annotated[
        str | None, Key("File that the Horovod timeline is written to.", RANKS, metavar="FILE")
    ] = None
    binding: Annotated[
        Literal["warn", "strict", "off"],
        Key(
            "CPU-GPU binding: warn reports ranks without their binding, strict ends the job, off leaves the"
            " binding to the launcher.",
            RANKS,
        ),
    ] = "warn"
    mpi: Annotated[str | None, Key("MPI plugin for srun --mpi.", RANKS, "what the site documents")] = None
    python: Annotated[
        str | None, Key("Python interpreter on the target for the bundled training.", RANKS)
    ] = None

    check: Annotated[
        bool,
        Key(
            "First check the job's requirements, as hpclaunch check does; submit only if all are met.", BEFORE
        ),
    ] = False
    preflight: Annotated[
        bool, Key("Check each node before the ranks start; end the job if a node fails.", BEFORE)
    ] = False
    exclude_bad_nodes: Annotated[
        bool,
        Key(
            "If the preflight ends the job, submit it again without the nodes that failed, up to"
            " --max-restarts times (Slurm).",
            BEFORE,
            options=("--exclude-bad-nodes",),
        ),
    ] = False
    space: Annotated[
        tuple[str, ...],
        Key("Folder that must have free space, for --check and --preflight.", BEFORE, metavar="FOLDER"),
    ] = ()

    after: Annotated[
        tuple[str, ...],
        Key(
            "Start when these jobs have succeeded: ids of hpclaunch or of the scheduler.",
            OTHER_JOBS,
            metavar="ID,...",
            commas=True,
        ),
    ] = ()
    after_any: Annotated[
        bool,
        Key("With --after: start when they have ended, in any state.", OTHER_JOBS, options=("--after-any",)),
    ] = False
    array: Annotated[
        str | None,
        Key("Job array, one job per index: 0-9, or 0-9%2 for two at a time.", OTHER_JOBS, metavar="INDICES"),
    ] = None

    max_restarts: Annotated[int, Key("Restarts from a checkpoint when the walltime is over.", RESTARTS)] = 0
    warn_before: Annotated[
        str,
        Key("How long before the walltime limit the ranks are signalled to write a checkpoint.", RESTARTS),
    ] = "2m"
    idle_timeout: Annotated[
        str | None,
        Key("End a job without output and heartbeat for this long, such as 30m.", RESTARTS),
    ] = None

    exclude: Annotated[tuple[str, ...], Key("Nodes that the job must not run on.")] = ()
    env: Annotated[dict[str, str], Key("Environment variables of the job.")] = {}  # noqa: RUF012
    environment: Annotated[
        "Environment | None",
        Key(
            "Software that the job needs in addition to the site's setup.", default="that of the site profile"
        ),
    ] = None


class Row(NamedTuple):
    """One setting."""

    name: str
    """Key in a job file."""
    type: Any
    default: Any
    """``...``: it is required."""
    key: Key

    @property
    def kind(self) -> Any:
        """The type without None."""
        parts = get_args(self.type)
        return parts[0] if type(None) in parts else self.type

    @property
    def help(self) -> str:
        """What the setting means, with its default."""
        return f"{self.key.help} Default: {self.default_text}." if self.default_text else self.key.help

    @property
    def default_text(self) -> str:
        """The default as the help and the docs state it; empty: there is none."""
        if self.key.default:
            return self.key.default
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        return "" if self.default in (None, (), {}, ...) else str(self.default)


def rows() -> Iterator[Row]:
    """Yield the table row by row."""
    for name, annotated in SettingsTable.__annotations__.items():
        default = getattr(SettingsTable, name, ...)
        yield Row(name, annotated.__origin__, default, *annotated.__metadata__)
