"""From a LaunchPlan to the text of its script."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hpclaunch.plan.frameworks import shows_all_gpus
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import about
from hpclaunch.scheduler.registry import get_scheduler

if TYPE_CHECKING:
    from jinja2 import Environment

# For a script without a job folder: scheduler -> (job number, folder of submission) as shell expressions.
_BY_HAND = {
    "slurm": ("$SLURM_JOB_ID", "$SLURM_SUBMIT_DIR"),
    "pbs": ("${PBS_JOBID%%[!0-9]*}", "$PBS_O_WORKDIR"),
    "local": ("$$", "$PWD"),
}

_ARRAY_INDEX = {"slurm": "SLURM_ARRAY_TASK_ID", "pbs": "PBS_ARRAY_INDEX"}


def render(plan: LaunchPlan, target: JobPlace, templates: Environment) -> str:
    """Return the script. Its text depends on the arguments alone.

    ``templates`` has a template ``KIND.sh.j2`` for the scheduler.


    Without a job folder in ``target`` (a dry run) the script keeps its files in a folder
    ``hpclaunch-NUMBER`` where it is submitted, so that it works when it is submitted by hand.
    """
    kind = plan.profile.scheduler.kind
    number, here = _BY_HAND[kind]
    if plan.request.array and kind == "slurm":
        number = "$SLURM_ARRAY_JOB_ID"
    return templates.get_template(f"{kind}.sh.j2").render(
        about=about(plan),
        header=plan.header,
        environment=plan.environment,
        rank_setup=plan.rank_setup,
        launch=plan.launch,
        argv=plan.argv,
        kind=kind,
        **_coming_back(plan),
        # What PBS opens for a job that comes back may be emptied, so the script itself writes on.
        own_log=bool(plan.request.array) or (kind == "pbs" and plan.request.max_restarts > 0),
        array_index=_ARRAY_INDEX[kind] if plan.request.array else None,
        supervision=plan.supervision,
        preflight=plan.preflight,
        report=plan.binding is not None,
        strict=plan.request.binding == "strict",
        gpu_visible_var=_visible_var(plan),
        own_gpus=_own_gpus(plan),
        job_id=shlex.quote(target.job_id) if target.job_id else f'"{number}"',
        folder=shlex.quote(target.folder) if target.folder else f'"{here}/hpclaunch-{number}"',
    )


def _coming_back(plan: LaunchPlan) -> dict[str, str]:
    """Return the shell text by which a job comes back: requeued, or as the next of a chain."""
    if plan.supervision is None:
        return {}
    scheduler = get_scheduler(plan.profile.scheduler.kind)
    again = scheduler.submit_command('"$HPCLAUNCH_JOB_FOLDER/job.sh"')
    return {"requeue": scheduler.requeue, "submit_again": " ".join(again)}


def _visible_var(plan: LaunchPlan) -> str | None:
    ranks = plan.binding.ranks if plan.binding else ()
    return plan.profile.binding.gpu_visible_var if any(rank.gpus for rank in ranks) else None


def _own_gpus(plan: LaunchPlan) -> int:
    """Return how many of the GPUs that a rank sees are its own; 0: all of them."""
    gpus = tuple(rank.gpus for rank in plan.binding.ranks) if plan.binding else ()
    return len(gpus[0]) if shows_all_gpus(plan.request, gpus) else 0
