"""LaunchPlan: everything that a script needs, computed."""

from typing import Literal

import msgspec

from hpclaunch.binding.node_binding import NodeBinding
from hpclaunch.plan.request import JobRequest, Problem, Setting
from hpclaunch.plan.script_commands import ScriptCommand
from hpclaunch.plan.worker_launchers import Started
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import SiteProfile


class Supervision(msgspec.Struct, frozen=True, kw_only=True):
    """The watchdog and the restarts of the launch."""

    max_restarts: int
    exit_code: int
    """Exit code of a program that has saved a checkpoint and is to be called again."""
    timer_s: int | None
    """Seconds to the signal where the scheduler gives none itself."""
    idle_s: int | None
    look: tuple[str, ...] = ()
    """Shell words that print where the processes on each node stand: the program in ``$hpclaunch_stands``."""
    look_s: int = 0
    """How long they may take."""


class AtStart(msgspec.Struct, frozen=True, kw_only=True):
    """How each rank chooses its cores at its start (``remote/bind_here.sh``)."""

    ranks: int
    """Of each node."""
    cores: int
    """Of each rank, at most."""
    threads: int
    """Hardware threads of each core."""
    gpus: tuple[tuple[int, ...], ...]
    """Of each local rank, as places in the list of the job's GPUs on the node; empty: none has one."""
    slices: bool
    """They are MIG instances, of which a rank sees its own only."""
    some_gpus: bool
    """The job has a part of the node's GPUs."""


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """How each node is checked before the ranks start; all words are shell text."""

    probe: tuple[str, ...]
    """Start the probe, whose path is in ``$probe``, one process per node."""
    judge: tuple[str, ...]
    """Reads what they said; the names of the nodes follow."""
    limit_s: int
    again: str | None
    """Submits the script again without the nodes in ``$left_out``; None: the job ends where one fails."""


class Staging(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are copied to the nodes before the ranks start; all words are shell text."""

    launch: tuple[str, ...]
    """Start one process per node."""
    root: str
    """Folder of the nodes' own storage."""
    pairs: tuple[tuple[str, str], ...]
    """Source and target of each item; targets are below the folder of this job in ``root``, or absolute."""
    links: Literal["refuse", "keep"]
    """Links of an archive that lead out of it."""
    afterwards: Literal["stay", "leave", "here", "keep"]
    """The processes on the nodes stay and remove the copies when they are ended, or leave them to others to
    remove (``here``: and what they have started lives on), or to later jobs."""


class KnownJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its way to a plan: request, site and settings so far, and remarks about them."""

    request: JobRequest
    settings: tuple[Setting, ...]
    profile: SiteProfile
    is_file: bool = False
    """Its command begins with a file that Python or a shell reads."""
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Why it is not submitted; a dry run only warns of them."""
    commands: tuple[ScriptCommand, ...] = ()
    """Those of the shell script that it starts, where that could be read."""


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
    at_start: AtStart | None = None
    """How each rank binds itself at its start, where the node is not known before."""
    header: tuple[Line, ...]
    """Scheduler directives in order, without the #SBATCH or #PBS sentinel."""
    environment: tuple[Line, ...]
    """Shell lines before the launch: setup, exports, unsets."""
    rank_setup: tuple[Line, ...]
    """Shell lines that each rank runs before it becomes the command."""
    started: Started | None = None
    """The program's own launcher, which starts the ranks of each node; None: the site's does."""
    node_setup: tuple[Line, ...] = ()
    """Shell lines that run on each node before that launcher."""
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
    settings: tuple[Setting, ...]
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def tasks(self) -> int:
        """All ranks of the job."""
        return self.nodes * self.tasks_per_node
