"""The jobs of a study's points: from the study's settings to a prepared job, with sizes in the command."""

from pathlib import Path
from typing import Any

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.job.prepare import Prepared, dry_run, prepare
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.settings import JobSettings
from hpclaunch.study.study_file import StudyFile, StudyPoint

_PLACES = ("{batch}", "{nodes}", "{ranks}")


class PointJob(msgspec.Struct, frozen=True, kw_only=True):
    """A point's job, ready to be submitted."""

    prepared: Prepared
    plan: LaunchPlan
    script: str
    most_cost: float | None
    """For the whole walltime; None: the site's rule is unknown, or there is no walltime."""


def point_job(study: StudyFile, point: StudyPoint, after: str | None = None) -> PointJob:
    """Return the job of a point. Raises as a submission does, and for a batch that does not divide."""
    command = tuple(study.settings["command"])
    plan = dry_run(_prepared(study, point, _filled(command, dict.fromkeys(_PLACES, "1")), after))[0]
    ranks = plan.tasks
    values = {"{nodes}": str(plan.nodes), "{ranks}": str(ranks)}
    if any("{batch}" in word for word in command):
        values["{batch}"] = str(_batch(study, ranks))
    prepared = _prepared(study, point, _filled(command, values), after)
    plan, script = dry_run(prepared)
    billing, walltime = plan.profile.billing, plan.walltime_s
    cost = plan.nodes * walltime / 3600 * billing.per_node_hour if billing and walltime else None
    return PointJob(prepared=prepared, plan=plan, script=script, most_cost=cost)


def _filled(command: tuple[str, ...], values: dict[str, str]) -> tuple[str, ...]:
    words = list(command)
    for place, value in values.items():
        words = [word.replace(place, value) for word in words]
    return tuple(words)


def _batch(study: StudyFile, ranks: int) -> int:
    """Return the samples per rank and step: the same in a weak study, a share of the same in a strong one."""
    if study.batch is None:
        raise BadInputError(
            "the command has {batch}, but no --batch was given",
            "--batch N: samples per step, of each rank (weak) or of all ranks (strong)",
        )
    if study.kind == "weak":
        return study.batch
    if study.batch % ranks:
        raise BadInputError(f"--batch {study.batch} is not divisible by {ranks} ranks", "choose a multiple")
    return study.batch // ranks


def _prepared(study: StudyFile, point: StudyPoint, command: tuple[str, ...], after: str | None) -> Prepared:
    size: dict[str, Any] = {"nodes": point.size} if study.by == "nodes" else {"tasks": point.size}
    more: dict[str, Any] = {} if after is None else {"after": (after,), "after_any": True}
    given = {**study.settings, **size, **more, "name": study.job_name(point), "command": command}
    settings = msgspec.convert(given, JobSettings, str_keys=True)
    file = Path(study.file) if study.file else None
    return prepare(read_layers(settings, file, is_program=study.is_program, is_file=study.is_file))


def gpus_of(plan: LaunchPlan) -> int | None:
    """Return the GPUs that a job computes on; None: its ranks compute on CPUs."""
    node = plan.profile.node
    if node is None or not node.gpus:
        return None
    per_task = plan.request.gpus_per_task
    return plan.nodes * len(node.gpus) if per_task is None else plan.tasks * per_task or None
