"""The profiles of which nothing but the scheduler is known, and which of them fits this machine."""

import shutil

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.registry import schedulers
from hpclaunch.scheduler.scheduler_interface import Scheduler


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
    for its in schedulers():
        if its.told_by and shutil.which(its.told_by):
            raise BadInputError(
                f"this machine has {its.title} ({its.told_by} is here), which {its.no_submission}",
                "name another profile to begin with: --extends",
            )
    bases = base_profiles()
    return next(name for name, its in bases.items() if its.starts_at_once or shutil.which(its.submit_program))
