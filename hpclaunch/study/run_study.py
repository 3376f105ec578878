"""Running a study: its jobs are submitted smallest first, each when the one before has ended.

Started again, it goes on where it was: a job that was submitted is found by its name and waited for, one
whose submission never began is submitted again, and one whose submission may have begun ends the call with a
message.
"""

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from hpclaunch.amounts import amount_of, counted
from hpclaunch.api import Job, JobHandle, find_job, jobs
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Note
from hpclaunch.job.prepare import prepare
from hpclaunch.job.refresh import once
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan.layout import LaunchPlan
from hpclaunch.plan.settings import JobSettings
from hpclaunch.study.point_measure import measured_point
from hpclaunch.study.study_file import StudyFile, StudyPoint, next_point, report_of, save_study
from hpclaunch.study.sweep import filled

_PLACES = ("{batch}", "{nodes}", "{ranks}")
_NO_PLACE = re.compile(r"(?<!\$)\{(?:gpus|tasks|ntasks|node|rank|size|n)\}")
"""The text that is meant as one of them; behind a ``$`` it is the shell's."""


class PointJob(msgspec.Struct, frozen=True, kw_only=True):
    """A point's job, ready to be submitted."""

    job: Job
    plan: LaunchPlan
    script: str
    most_cost: float | None


def point_job(
    study: StudyFile, point: StudyPoint, after: str | None = None, note: Note | None = None
) -> PointJob:
    """Return the job of a point. Raises as a submission does, and for a batch that does not divide."""
    command = tuple(study.settings["command"])
    if wrong := _NO_PLACE.search(" ".join(command)):
        raise BadInputError(f"{wrong[0]} in the command stands for nothing", f"{', '.join(_PLACES)} do")
    plan = _job(study, point, filled(command, dict.fromkeys(_PLACES, "1")), after, note).plan()
    ranks = plan.tasks
    values = {"{nodes}": str(plan.nodes), "{ranks}": str(ranks)}
    if any("{batch}" in word for word in command):
        values["{batch}"] = str(_batch(study, ranks))
    job = _job(study, point, filled(command, values), after, note)
    plan, script = job.dry_run()
    billing, walltime = plan.profile.billing, plan.limit_s
    cost = plan.nodes * walltime / 3600 * billing.per_node_hour if billing and walltime else None
    return PointJob(job=job, plan=plan, script=script, most_cost=cost)


def _batch(study: StudyFile, ranks: int) -> int:
    """Return the samples per rank and step: the same in a weak study, a share of the same in a strong one."""
    if study.batch is None:
        raise BadInputError.case("study: no batch")
    if study.kind == "weak":
        return study.batch
    if study.batch % ranks:
        raise BadInputError(f"--batch {study.batch} is not divisible by {ranks} ranks", "choose a multiple")
    return study.batch // ranks


def _job(
    study: StudyFile, point: StudyPoint, command: tuple[str, ...], after: str | None, note: Note | None
) -> Job:
    size: dict[str, Any] = {"nodes": point.size} if study.by == "nodes" else {"tasks": point.size}
    more: dict[str, Any] = {} if after is None else {"after": (after,), "after_any": True}
    given = {**study.settings, **size, **more, "name": study.job_name(point), "command": command}
    settings = msgspec.convert(given, JobSettings, str_keys=True)
    file = Path(study.file) if study.file else None
    layers = read_layers(settings, file, is_program=study.is_program, is_file=study.is_file)
    return Job.of(prepare(layers), note)


def gpus_of(plan: LaunchPlan) -> int | None:
    """Return the GPUs that a job computes on; None: its ranks compute on CPUs."""
    node = plan.profile.node
    if node is None or not node.gpus:
        return None
    per_task = plan.request.gpus_per_task
    return plan.nodes * len(node.gpus) if per_task is None else plan.tasks * per_task or None


def continue_study(study: StudyFile, note: Note) -> StudyFile:
    """Submit and wait for what is left of the study; return it. Ctrl-C leaves the running job alone."""
    if os.getcwd() != study.workdir:
        raise BadInputError(f"the study {study.name} runs in {study.workdir}", f"cd {study.workdir}")
    study, note = msgspec.structs.replace(study, stopped=None), once(note)
    while True:
        study, planned = next_point(study)
        if planned is None:
            return save_study(study)
        job = point_job(study, planned, note=note)
        if planned.state == "planned" and (why := why_stop(study, planned, job)):
            return save_study(msgspec.structs.replace(study, stopped=why))
        with job.job.connected():
            handle = _submitted(study, planned, job, note)
            facts = {"gpus": gpus_of(job.plan), "job": handle.id, "state": "submitted"}
            point = msgspec.structs.replace(planned, **facts)
            study = save_study(study.with_point(point))
            with handle.connected():
                handle.wait()
                point = _judged(study, point, handle)
        study = save_study(study.with_point(point))
        note(_progress(study, point))


