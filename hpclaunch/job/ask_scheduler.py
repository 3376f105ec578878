"""The scheduler's reports about our jobs; each answer is compared with the job that is meant."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host, UnreadableFileError
from hpclaunch.host.this_machine import machine_identity
from hpclaunch.job.job_end import open_indices
from hpclaunch.job.log_extract import EXIT_STATUS
from hpclaunch.job.record import JobRecord
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, JobIdentity, JobStatus, Scheduler

LAST_KNOWN = "as last known on "
"""Begins the reason of a job that cannot be seen from here: its processes, or its cluster."""
QUERY_TIMEOUT_S = 120.0
_IDENTITY_TIMEOUT_S = 30.0


class Answers(NamedTuple):
    """The answers about jobs, by our ids."""

    statuses: Mapping[str, JobStatus] = {}
    cluster: str | None = None
    away: Mapping[str, str] = {}
    strangers: frozenset[str] = frozenset()
    unusable: Mapping[str, RefusedError] = {}
    trouble: RefusedError | None = None

    def tell_all_of(self, record: JobRecord) -> bool:
        """Return whether the scheduler was asked about this job: one without a status it does not know."""
        return self.trouble is None and record.id not in self.away and record.id not in self.unusable


def may_change(record: JobRecord) -> bool:
    """Return whether more may become known of a job: one that is lost may be found again."""
    return record.state not in FINAL_STATES or record.state == "lost"


def ask(host: Host, scheduler: Scheduler, records: Sequence[JobRecord]) -> Answers:
    """Ask the scheduler's sources in turn, each for the jobs of which something is still unknown."""
    unusable = dict(_unusable_ids(scheduler, records))
    usable = [record for record in records if record.scheduler_id and record.id not in unusable]
    if scheduler.starts_at_once:
        return _ask_this_machine(host, usable, unusable)
    answers = _ask_sources(host, scheduler, usable)._replace(unusable=unusable)
    missing = [record for record in usable if record.id not in answers.statuses]
    if answers.trouble or not missing or not scheduler.cluster_command:
        return answers
    return _compare_clusters(host, scheduler, missing, answers)


def _compare_clusters(
    host: Host, scheduler: Scheduler, missing: Sequence[JobRecord], answers: Answers
) -> Answers:
    """Tell jobs that another cluster has from those that this one no longer knows."""
    try:
        cluster = answers.cluster or _cluster(host, scheduler)
    except RefusedError as error:
        return answers._replace(trouble=error)
    places = {record.id: _other_cluster(scheduler, record, cluster) for record in missing}
    return answers._replace(cluster=cluster, away={id_: place for id_, place in places.items() if place})


def _ask_this_machine(
    host: Host, records: Sequence[JobRecord], unusable: Mapping[str, RefusedError]
) -> Answers:
    """There is no queue: a job that left its exit status is over, else its process shows whether it runs."""
    over, unreadable = read_each(host, {r.id: [f"{r.folder}/{EXIT_STATUS}"] for r in records})
    unusable = {**unusable, **unreadable}
    open_ones = [r for r in records if f"{r.folder}/{EXIT_STATUS}" not in over and r.id not in unusable]
    away = {r.id: _other_machine(r) for r in open_ones if is_elsewhere(r)}
    processes = _processes(host, [r for r in open_ones if r.id not in away])
    return Answers(statuses=processes, away=away, unusable=unusable)


def _processes(host: Host, records: Sequence[JobRecord]) -> dict[str, JobStatus]:
    """Return the jobs whose processes run; a file of /proc alone, since tar takes it for empty over ssh."""
    from hpclaunch.scheduler.local import is_running, process_file  # of such jobs alone

    ids = {record.id: record.scheduler_id or "" for record in records}
    running = [job for job, id_ in ids.items() if is_running(id_, host.read_file(process_file(id_)) or b"")]
    return dict.fromkeys(running, JobStatus(state="running"))


def _ask_sources(host: Host, scheduler: Scheduler, records: Sequence[JobRecord]) -> Answers:
    found: dict[str, JobStatus] = {}
    strangers: set[str] = set()
    trouble: RefusedError | None = None
    for source in scheduler.status_sources:
        ids = list(dict.fromkeys(r.scheduler_id or "" for r in _incomplete(records, found)))
        for command in scheduler.status_commands(source, ids) if ids else ():
            try:
                answer = host.run(command, timeout_s=QUERY_TIMEOUT_S, env=scheduler.query_env)
                told = scheduler.parse_status(source, ids, answer)
            except RefusedError as error:
                trouble = trouble or error
                continue
            strangers |= _take(records, told, found)
    open_questions = _incomplete(records, found)
    return Answers(
        statuses=found,
        cluster=next((status.identity.cluster for status in found.values()), None),
        strangers=frozenset(strangers - found.keys()),
        trouble=trouble if open_questions else None,
    )


def _take(
    records: Sequence[JobRecord], told: Mapping[str, JobStatus], found: dict[str, JobStatus]
) -> set[str]:
    """Put the statuses of our jobs into ``found``; return the jobs whose numbers are those of strangers."""
    strangers = set()
    for record in records:
        status = told.get(record.scheduler_id or "")
        if status is None:
            continue
        # The scheduler may have several jobs with the number.
        own = next((one for one in (status, *status.others) if is_same(record, one)), None)
        if own is None:
            strangers.add(record.id)
        else:
            before = found.get(record.id, own)
            found[record.id] = replace(before, jobs={**own.jobs, **before.jobs})
    return strangers


def _incomplete(records: Sequence[JobRecord], found: Mapping[str, JobStatus]) -> list[JobRecord]:
    return [r for r in records if r.id not in found or open_indices(r) - found[r.id].jobs.keys()]


