"""The limits of a site's queues and where its facts come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from hpclaunch.site.schema import Queue, SiteProfile
from hpclaunch.walltime import format_walltime, parse_walltime_s

About = Literal["nodes", "walltime", "both"]
"""What a limit is about; both: nodes x time, or execution queues that depend on both."""


def cite(profile: SiteProfile, source: str | None) -> str:
    """Return where a fact of the profile comes from, such as ``URL, read 2026-11-20``."""
    if source is None or source not in profile.sources:
        return f"site profile {profile.name}"
    page = profile.sources[source]
    doubt = "" if page.evidence == "documented" else f", {page.evidence}"
    return f"{page.url}, read {page.checked}{doubt}"


def reason_with_source(profile: SiteProfile, reason: str, source: str | None) -> str:
    """Return the reason of a line of a script, with where the fact comes from if the profile says."""
    return f"{reason} ({cite(profile, source)})" if source else reason


def misfit(queue: Queue, nodes: int, walltime_s: int) -> str | None:
    """Return why a job does not fit a queue, or None when it does."""
    return next((why for _, why in misfits(queue, nodes, walltime_s)), None)


def misfits(queue: Queue, nodes: int | None, walltime_s: int | None) -> Iterator[tuple[About, str]]:
    """Yield each limit of a queue that a job breaks; None: not known, so held against no limit."""
    if nodes is not None and nodes < queue.min_nodes:
        yield "nodes", f"{nodes} nodes asked, at least {queue.min_nodes} needed"
    if nodes is not None and queue.max_nodes is not None and nodes > queue.max_nodes:
        yield "nodes", f"{nodes} nodes asked, at most {queue.max_nodes} allowed"
    if walltime_s is None:
        return
    asked = format_walltime(walltime_s)
    if queue.max_walltime and walltime_s > parse_walltime_s(queue.max_walltime):
        yield "walltime", f"{asked} asked, at most {queue.max_walltime} allowed"
    if queue.min_walltime and walltime_s < parse_walltime_s(queue.min_walltime):
        yield "walltime", f"{asked} asked, at least {queue.min_walltime} needed"
    if nodes is None or not queue.min_nodes <= nodes <= (queue.max_nodes or nodes):
        return
    if queue.max_node_minutes and nodes * walltime_s > queue.max_node_minutes * 60:
        used = nodes * walltime_s / 60
        yield "both", f"{used:g} node-minutes asked, at most {queue.max_node_minutes} allowed"
    fits = any(
        route.min_nodes <= nodes <= route.max_nodes and walltime_s <= parse_walltime_s(route.max_walltime)
        for route in queue.routes
    )
    if queue.routes and not fits:
        limits = ", ".join(
            f"{r.name} {r.min_nodes}-{r.max_nodes} nodes {r.max_walltime}" for r in queue.routes
        )
        yield "both", f"none of its execution queues takes {nodes} nodes for {asked} ({limits})"
