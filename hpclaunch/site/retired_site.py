"""Machines to which nothing can be submitted: their profiles are read, planned with and ported from."""

from hpclaunch.errors import SiteRuleError
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler


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
        raise SiteRuleError(
            f"nothing can be submitted: {sentence}",
            "--dry-run shows the script; to run the job, name another site (hpclaunch sites list)",
        )
