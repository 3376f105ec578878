"""The parts of a LaunchPlan, and a job on its way to one."""

from typing import Literal

import msgspec

from hpclaunch.plan.request import JobRequest, Problem, Setting
from hpclaunch.plan.script_commands import ScriptCommand
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
