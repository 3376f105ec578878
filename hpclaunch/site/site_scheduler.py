"""The scheduler and the launcher that a site's profile names."""

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import Scheduler
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
        raise BadInputError(
            f"site {profile.name}: {name} does not start ranks under {scheduler.title}", f"it must be {known}"
        )
    return launcher
