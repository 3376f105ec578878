"""Every setting of a job, described once: type, default, and its text in ``submit --help`` and the docs.

``JobRequest`` has these fields, ``JobSettings`` has them all as optional ones, and ``hpclaunch submit`` has
an option for each row with a group. This module must not import msgspec, which would add 10 ms to
``submit --help``.
"""

# No annotations from __future__: the table is read from the annotations.
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args


class Row(NamedTuple):
    """One setting."""

    name: str
    """Key in a job file."""
    type: Any
    group: str
    """Title in ``submit --help``; empty: a key of the job file only."""
    meaning: str
    computed: str = ""
    """Text for a default that is computed."""
    default: Any = ...
    """``...``: it is required."""
    options: tuple[str, ...] = ()
    """Names of the option, where they are not the key's."""
    metavar: str | None = None
    commas: bool = False
    """A list that the option takes as one value with commas; else the option is repeated."""
    limits: tuple[int, int] | None = None
    """Lowest and highest value that the option takes."""

    @property
    def kind(self) -> Any:
        """The type without None."""
        parts = get_args(self.type)
        return parts[0] if type(None) in parts else self.type

    @property
    def help(self) -> str:
        """What the setting means, with its default."""
        return f"{self.meaning} Default: {self.default_text}." if self.default_text else self.meaning

    @property
    def default_text(self) -> str:
        """The default as the help and the docs state it; empty: there is none."""
        if self.computed:
            return self.computed
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        return "" if self.default in (None, (), {}, ...) else str(self.default)


def key(meaning: str, computed: str = "", **more: Any) -> Any:
    """Take what the table holds about a key in addition to its name, type and group."""
    return {"meaning": meaning, "computed": computed, **more}


if TYPE_CHECKING:
    import msgspec
    from typing_extensions import dataclass_transform

    from hpclaunch.plan.request import Command
    from hpclaunch.site.job_environment import Environment

    @dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(key,))
    class _Struct(msgspec.Struct, frozen=True, kw_only=True): ...

else:

    class _Struct:
        pass


WHERE = "What and where"
GROUPS = {
    "command": "",
    "site": WHERE,
    "nodes": "Size",
    "framework": "Ranks",
    "check": "Before it starts",
    "after": "Order and start",
    "max_restarts": "Restarts and hangs",
    "sample": "The report",
    "remote_dir": "Another machine",
    "software": "Software",
    "imports": "",
}
"""First key of a group -> its title in ``submit --help``; empty: keys of the job file only."""