def submit_all(study: StudyFile, note: Note) -> StudyFile:
    """Submit all jobs at once, each waiting in the queue for the one before; the stop rules do not apply.

    Raises BadInputError where the jobs would overwrite each other's timeline before it is read.
    """
    if study.settings.get("timeline") and not study.metric:
        raise BadInputError.case("study: one timeline", timeline=study.settings["timeline"])
    before, note = None, once(note)
    for planned in study.points:
        if planned.state in ("measured", "failed"):
            continue
        job = point_job(study, planned, before, note)
        before = _submitted(study, planned, job, note).id
        facts = {"gpus": gpus_of(job.plan), "job": before, "state": "submitted"}
        study = save_study(study.with_point(msgspec.structs.replace(planned, **facts)))
        note(f"{_label(study, planned)}: job {before}")
    return study


def look_again(study: StudyFile, note: Note) -> StudyFile:
    """Measure the jobs that have ended since; submit nothing."""
    for point in study.points:
        handle = _handle_of(study, point, note)
        if point.state in ("measured", "failed") or handle is None:
            continue
        with handle.connected():
            handle.status()
            if handle.ended:
                study = study.with_point(_judged(study, point, handle))
    return study


def _judged(study: StudyFile, point: StudyPoint, handle: JobHandle) -> StudyPoint:
    try:
        return measured_point(study, point, handle)
    except BadInputError as error:  # a job that printed no figure is a failed point, not the study's end
        return msgspec.structs.replace(point, job=handle.id, state="failed", remark=error.message)


def _handle_of(study: StudyFile, point: StudyPoint, note: Note) -> JobHandle | None:
    """Return the newest job of a point, found by its name: a killed client may not have noted its id."""
    if point.job is not None:
        return find_job(point.job, note)
    name = study.job_name(point)
    found = [handle for handle in jobs(note=note) if handle.record.name == name]
    return found[-1] if found else None


def _submitted(study: StudyFile, point: StudyPoint, job: PointJob, note: Note) -> JobHandle:
    """Return the point's job, submitted now unless it was; raises RefusedError where that is unknown."""
    handle = _handle_of(study, point, note)
    if handle is None:
        return job.job.submit(test_first=False)  # the study's plan has asked for each size
    if _is_open(handle):
        handle.status()
    if _is_open(handle) and handle.withdraw():
        handle.forget()
        return job.job.submit(test_first=False)
    if _is_open(handle):
        raise RefusedError.case("study: not known", point=_label(study, point), handle=handle)
    return handle


def _is_open(handle: JobHandle) -> bool:
    return handle.record.scheduler_id is None and not handle.ended


def why_stop(study: StudyFile, point: StudyPoint, job: PointJob) -> str | None:
    """Return why this point is not submitted any more; None: it is."""
    if study.budget is not None:
        spent = sum(p.cost or 0.0 for p in study.points)
        if job.most_cost is None:
            return "the budget is limited, but the profile states no price, or the job has no walltime"
        if spent + job.most_cost > study.budget:
            costs = f"{spent:.4g} are spent and the job may cost {job.most_cost:.4g}"
            return f"{costs}; the budget is {study.budget:g}"
    if study.node_hours is not None and (why := _too_many_node_hours(study, point, job, study.node_hours)):
        return why
    before = [p for p in study.points if p.size < point.size]
    if failed := _all_failed(before):
        return f"all jobs with {counted(failed, study.by[:-1])} failed"
    smaller = [p for p in before if p.seconds is not None]
    if not smaller or not study.stop_below:
        return None
    largest = report_of(msgspec.structs.replace(study, points=tuple(smaller)))[0].points[-1]
    if largest.efficiency < study.stop_below:
        where = counted(largest.size, "rank" if largest.gpus is None else "GPU")
        return f"the efficiency with {where} was {largest.efficiency:.2f}, below {study.stop_below:g}"
    return None


def _too_many_node_hours(study: StudyFile, point: StudyPoint, job: PointJob, limit: float) -> str | None:
    """Return why a job is too long: by what this size took, else by its walltime, else by the longest job."""
    hours = [one.node_hours or 0.0 for one in study.points]
    same = [taken for one, taken in zip(study.points, hours, strict=True) if one.size == point.size]
    most, spent = max(same) or job.plan.nodes * (job.plan.limit_s or 0) / 3600 or max(hours), sum(hours)
    if spent + most <= limit:
        return None
    return f"{amount_of(spent, 'node-hours')} spent and the job may take {most:.4g}; the limit is {limit:g}"


def _all_failed(points: list[StudyPoint]) -> int | None:
    """Return the largest size whose jobs have all failed; None: there is none."""
    others = {point.size for point in points if point.state != "failed"}
    return max((point.size for point in points if point.size not in others), default=None)


def _label(study: StudyFile, point: StudyPoint) -> str:
    return f"{counted(point.size, study.by.removesuffix('s'))}, repeat {point.repeat}"


def _progress(study: StudyFile, point: StudyPoint) -> str:
    if point.seconds is None:
        return f"{_label(study, point)}: {point.remark}"
    return f"{_label(study, point)}: {point.seconds:.4g} s by {point.measured_by} (job {point.job})"
