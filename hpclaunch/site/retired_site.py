"""Machines that are switched off: their profiles are read and planned with, nothing is submitted to them."""

from __future__ import annotations

from hpclaunch.errors import SiteRuleError
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import SiteProfile


def retired_sentence(profile: SiteProfile) -> str | None:
    """Return since when a machine is switched off, with the source; None: it is in use."""
    retired = profile.retired
    if retired is None:
        return None
    since = f"since {retired.since}" if retired.since else "(the day is unknown)"
    successor = f"; its successor is {retired.successor}" if retired.successor else ""
    return f"{profile.name} is switched off {since}{successor} ({cite(profile, retired.source)})"


def refuse_retired(profile: SiteProfile) -> None:
    """Refuse a submission to a machine that is switched off. Raises SiteRuleError."""
    sentence = retired_sentence(profile)
    if sentence is not None:
        raise SiteRuleError(
            f"nothing can be submitted: {sentence}",
            "--dry-run shows the script; to run the job, name another site (hpclaunch sites list)",
        )
