"""JobRequest, LaunchPlan and JobRecord: the three forms of a job."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from typing import Literal

import msgspec

from hpclaunch.site.job_environment import Environment

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
