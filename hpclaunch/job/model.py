"""JobRequest, LaunchPlan and JobRecord: the three forms of a job."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from typing import Any, Literal

import msgspec

from hpclaunch.binding.model import NodeBinding
from hpclaunch.job.report import BindingVerdict
from hpclaunch.scheduler.base import JobState
from hpclaunch.scheduler.directives import Line
from hpclaunch.site.environment import Environment
from hpclaunch.site.schema import SiteProfile

FrameworkName = Literal["horovod", "torch", "deepspeed", "mpi4py", "none"]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What every rank runs."""

    argv: tuple[str, ...]
    """Program and arguments, exactly as given; for the bundled runner its options only."""
    bundled: bool = False
    """True: the bundled training runner (``mnist``)."""


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for, after all sources of settings were merged; None: left open."""

    site: str
    command: Command
    name: str = "hpclaunch"
    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    gpus_per_task: int | None = None
    cpus_per_task: int | None = None
    threads_per_core: int = 1
    time: str | None = None
    account: str | None = None
    queue: str | None = None
    mpi: str | None = None
    """Value of srun --mpi."""
    python: str | None = None
    """Interpreter that runs the bundled runner on the target."""
    exclusive: bool = True
    """Whole nodes."""
    binding: Literal["warn", "strict", "off"] = "warn"
    framework: FrameworkName | None = None
    """What the ranks are made with, which settles what each of them needs; None: nobody said."""
    zero_stage: int | None = None
    """Stage of DeepSpeed's ZeRO, 0 to 3."""
    timeline: str | None = None
    """File for HOROVOD_TIMELINE."""
    max_restarts: int = 0
    """How often the job may be started again from a checkpoint that it wrote before its time was over."""
    warn_before: str = "2m"
    """How long before the walltime limit the ranks are told to write a checkpoint."""
    idle_timeout: str | None = None
    """After how long without output or heartbeat the job is taken for hung and ended."""
    after: tuple[str, ...] = ()
    """Jobs that must end before this one starts: ids of hpclaunch or of the scheduler."""
    after_any: bool = False
    """However they end; else only if they end well."""
    array: str | None = None
    """Indices of a job array, such as ``0-9%2``: that many jobs of the same script."""
    exclude: tuple[str, ...] = ()
    """Nodes that the job must not get."""
    directives: tuple[str, ...] = ()
    """Extra header lines, passed through as given."""
    check: bool = False
    """Ask for what the job needs before it is queued, and do not submit it where that is missing."""
    preflight: bool = False
    """Look at each node before the ranks start, and end the job where one fails."""
    exclude_bad_nodes: bool = False
    """Where the preflight ends the job, submit it again without the nodes that failed, up to
    ``max_restarts`` times."""
    space: tuple[str, ...] = ()
    """Folders that must have room, for the preflight and ``--check``."""
    env: dict[str, str] = {}
    environment: Environment | None = None
    """Software that the job needs beyond the site's setup; None: that alone."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting and where its value comes from; ``submit --explain`` prints these."""

    name: str
    value: str | None
    origin: str
    """command line, job file PATH, user config PATH, site profile NAME, default, or computed: RULE."""


class Supervision(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps an eye on the launch."""

    max_restarts: int
    exit_code: int
    """What a program leaves with after a checkpoint, to be called again."""
    timer_s: int | None
    """Seconds to the signal where the scheduler gives none itself."""
    idle_s: int | None


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """How each node is looked at before the ranks start; all words are shell text."""

    look: tuple[str, ...]
    """Starts the look, one process a node."""
    judge: tuple[str, ...]
    """Reads what they said; the names of the nodes follow."""
    node_names: str
    """Command that prints these names."""
    limit_s: int
    again: str | None
    """Submits the script again without the nodes in ``$left_out``; None: the job ends where one fails."""


class NodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one check of the preflight said of one node."""

    host: str
    check: str
    """cpus, gpus, fabric-plugin, clock, space, answer, or the module that was imported."""
    status: Literal["have", "missing", "unknown"]
    evidence: str


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a script needs, computed; templates only lay it out."""

    request: JobRequest
    profile: SiteProfile
    nodes: int
    tasks_per_node: int
    walltime_s: int | None
    queue: str | None
    binding: NodeBinding | None
    """None: the site's node is unknown (generic profiles) or binding is off."""
    header: tuple[Line, ...]
    """Scheduler directives in order, without the #SBATCH or #PBS sentinel."""
    environment: tuple[Line, ...]
    """Shell lines before the launch: setup, exports, unsets."""
    rank_setup: tuple[Line, ...]
    """Shell lines that each rank runs before it becomes the command."""
    argv: tuple[str, ...]
    """The command, exactly as given; the template quotes it."""
    launch: tuple[str, ...]
    """The launcher and its options as shell text."""
    supervision: Supervision | None
    """None: nobody asked for restarts or a watchdog."""
    preflight: Preflight | None = None
    settings: tuple[Setting, ...]
    warnings: tuple[str, ...] = ()

    @property
    def tasks(self) -> int:
        """All ranks of the job."""
        return self.nodes * self.tasks_per_node


class ArrayJob(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one job of an array."""

    state: JobState = "created"
    exit_code: int | None = None
    reason: str | None = None
    started: str | None = None
    ended: str | None = None


class JobRecord(msgspec.Struct, kw_only=True):
    """What is kept of a job, one JSON file in its folder; changed only by writing the whole file anew."""

    schema: Literal[1] = 1
    id: str
    name: str
    site: str
    state: JobState = "created"
    scheduler: str
    scheduler_id: str | None = None
    """Slurm's or PBS' job id; for local jobs ``PID:STARTTIME`` of the script's shell."""
    exit_code: int | None = None
    host: str | None = None
    """Where it was submitted over ssh, as ``[user@]host[:port]``; None: on this machine."""
    folder: str
    """Absolute path of the job folder, on that host: script, log, result, exit status."""
    workdir: str
    """Where the job was submitted from and runs."""
    created: str
    """ISO 8601 with time zone."""
    started: str | None = None
    ended: str | None = None
    reason: str | None = None
    """The scheduler's word on a pending or failed job."""
    command: tuple[str, ...]
    bundled: bool = False
    nodes: int
    tasks: int
    request: dict[str, Any]
    plan: dict[str, Any]
    array: dict[int, ArrayJob] = {}
    """Index -> that job of an array; its files are in the folder of that name; empty where it is none."""
    binding: BindingVerdict | None = None
    """What the ranks said of their binding; None before the end, or where none was planned."""
    preflight: tuple[NodeVerdict, ...] = ()
    """What the nodes said before the ranks started; empty before the end, or where nobody asked them."""
    profile_digest: str
    """sha256 of the merged profile in canonical JSON."""
    versions: dict[str, str]
    resubmit_of: str | None = None
    """Id of the job whose request this one repeats."""
    git_commit: str | None = None
    """Commit of the workdir, ``-dirty`` appended where files differ."""