class SettingsTable(_Struct):
    """What is requested for a job, after all sources of settings were merged; None: not specified."""

    command: "Command" = key(
        "Program and arguments that every rank runs, or `[mnist, ...]` for the bundled training."
    )

    site: str = key(
        "Site profile: a name (hpclaunch sites list) or the path of a YAML file.", "the detected one"
    )
    name: str = key(
        "Name of the job.", "the name of the program", default="hpclaunch", options=("-J", "--name")
    )
    account: str | None = key(
        "Project account that the job is charged to.", default=None, options=("-A", "--account")
    )
    queue: str | None = key(
        "Partition, QOS or queue.",
        "the first that fits",
        default=None,
        options=("-p", "--partition", "--queue"),
    )
    exclude: tuple[str, ...] = key(
        "Nodes that the job must not run on (Slurm).", default=(), metavar="NODE,...", commas=True
    )
    directives: tuple[str, ...] = key(
        "Extra directive for the scheduler, such as --mail-type=END; it is not changed.",
        default=(),
        options=("--sbatch-arg", "--directive"),
    )

    nodes: int | None = key(
        "Number of nodes.", "as many as the tasks need", default=None, options=("-N", "--nodes")
    )
    tasks: int | None = key("Number of ranks of the whole job.", default=None, options=("-n", "--tasks"))
    tasks_per_node: int | None = key("Ranks per node.", "one per GPU, else one", default=None)
    gpus_per_task: int | None = key("GPUs per rank.", "an equal share of the node", default=None)
    gpu_type: str | None = key(
        "Name of the GPUs in the scheduler's requests, such as a100 or 1g.5gb (generic sites).",
        "the first type that fits",
        default=None,
        metavar="TYPE",
    )
    cpus_per_task: int | None = key("Cores per rank.", "an equal share of the node", default=None)
    threads_per_core: int = key("Hardware threads used per core.", default=1)
    memory: str | None = key(
        "Memory of each node, such as 64G or 500M; 0: all of it.",
        "for whole nodes what the site requests for them",
        default=None,
        options=("--mem",),
        metavar="AMOUNT",
    )
    time: str | None = key(
        "Walltime limit: 30m, 2h, 02:00:00, 1-12:00:00, or minutes as for sbatch, 90.",
        "30 minutes",
        default=None,
        options=("-t", "--time"),
    )
    budget: float | None = key(
        "Refuse the job if it may cost more than this, in the site's unit.", default=None, metavar="AMOUNT"
    )
    exclusive: bool = key("Whole nodes, not shared with other jobs.", default=True)

    framework: Literal["horovod", "torch", "deepspeed", "jax", "ray", "mpi4py", "none"] | None = key(
        "Framework of the program: sets what this framework needs, nothing else.",
        "the one that the launched Python file imports",
        default=None,
    )
    as_ranks: bool = key(
        "Leave torchrun, accelerate, deepspeed or fabric out of the command: the site's launcher starts its"
        " workers as ranks.",
        default=False,
        options=("--as-ranks",),
    )
    zero_stage: int | None = key("ZeRO stage of DeepSpeed.", default=None, limits=(0, 3))
    timeline: str | None = key("File for the Horovod timeline.", default=None, metavar="FILE")
    profile: int | None = key(
        "Record this many steps of the program on all ranks, for hpclaunch timeline.",
        default=None,
        metavar="STEPS",
        limits=(1, 100_000),
    )
    profile_after: int = key("With --profile: steps before the first that is recorded.", default=10)
    stacks: bool = key(
        "Let Python tell hpclaunch stacks where each rank stands.",
        default=True,
    )
    binding: Literal["warn", "strict", "off"] = key(
        "CPU-GPU binding: warn reports ranks without their binding, strict ends the job, off leaves it to the"
        " launcher.",
        default="warn",
    )
    mpi: str | None = key("MPI plugin for srun --mpi.", "what the site documents", default=None)
    python: str | None = key("Python on the target for the bundled training.", default=None)

    check: bool = key(
        "First check the job's requirements, as hpclaunch check does; submit only if all are met.",
        default=False,
    )
    preflight: bool = key("Check each node before the ranks start; end the job if one fails.", default=False)
    check_imports: bool = key(
        "First import, on one node and in the job's environment, what the program imports; end the job if it"
        " fails.",
        default=False,
        options=("--check-imports",),
    )
    exclude_bad_nodes: bool = key(
        "If the preflight ends the job, submit it again without the nodes that failed, up to --max-restarts"
        " times (Slurm).",
        default=False,
        options=("--exclude-bad-nodes",),
    )
    space: tuple[str, ...] = key(
        "Folder that must have free space, for --check and --preflight.", default=(), metavar="FOLDER"
    )
    stage: tuple[str, ...] = key(
        "Folder, file, tar (to be unpacked) or squashfs (to be mounted) that is copied to storage of the"
        " nodes before the ranks start; HPCLAUNCH_STAGED is its path there.",
        default=(),
        metavar="SRC[#sha256=SUM][:DEST]",
    )
    stage_links: Literal["refuse", "keep"] = key(
        "Links of a staged archive that lead out of it: refuse the archive, or keep them as they are.",
        default="refuse",
    )
    keep_staged: bool = key(
        "Do not remove what was staged at the end of the job.", default=False, options=("--keep-staged",)
    )

    after: tuple[str, ...] = key(
        "Start when these jobs have succeeded: ids of hpclaunch or of the scheduler.",
        default=(),
        metavar="ID,...",
        commas=True,
    )
    after_any: bool = key(
        "With --after: start when they have ended, in any state.", default=False, options=("--after-any",)
    )
    begin: str | None = key(
        "Start not before this time, as the clock of the scheduler has it.",
        default=None,
        metavar="YYYY-MM-DDTHH:MM",
    )
    array: str | None = key(
        "Job array, one job per index: 0-9, or 0-9%2 for two at a time.", default=None, metavar="INDICES"
    )

    max_restarts: int = key("Restarts from a checkpoint when the walltime is over.", default=0)
    warn_before: str = key(
        "How long before the walltime limit the ranks are signalled to write a checkpoint.", default="2m"
    )
    idle_timeout: str | None = key(
        "End a job without output and heartbeat for this long, such as 30m.", default=None
    )

    sample: int = key(
        "Seconds between two looks at CPU, memory, GPUs and energy of each node, for hpclaunch report.",
        default=30,
        metavar="SECONDS",
        limits=(1, 3600),
    )
    no_sample: bool = key("Start no process that looks at them.", default=False, options=("--no-sample",))

    remote_dir: str | None = key(
        "With --host: folder there that gets the folders of jobs: script, log, result, copied code.",
        "the user's folder on scratch where the profile names it, else that of ~/.local/state",
        default=None,
        metavar="DIR",
    )

    software: str = key(
        "Software of the site for the program's framework: site takes what the profile offers for it, none"
        " leaves it out, another word names it (hpclaunch software show).",
        default="site",
        metavar="site|none|NAME",
    )
    container: str | None = key(
        "Container image that the program runs in: a SIF file, a folder or an address such as docker://...;"
        " on CSCS' machines also a TOML file.",
        default=None,
        metavar="IMAGE",
    )
    container_runtime: (
        Literal["apptainer", "singularity", "shifter", "podman-hpc", "pyxis", "container-engine"] | None
    ) = key("Program that starts the container.", "the usual one of the site", default=None)
    container_bind: tuple[str, ...] = key(
        "Folder or file that the container sees in addition to the working folder, the job's folder and the"
        " site's file systems.",
        default=(),
        metavar="SRC[:DEST]",
    )
    venv: str | None = key(
        "Folder of a virtual environment that is activated; with a container it is one inside of it.",
        default=None,
        metavar="PATH",
    )
    conda: str | None = key(
        "Name or path of a conda environment that is activated.", default=None, metavar="ENV"
    )
    module: tuple[str, ...] = key("Module to load, after those of environment.", default=(), metavar="NAME")
    env: dict[str, str] = key("Environment variable of the job.", default={}, metavar="NAME=VALUE")

    imports: tuple[str, ...] = key(
        "Modules that the program imports, for --check-imports and --preflight.",
        "those at the top of the launched Python file",
        default=(),
    )
    environment: "Environment | None" = key(
        "Software that the job needs in addition to the site's setup.",
        "that of the site profile",
        default=None,
    )


@cache
def rows() -> tuple[Row, ...]:
    """Return the table row by row."""
    group, found = "", []
    for name, annotation in SettingsTable.__annotations__.items():
        group = GROUPS.get(name, group)
        found.append(Row(name, annotation, group, **getattr(SettingsTable, name)))
    return tuple(found)
