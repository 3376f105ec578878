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
