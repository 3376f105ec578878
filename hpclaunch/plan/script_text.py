"""From a LaunchPlan to the text of its script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpclaunch.plan.frameworks import shows_all_gpus
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import about
from hpclaunch.plan.script_body import script_writes_log
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.site_scheduler import site_scheduler
from hpclaunch.software.shell_quoting import literal

if TYPE_CHECKING:
    from jinja2 import Environment


def render(plan: LaunchPlan, place: JobPlace, templates: Environment) -> str:
    """Return the script. Its text depends on the arguments alone.

    ``templates`` has a template ``KIND.sh.j2`` for the scheduler.


    Without a job folder in ``place`` (a dry run) the script writes its files to a folder
    ``hpclaunch-NUMBER`` where it is submitted, so that it works when it is submitted by hand.
    """
    scheduler = site_scheduler(plan.profile)
    array = scheduler.arrays if plan.request.array else None
    number, here = array.job_number if array else scheduler.job_number, scheduler.submit_folder
    return templates.get_template(scheduler.template).render(
        about=about(plan),
        header=plan.header,
        environment=plan.environment,
        rank_setup=plan.rank_setup,
        launch=plan.launch,
        argv=plan.argv,
        kind=scheduler.kind,
        **_coming_back(plan, scheduler),
        own_log=array is not None or script_writes_log(plan.request, scheduler),
        array_index=array.index_variable if array else None,
        supervision=plan.supervision,
        preflight=plan.preflight,
        staging=plan.staging,
        report=plan.binding is not None,
        strict=plan.request.binding == "strict",
        gpu_visible_var=_visible_var(plan),
        own_gpus=_own_gpus(plan),
        job_id=literal(place.job_id) if place.job_id else f'"{number}"',
        folder=literal(place.folder) if place.folder else f'"{here}/hpclaunch-{number}"',
    )


def _coming_back(plan: LaunchPlan, scheduler: Scheduler) -> dict[str, str]:
    """Return the shell text by which a job comes back: requeued, or as the next of a chain."""
    if plan.supervision is None:
        return {}
    again = scheduler.submit_command('"$HPCLAUNCH_JOB_FOLDER/job.sh"')
    return {"requeue": scheduler.requeue, "submit_again": " ".join(again)}


def _visible_var(plan: LaunchPlan) -> str | None:
    ranks = plan.binding.ranks if plan.binding else ()
    return plan.profile.binding.gpu_visible_var if any(rank.gpus for rank in ranks) else None


def _own_gpus(plan: LaunchPlan) -> int:
    """Return how many of the GPUs that a rank sees are its own; 0: all of them."""
    gpus = tuple(rank.gpus for rank in plan.binding.ranks) if plan.binding else ()
    return len(gpus[0]) if shows_all_gpus(plan.request, gpus) else 0
