"""The scheduler and the launcher that a site's profile names, the limits of its queues, and their sources."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.registry import get_scheduler, schedulers
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.schema import Queue, SiteProfile
from hpclaunch.walltime import format_walltime, parse_walltime_s

About = Literal["nodes", "walltime", "both"]
"""The subject of a limit; both: nodes x time, or ``routes`` that depend on both."""


def cite(profile: SiteProfile, source: str | None) -> str:
    """Return where a fact of the profile comes from, such as ``URL, read 2026-11-20``.

    A source that the profile does not list is the words for it, as of a cluster that was asked.
    """
    if source is None or source not in profile.sources:
        return source or f"site profile {profile.name}"
    page = profile.sources[source]
    doubt = "" if page.evidence == "documented" else f", {page.evidence}"
    return f"{page.url}, read {page.checked}{doubt}"


def source_of(profile: SiteProfile, source: str | None) -> str:
    """Return the source of a line of a script; empty where the profile names none."""
    return cite(profile, source) if source else ""


def with_partition_limits(profile: SiteProfile, queue: Queue) -> Queue:
    """Return a queue; for a QOS with the limits of its partition, where it states none itself."""
    partition = profile.queues.get(queue.with_partition or "")
    if partition is None:
        return queue
    return msgspec.structs.replace(
        queue,
        max_nodes=queue.max_nodes or partition.max_nodes,
        max_walltime=queue.max_walltime or partition.max_walltime,
    )


def misfit(queue: Queue, nodes: int, walltime_s: int) -> str | None:
    """Return why a job does not fit a queue; None: it fits."""
    return next((why for _, why in misfits(queue, nodes, walltime_s)), None)


def misfits(queue: Queue, nodes: int | None, walltime_s: int | None) -> Iterator[tuple[About, str]]:
    """Yield each limit of a queue that a job exceeds; None: not known, so not checked."""
    if nodes is not None:
        yield from (("nodes", why) for why in _nodes_misfits(queue, nodes))
    if walltime_s is not None:
        yield from (("walltime", why) for why in _walltime_misfits(queue, walltime_s))
    if nodes is not None and walltime_s is not None and not any(_nodes_misfits(queue, nodes)):
        yield from (("both", why) for why in _combined_misfits(queue, nodes, walltime_s))


def _nodes_misfits(queue: Queue, nodes: int) -> Iterator[str]:
    if nodes < queue.min_nodes:
        yield f"{counted(nodes, 'node')} requested, at least {queue.min_nodes} needed"
    if queue.max_nodes is not None and nodes > queue.max_nodes:
        yield f"{counted(nodes, 'node')} requested, at most {queue.max_nodes} allowed"


def _walltime_misfits(queue: Queue, walltime_s: int) -> Iterator[str]:
    requested = format_walltime(walltime_s)
    if queue.max_walltime and walltime_s > parse_walltime_s(queue.max_walltime):
        yield f"{requested} requested, at most {queue.max_walltime} allowed"
    if queue.min_walltime and walltime_s < parse_walltime_s(queue.min_walltime):
        yield f"{requested} requested, at least {queue.min_walltime} needed"


def _combined_misfits(queue: Queue, nodes: int, walltime_s: int) -> Iterator[str]:
    if queue.max_node_minutes and nodes * walltime_s > queue.max_node_minutes * 60:
        node_minutes = nodes * walltime_s / 60
        yield f"{node_minutes:g} node-minutes requested, at most {queue.max_node_minutes} allowed"
    fits = any(
        route.min_nodes <= nodes <= route.max_nodes and walltime_s <= parse_walltime_s(route.max_walltime)
        for route in queue.routes
    )
    if queue.routes and not fits:
        limits = ", ".join(
            f"{r.name} {r.min_nodes}-{r.max_nodes} nodes {r.max_walltime}" for r in queue.routes
        )
        yield (
            f"none of its execution queues or ranges of nodes takes {counted(nodes, 'node')} for"
            f" {format_walltime(walltime_s)} ({limits})"
        )


def site_scheduler(profile: SiteProfile) -> Scheduler:
    """Return the scheduler of a site."""
    return get_scheduler(profile.scheduler.kind)


def site_launcher(profile: SiteProfile) -> Launcher:
    """Return the launcher of a site. Raises BadInputError where its scheduler does not have it."""
    name, scheduler = profile.scheduler.launcher, site_scheduler(profile)
    launcher = scheduler.launcher(name)
    if launcher is None:
        known = " or ".join(launcher.name for launcher in scheduler.launchers)
        raise BadInputError.case(
            "profile: launcher", site=profile.name, name=name, scheduler=scheduler, right=known
        )
    return launcher


def retired_sentence(profile: SiteProfile) -> str | None:
    """Return since when a machine is switched off, with the source; None: it is in use."""
    retired = profile.retired
    if retired is None:
        return None
    since = f"since {retired.since}" if retired.since else "(the day is unknown)"
    successor = f"; its successor is {retired.successor}" if retired.successor else ""
    return f"{profile.name} is switched off {since}{successor} ({cite(profile, retired.source)})"


def no_submission(profile: SiteProfile) -> str | None:
    """Return why nothing can be submitted to a machine; None: jobs can be."""
    scheduler = site_scheduler(profile)
    if profile.retired is None and scheduler.no_submission:
        return f"{profile.name} has {scheduler.title}, which {scheduler.no_submission}"
    return retired_sentence(profile)


def refuse_submission(profile: SiteProfile) -> None:
    """Refuse to submit where nothing can be submitted. Raises SiteRuleError."""
    sentence = no_submission(profile)
    if sentence is not None:
        raise SiteRuleError.case("site: no submission", sentence=sentence)


def base_profiles() -> dict[str, Scheduler]:
    """Return the profiles of which nothing but the scheduler is known, with that scheduler."""
    return {
        scheduler.kind if scheduler.starts_at_once else f"generic-{scheduler.kind}": scheduler
        for scheduler in schedulers()
        if not scheduler.no_submission
    }


def base_here() -> str:
    """Return the profile for the scheduler whose commands are here; else that of this machine alone.

    Raises BadInputError for a scheduler to which nothing is submitted.
    """
    import shutil  # no plan for a named site needs it

    for its in schedulers():
        if its.told_by and shutil.which(its.told_by):
            raise BadInputError.case("sites new: scheduler", its=its)
    bases = base_profiles()
    return next(name for name, its in bases.items() if its.starts_at_once or shutil.which(its.submit_program))