def _cluster(host: Host, scheduler: Scheduler, timeout_s: float = QUERY_TIMEOUT_S) -> str:
    return scheduler.parse_cluster(host.run(scheduler.cluster_command, timeout_s=timeout_s))


def identity_of(host: Host, scheduler: Scheduler, record: JobRecord) -> JobIdentity | None:
    """Return which job it is for the scheduler that has just taken it; None where it gives no answer."""
    scheduler_id = record.scheduler_id or ""
    source = scheduler.status_sources[0]
    try:
        (command,) = scheduler.status_commands(source, [scheduler_id])
        answer = host.run(command, timeout_s=_IDENTITY_TIMEOUT_S, env=scheduler.query_env)
        status = scheduler.parse_status(source, [scheduler_id], answer).get(scheduler_id)
        said = status.identity if status else JobIdentity()
        cluster = scheduler.cluster_in(scheduler_id) or said.cluster
        if cluster is None and scheduler.cluster_command:
            cluster = _cluster(host, scheduler, _IDENTITY_TIMEOUT_S)
        return replace(said, cluster=cluster)
    except RefusedError:
        return None


def learned(record: JobRecord, answers: Answers) -> JobIdentity | None:
    """Return the identity of a record that has none, where the scheduler named its script."""
    said = answers.statuses[record.id].identity if record.id in answers.statuses else None
    if record.identity is not None or said is None or not names_script(record, said):
        return record.identity
    cluster = said.cluster or answers.cluster
    return replace(said, cluster=cluster) if cluster else None


def _unusable_ids(scheduler: Scheduler, records: Sequence[JobRecord]) -> Iterator[tuple[str, RefusedError]]:
    """Yield what is wrong with damaged ids, about which a scheduler cannot be asked."""
    for record in records:
        if record.scheduler_id and not scheduler.is_id(record.scheduler_id):
            text = f"{record.folder}/record.json: {record.scheduler_id!r} is not an id of a job"
            yield record.id, UnreadableFileError(text)


def _other_cluster(scheduler: Scheduler, record: JobRecord, cluster: str | None) -> str | None:
    """Return where a job is that another cluster has; None where that is not certain."""
    theirs = record.identity.cluster if record.identity else None
    if theirs is None or cluster in (None, theirs) or scheduler.cluster_in(record.scheduler_id or ""):
        return None
    return f"{LAST_KNOWN}{theirs}; it cannot be seen from here: {scheduler.title} here is {cluster}"


def cluster_is_known(scheduler: Scheduler, record: JobRecord) -> bool:
    """Return whether it is certain which cluster has the job, or there is no choice."""
    named = record.identity.cluster if record.identity else None
    return bool(named or scheduler.cluster_in(record.scheduler_id or "") or not scheduler.cluster_command)


def is_elsewhere(record: JobRecord) -> bool:
    """Return whether the processes of a job without a queue cannot be seen from here for certain."""
    here = get_scheduler(record.scheduler).starts_at_once
    return here and not machine_identity().sees_processes_of(record.machine)


def _other_machine(record: JobRecord) -> str:
    there = record.machine.host if record.machine else "a machine that is not recorded"
    return (
        f"{LAST_KNOWN}{there}; it cannot be seen from here: another machine, a container, or a restart since"
    )


def is_last_known(record: JobRecord) -> bool:
    """Return whether the state is that of a job which cannot be seen from here."""
    return record.state not in FINAL_STATES and (record.reason or "").startswith(LAST_KNOWN)


def read_each(
    host: Host, wanted: Mapping[str, Sequence[str]]
) -> tuple[dict[str, bytes], dict[str, RefusedError]]:
    """Read files by the ids of their jobs: one that cannot be read is a fault of that job only."""
    try:
        return host.read_files([path for paths in wanted.values() for path in paths]), {}
    except UnreadableFileError:
        pass
    files: dict[str, bytes] = {}
    unreadable: dict[str, RefusedError] = {}
    for job_id, paths in wanted.items():
        try:
            files |= host.read_files(paths)
        except UnreadableFileError as error:
            unreadable[job_id] = error
    return files, unreadable


# A number comes again when a scheduler has lost its state, when numbers wrap (Slurm's MaxJobId), and on each
# other cluster that shares the home.

_NEAR = dt.timedelta(minutes=10)
"""How far the clocks of two machines may differ, with the time that a submission takes."""


def is_same(record: JobRecord, status: JobStatus) -> bool:
    """Return whether the status is that of the record's job.

    The path of its script has the job's id in it, so it decides where the scheduler tells it; a site's
    wrapper of the submission may have put another script in its place, which the record then has. Where there
    is no path (SubmitLine of sacct 22.05 may be empty) the time of submission decides.
    """
    said, known = status.identity, record.identity or JobIdentity()
    if said.script is not None and names_script(record, said):
        return True
    if said.script is not None and (known.script is None or known.script not in said.script):
        return False
    if status.restarts:  # which has changed the time
        return True
    if record.identity is None:
        return _submitted_near(record, said)
    return _moment(said.submitted) == _moment(known.submitted)


def names_script(record: JobRecord, said: JobIdentity) -> bool:
    """Return whether the scheduler names a file in the job's folder, whose name no other job has."""
    return f"/{record.id}/" in (said.script or "")


def _submitted_near(record: JobRecord, said: JobIdentity) -> bool:
    """Return whether the job may be that of a record which does not know when it was submitted."""
    then, created = _moment(said.submitted), _moment(record.created)
    return then is None or created is None or abs(then - created) < _NEAR


def _moment(text: str | None) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text or "").astimezone()
    except (ValueError, OverflowError):
        return None
