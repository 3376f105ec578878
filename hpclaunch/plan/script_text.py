"""From a LaunchPlan to the text of its script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpclaunch.plan.frameworks import framework_of
from hpclaunch.plan.gpu_visibility import visible_gpus
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.layout import JobPlace, programs_folder
from hpclaunch.plan.planner import about
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.shell_quoting import literal

if TYPE_CHECKING:
    from jinja2 import Environment

SAMPLER, RANK_STDERR = "sampler.sh", "rank_stderr.sh"
"""Files of ``hpclaunch/remote``, and of the job's folder."""


def render(plan: LaunchPlan, place: JobPlace, templates: Environment) -> str:
    """Return the script. Its text depends on the arguments alone.

    ``templates`` has a template ``KIND.sh.j2`` for the scheduler.

    Without a job folder in ``place`` (a dry run) the script writes its files to a folder
    ``hpclaunch-NUMBER`` where it is submitted, so that it works when it is submitted by hand.
    """
    scheduler = site_scheduler(plan.profile)
    array = scheduler.arrays if plan.request.array else None
    number, here = array.job_number if array else scheduler.job_number, scheduler.submit_folder
    programs = programs_folder(plan.request.array)
    return templates.get_template(scheduler.template).render(
        about=about(plan),
        header=plan.header,
        environment=plan.environment,
        rank_setup=plan.rank_setup,
        rank_end=site_launcher(plan.profile).rank_end,
        launch=plan.launch,
        argv=plan.argv,
        kind=scheduler.kind,
        programs=programs,
        session_file=site_launcher(plan.profile).session_file,
        **_coming_back(plan, scheduler),
        own_log=array is not None or scheduler.log_in_script,
        array_index=array.index_variable if array else None,
        supervision=plan.supervision,
        preflight=plan.preflight,
        staging=plan.staging,
        report=plan.binding is not None,
        strict=plan.request.binding == "strict",
        gpu_visible_var=_visible_var(plan),
        sees_all_gpus=_sees_all(plan),
        sample_s=0 if plan.request.no_sample else plan.request.sample,
        sampler=f'"{programs}/{SAMPLER}"',
        rank_stderr=f'"{programs}/{RANK_STDERR}"',
        job_id=literal(place.job_id) if place.job_id else f'"{number}"',
        folder=literal(place.folder) if place.folder else f'"{here}/hpclaunch-{number}"',
    )


def _coming_back(plan: LaunchPlan, scheduler: Scheduler) -> dict[str, str | tuple[str, ...]]:
    """Return the shell text by which a job comes back: requeued, or as the next of a chain."""
    if plan.supervision is None:
        return {"kept_files": ("exit_status",), "cancel_next": ""}
    again = scheduler.next_command('"$HPCLAUNCH_JOB_FOLDER/job.sh"')
    chain = scheduler.requeue and not plan.request.array
    return {
        "kept_files": ("exit_status", "reason", "restarts", *(("next_id",) if chain else ())),
        "requeue": scheduler.find_commands + scheduler.requeue if scheduler.requeue else "",
        "submit_again": scheduler.find_commands + " ".join(again),
        "cancel_next": scheduler.find_commands + " ".join(scheduler.cancel_command('"$1"')) if chain else "",
    }


def _visible_var(plan: LaunchPlan) -> str | None:
    ranks = plan.binding.ranks if plan.binding else ()
    return plan.profile.binding.gpu_visible_var if any(rank.gpus for rank in ranks) else None


def _sees_all(plan: LaunchPlan) -> bool:
    """Return whether a rank sees more GPUs than its own."""
    gpus = tuple(rank.gpus for rank in plan.binding.ranks) if plan.binding else ()
    return bool(any(gpus) and visible_gpus(framework_of(plan.request).device_by_local_rank, gpus))
