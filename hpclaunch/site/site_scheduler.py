"""The scheduler and the launcher that a site's profile names, and the profiles that name nothing else."""

from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.scheduler.job_header import Launcher
from hpclaunch.scheduler.registry import get_scheduler, schedulers
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import SiteProfile


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
