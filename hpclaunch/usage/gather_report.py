"""Everything that a report is made of: read from the job's folder, its scheduler and its timelines."""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from hpclaunch.errors import BadInputError, HpclaunchError, RefusedError, note_text
from hpclaunch.host.host_interface import Host
from hpclaunch.job import follow_job, job_end, refresh
from hpclaunch.job.record import BindingVerdict, JobRecord
from hpclaunch.observe.job_timelines import bound_places, brought, read_timelines, timeline_files, timeline_of
from hpclaunch.package_data import package_constants, shell_words
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, AccountedJob, Scheduler
from hpclaunch.text_table import to_stderr
from hpclaunch.timeline.job_timeline import Place
from hpclaunch.timeline.timeline_documents import TimelineDocument
from hpclaunch.timeline.timeline_summary import summarised
from hpclaunch.usage.node_samples import NodeFile, read_samples

SAMPLES, LOST_WORK = "samples", "lost_work"
LIMIT = package_constants("usage/limits.yaml", "gathered")


class Progress(msgspec.Struct, frozen=True):
    """How far the bundled training has come."""

    step: int
    seconds: float


class LostWork(msgspec.Struct, frozen=True):
    """A line of the file ``lost_work``."""

    steps: int
    seconds: float


@dataclass(frozen=True)
class JobFacts:
    """The facts of a job; pure data."""

    record: JobRecord | None
    """None: hpclaunch did not submit it."""
    site: str
    scheduler: str
    accounted: tuple[AccountedJob, ...] = ()
    samples: Mapping[int | None, Mapping[str, NodeFile]] | None = None
    """Index in an array, else None -> node -> its file."""
    binding: BindingVerdict | None = None
    result: Mapping[str, Any] | None = None
    progress: Progress | None = None
    """Of a training that has not come to its end."""
    timeline: TimelineDocument | None = None
    lost: tuple[LostWork, ...] = ()
    """Of each run that went on after another one of the same job, as the bundled training counts it."""
    unknown: tuple[str, ...] = ()
    """Facts that could not be read, each in a sentence."""


def facts_of_job(host: Host, record: JobRecord) -> JobFacts:
    """Read all that a job of ours has left; what cannot be read is said."""
    facts = JobFacts(record=record, site=record.site, scheduler=record.scheduler, binding=record.binding)
    unknown: list[str] = []
    accounted: tuple[AccountedJob, ...] = ()
    samples: dict[int | None, dict[str, NodeFile]] = {}
    try:
        samples = _samples(host, record)
        if facts.binding is None and record.started:
            facts = replace(facts, binding=refresh.binding_verdict(host, record))
    except RefusedError as error:
        unknown.append(f"the samples and the binding cannot be read: {error.message}")
    if not samples and record.started:
        unknown.append(_why_no_samples(record))
    scheduler = get_scheduler(record.scheduler)
    try:
        accounted = _own(record, _accounted(host, scheduler, record.scheduler_id))
    except HpclaunchError as error:
        unknown.append(f"what the scheduler keeps of the job is not known: {error.message}")
    try:
        facts = replace(facts, result=None if record.array else follow_job.result_of(host, record, to_stderr))
        facts = replace(facts, lost=_lost_work(host, record), progress=_progress(host, record))
        timeline, why = _timeline(host, record, bound_places(facts.binding))
        facts = replace(facts, timeline=timeline)
        unknown += why
    except HpclaunchError as error:
        unknown.append(f"result and timelines cannot be read: {error.message}")
    return replace(facts, samples=samples, accounted=accounted, unknown=tuple(unknown))


def facts_of_other_job(host: Host, scheduler: Scheduler, site: str, job: str) -> JobFacts:
    """Ask a scheduler about a job that hpclaunch did not submit.

    Raises BadInputError where it does not know the job or is not asked, RefusedError where it gives no
    answer.
    """
    if scheduler.accounting is None:
        raise BadInputError.case("accounting: not read", job=job, scheduler=scheduler)
    if not scheduler.is_id(job):
        raise BadInputError(f"{job[:60]!r} is not an id of {scheduler.title}", "give its number")
    accounted = _accounted(host, scheduler, job)
    why = note_text("report: no sampler")
    return JobFacts(record=None, site=site, scheduler=scheduler.kind, accounted=accounted, unknown=(why,))


def _accounted(host: Host, scheduler: Scheduler, job: str | None) -> tuple[AccountedJob, ...]:
    if scheduler.accounting is None or job is None:
        return ()
    command = scheduler.accounting.query(job)
    return scheduler.accounting.parse(job, host.run(command, env=dict(scheduler.query_env), timeout_s=120.0))


def _own(record: JobRecord, accounted: tuple[AccountedJob, ...]) -> tuple[AccountedJob, ...]:
    """Return what is kept of the job; raise BadInputError where another job has its number."""
    if all(job.name in ("", record.name) for job in accounted):
        return accounted
    raise BadInputError(f"the accounting here has another job with the number {record.scheduler_id}")


def _why_no_samples(record: JobRecord) -> str:
    if "no_sample" not in record.request:
        return "there are no samples: an older hpclaunch submitted the job"
    if record.request["no_sample"]:
        return "there are no samples: the job was submitted with --no-sample"
    return "there are no samples: no rank has started, or the job's folder could not be written on the nodes"


def _samples(host: Host, record: JobRecord) -> dict[int | None, dict[str, NodeFile]]:
    folders = job_end.run_folders(record)
    limit = str(LIMIT.most_bytes // max(1, len(folders)))
    command = ("xargs", "-0", "-r", *shell_words(__file__, "read_samples.sh", "read_samples"))
    names = "".join(f"{folder}\0" for folder in folders)
    answer = host.run(
        command, stdin=os.fsencode(names), env={"LC_ALL": "C", "LIMIT": limit}, timeout_s=LIMIT.limit_s
    )
    parts = answer.stdout.split("\0")
    found: dict[int | None, dict[str, NodeFile]] = {}
    for path, text in zip(parts[::2], parts[1::2], strict=False):
        folder, _, node = path.rpartition("/")
        index = folder.removesuffix(f"/{SAMPLES}").rpartition("/")[2]
        key = int(index) if record.array else None
        found.setdefault(key, {})[node] = read_samples(node, text)
    return found


def _progress(host: Host, record: JobRecord) -> Progress | None:
    try:
        return msgspec.json.decode(follow_job.progress_of(host, record) or b"", type=Progress)
    except msgspec.DecodeError:
        return None  # there is none, it is just being written, or an older hpclaunch wrote it


def _lost_work(host: Host, record: JobRecord) -> tuple[LostWork, ...]:
    files = host.read_files([f"{folder}/{LOST_WORK}" for folder in job_end.run_folders(record)])
    found: list[LostWork] = []
    for line in (line for data in files.values() for line in data.splitlines()):
        with suppress(msgspec.DecodeError):  # cut on a full disk
            found.append(msgspec.json.decode(line, type=LostWork))
    return tuple(found)


def _timeline(
    host: Host, record: JobRecord, places: Mapping[int, Place]
) -> tuple[TimelineDocument | None, list[str]]:
    files = timeline_files(host, record) if not record.array and record.state in FINAL_STATES else ()
    if not files:
        return None, []
    if sum(file.size for file in files) > LIMIT.most_timeline_bytes:
        return None, [f"the timelines are large: hpclaunch timeline {record.id} reads them"]
    with tempfile.TemporaryDirectory(prefix="hpclaunch-report-") as folder:
        try:
            read = read_timelines(brought(host, record, files, Path(folder)))
        except BadInputError:  # files of the program that only have such names
            return None, []
    try:
        return summarised(timeline_of(record, read), places, (), record.id), []
    except BadInputError as error:
        return None, [f"the timelines are not read: {error.message}"]
