"""The states of jobs: from their scheduler first, then from the files in their folders.

A script writes its exit status as one decimal line to ``exit_status`` in the job's folder however it ends. So
a job is never forgotten, even when its scheduler has forgotten it.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host, NoAnswerError, UnreadableFileError
from hpclaunch.host.machine_identity import machine_identity
from hpclaunch.job.array_status import (
    array_paths,
    open_indices,
    with_array_status,
)
from hpclaunch.job.binding_report import BindingVerdict
from hpclaunch.job.job_end import EndLogs, binding_of, explained, own_reason, restarts_in, run_folders
from hpclaunch.job.log_extract import (
    CANCELLED,
    EXIT_STATUS,
    HANG,
    NEXT_ID,
    REASON,
    RESTARTS,
    SCRIPT,
    read_failures,
    read_traces,
)
from hpclaunch.job.record import JobRecord
from hpclaunch.job.store import Store
from hpclaunch.job.submission import recover
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, JobStatus, Scheduler
from hpclaunch.text_table import printable

NOT_SUBMITTED = "nothing was submitted: its submission has not begun, or was interrupted before"
LAST_KNOWN = "as last known on "
"""Begins the reason of a job whose processes cannot be seen from here."""
_LEFT = (EXIT_STATUS, CANCELLED, REASON, NEXT_ID, RESTARTS, HANG)

_Files = Mapping[str, bytes]
"""Small files of jobs by their paths; without those that do not exist."""

_QUERY_TIMEOUT_S = 120.0

Note = Callable[[str], None]


def to_stderr(text: str) -> None:
    """Print a note on stderr."""
    sys.stderr.write(f"hpclaunch: {printable(text)}\n")


def now() -> str:
    """Return this moment as ISO 8601 with time zone."""
    return dt.datetime.now(dt.timezone.utc).astimezone().isoformat(timespec="seconds")


def keep(store: Store, record: JobRecord, note: Note) -> JobRecord:
    """Save the record and return what is stored now; where nothing can be written, say so and go on without.

    A full disk must not hide what the scheduler reports. It is noted once for each store.
    """
    try:
        return store.save(record)
    except BadInputError as error:
        if not store.is_unwritable:
            note(f"{error.message}; the state shown is right, and is not saved")
        store.is_unwritable = True
        return record


def refresh(store: Store, host: Host, record: JobRecord, note: Note = to_stderr) -> JobRecord:
    """Ask for the state of a job, save and return its record; a final record is returned unchanged.

    Raises RefusedError where the scheduler cannot be asked and the job left no exit status.
    """
    (fresh,), trouble = _refresh_group(store, host, get_scheduler(record.scheduler), [record], note)
    if trouble and fresh.state not in FINAL_STATES:
        raise trouble
    return fresh


def state_now(store: Store, host: Host, record: JobRecord, note: Note = to_stderr) -> JobRecord:
    """Return the record as `refresh` does, of a running job with the number of its restarts so far."""
    record = refresh(store, host, record, note)
    if record.plan.get("supervision") and record.state == "running":
        return replace(record, restarts=restarts_in(host.read_file(f"{record.folder}/{RESTARTS}")))
    return record


def refresh_all(
    store: Store, host: Host, records: Sequence[JobRecord], note: Note = to_stderr
) -> list[JobRecord]:
    """Refresh many jobs with one query per scheduler; a scheduler that cannot be asked is noted."""
    fresh: dict[str, JobRecord] = {}
    for kind in sorted({record.scheduler for record in records}):
        group = [record for record in records if record.scheduler == kind]
        refreshed, trouble = _refresh_group(store, host, get_scheduler(kind), group, note)
        fresh |= {record.id: record for record in refreshed}
        if isinstance(trouble, UnreadableFileError):
            note(f"its job is shown as it was last known: {trouble.message}")
        elif trouble:
            note(f"{kind} jobs are shown as they were last known: {trouble.message}")
    return [fresh[record.id] for record in records]


def _refresh_group(
    store: Store, host: Host, scheduler: Scheduler, records: Sequence[JobRecord], note: Note
) -> tuple[list[JobRecord], RefusedError | None]:
    records = [_recovered(store, host, scheduler, record, note) for record in records]
    bad = {record.id: error for record in records if (error := _unusable_id(scheduler, record))}
    asked_for = [r for r in records if _is_open(r) and r.scheduler_id and r.id not in bad]
    away = dict[str, JobRecord]()
    if scheduler.starts_at_once:  # there is no queue: a job that left its exit status is over
        over, unreadable = _read_each(host, {r.id: [f"{r.folder}/{EXIT_STATUS}"] for r in asked_for})
        bad |= unreadable
        asked_for = [r for r in asked_for if f"{r.folder}/{EXIT_STATUS}" not in over and r.id not in bad]
        away = {r.id: last_known(r) for r in asked_for if is_elsewhere(r)}
        asked_for = [r for r in asked_for if r.id not in away]
    wanted = {record.scheduler_id or "": open_indices(record) for record in asked_for}
    known, trouble = _ask(host, scheduler, wanted)
    try:
        left, unreadable = _left_behind(host, records, known)
    except RefusedError as error:  # the host itself cannot be asked
        return list(records), trouble or error
    bad |= unreadable
    judged = [
        old
        if old.id in bad or old.id in away
        else _judged(old, scheduler, known.get(old.scheduler_id or ""), left, trouble is None)
        for old in records
    ]
    changed = [new for new, old in zip(judged, records, strict=True) if new != old]
    ended = [folder for new in changed if new.state in FINAL_STATES for folder in run_folders(new)]
    failed = [folder for new in changed for folder in run_folders(new, "failed")]
    try:
        logs = EndLogs(read_traces(host, ended), read_failures(host, failed))
    except RefusedError as error:
        return list(records), trouble or error
    saved = away | {
        new.id: keep(store, explained(new, logs, left, now()) if new.state in FINAL_STATES else new, note)
        for new in changed
    }
    return [saved.get(old.id, old) for old in records], trouble or next(iter(bad.values()), None)


def _unusable_id(scheduler: Scheduler, record: JobRecord) -> RefusedError | None:
    """Return what is wrong with a damaged id, about which a scheduler cannot be asked."""
    if record.scheduler_id is None or scheduler.is_id(record.scheduler_id) or not _is_open(record):
        return None
    return UnreadableFileError(f"{record.folder}/record.json: {record.scheduler_id!r} is not an id of a job")


def is_elsewhere(record: JobRecord) -> bool:
    """Return whether the processes of a job without a queue cannot be seen from here for certain."""
    here = get_scheduler(record.scheduler).starts_at_once
    return here and not machine_identity().sees_processes_of(record.machine)


def last_known(record: JobRecord) -> JobRecord:
    """Return the record of a job whose processes cannot be seen from here: it runs, as far as is known."""
    there = record.machine.host if record.machine else "a machine that is not recorded"
    why = "it cannot be seen from here: another machine, a container, or a restart since"
    return replace(record, state="running", reason=f"{LAST_KNOWN}{there}; {why}")


def _judged(
    record: JobRecord, scheduler: Scheduler, status: JobStatus | None, left: _Files, asked: bool
) -> JobRecord:
    """Return the record with its state from the scheduler, if ``asked``, and from its small files."""
    if not _is_open(record) and record.state != "lost":
        return record
    if record.array:
        asked = asked and record.scheduler_id is not None and _is_open(record)
        return with_array_status(record, status, left, now(), asked=asked)
    return _with_status(record, scheduler, status, left, asked=asked)


def _is_open(record: JobRecord) -> bool:
    return record.state not in FINAL_STATES


def _left_behind(
    host: Host, records: Sequence[JobRecord], known: Mapping[str, JobStatus]
) -> tuple[dict[str, bytes], dict[str, UnreadableFileError]]:
    """Read, in one round trip, what the jobs that neither wait nor run left in their folders."""
    wanted: dict[str, list[str]] = {}
    for record in records:
        if record.array and (_is_open(record) or record.state == "lost"):
            wanted[record.id] = [f"{record.folder}/{CANCELLED}", *array_paths(record)]
            continue
        status = known.get(record.scheduler_id or "")
        if (record.state not in FINAL_STATES or record.state == "lost") and not (
            status and status.state not in FINAL_STATES
        ):
            wanted[record.id] = [f"{record.folder}/{name}" for name in _LEFT]
    return _read_each(host, wanted)


def _read_each(
    host: Host, wanted: Mapping[str, Sequence[str]]
) -> tuple[dict[str, bytes], dict[str, UnreadableFileError]]:
    """Read files by the ids of their jobs: one that cannot be read is a fault of that job only."""
    try:
        return host.read_files([path for paths in wanted.values() for path in paths]), {}
    except UnreadableFileError:
        pass
    files: dict[str, bytes] = {}
    unreadable: dict[str, UnreadableFileError] = {}
    for job_id, paths in wanted.items():
        try:
            files |= host.read_files(paths)
        except UnreadableFileError as error:
            unreadable[job_id] = error
    return files, unreadable


def _recovered(store: Store, host: Host, scheduler: Scheduler, record: JobRecord, note: Note) -> JobRecord:
    """Return the record of a job whose submission was cut off, with its id where there is one by now."""
    if record.state != "created" or record.scheduler_id:
        return record
    try:
        found = recover(host, scheduler, f"{record.folder}/{SCRIPT}", record.folder)
    except NoAnswerError:
        return record
    except RefusedError as error:
        return keep(store, replace(record, state="failed", ended=now(), reason=error.message), note)
    if found is None:
        return replace(record, reason=record.reason or NOT_SUBMITTED)
    return keep(store, replace(record, scheduler_id=found, state="queued", reason=None), note)


def _ask(
    host: Host, scheduler: Scheduler, wanted: Mapping[str, frozenset[int]]
) -> tuple[dict[str, JobStatus], RefusedError | None]:
    """Ask the scheduler's sources in turn, each for what is still unknown.

    ``wanted``: id -> the indices asked for, where it is an array.
    """
    known: dict[str, JobStatus] = {}
    trouble: RefusedError | None = None
    for source in scheduler.status_sources:
        unknown = _unknown(wanted, known)
        for command in scheduler.status_commands(source, unknown) if unknown else ():
            try:
                answer = host.run(command, timeout_s=_QUERY_TIMEOUT_S, env=scheduler.query_env)
                for scheduler_id, status in scheduler.parse_status(source, unknown, answer).items():
                    before = known.get(scheduler_id, status)
                    known[scheduler_id] = replace(before, jobs={**status.jobs, **before.jobs})
            except RefusedError as error:
                trouble = trouble or error
    return known, trouble if _unknown(wanted, known) else None


def _unknown(wanted: Mapping[str, frozenset[int]], known: Mapping[str, JobStatus]) -> list[str]:
    return [i for i, indices in wanted.items() if i not in known or indices - known[i].jobs.keys()]


def _with_status(
    record: JobRecord, scheduler: Scheduler, status: JobStatus | None, files: _Files, asked: bool
) -> JobRecord:
    """Return the record with its state from the scheduler or, where that does not know it, the exit file."""
    if status and status.state not in FINAL_STATES:
        started = status.started or record.started
        return replace(record, state=status.state, reason=status.reason, started=started)
    left = _exit_status(files, record)
    following = _next_id(scheduler, files, record)
    if following and following.partition(";")[0] != (record.scheduler_id or "").partition(";")[0]:
        record = replace(record, scheduler_id=following)
        status = None  # how the job before it in the chain ended does not matter
        if left is None:
            return replace(record, state="queued", reason="restarted by its own script")
    if status is None:
        if left is None and (not asked or not record.scheduler_id):
            return record
        status = _status_from_exit_file(files, record, left)
    code = status.exit_code if status.exit_code is not None else left
    if status.state != "done" and code == 0:
        code = None  # the script's last word was good, but its scheduler ended it: a limit, a lost node
    own = own_reason(files, record) if status.state == "failed" else None
    if status.state == "failed" and own is None and not following and f"{record.folder}/{NEXT_ID}" in files:
        own = f"{status.reason}; {record.folder}/{NEXT_ID} holds no id of a next job"
    return replace(
        record,
        state=status.state,
        exit_code=code,
        reason=own or status.reason,
        started=status.started or record.started,
        ended=status.ended or record.ended,
    )


def binding_verdict(host: Host, record: JobRecord) -> BindingVerdict | None:
    """Return the ranks' reports on their binding so far, where one was planned."""
    return binding_of(record, read_traces(host, run_folders(record)))


def _next_id(scheduler: Scheduler, files: _Files, record: JobRecord) -> str | None:
    """Return the id of the job that took over after a checkpoint, where requeueing is not allowed."""
    text = files.get(f"{record.folder}/{NEXT_ID}", b"").decode(errors="replace")
    try:
        found = scheduler.parse_submit(CommandResult(exit_code=0, stdout=text, stderr=""))
    except RefusedError:
        return None
    return found if scheduler.is_id(found) else None


def _status_from_exit_file(files: _Files, record: JobRecord, left: int | None) -> JobStatus:
    if left == 0:
        return JobStatus(state="done", exit_code=0)
    if files.get(f"{record.folder}/{CANCELLED}"):  # empty: the cancellation was refused
        return JobStatus(state="cancelled", exit_code=left)
    if left is not None:
        return JobStatus(state="failed", exit_code=left, reason=f"the script ended with exit status {left}")
    return JobStatus(
        state="lost",
        reason=f"{record.scheduler} no longer knows the job, and it left no exit status: "
        "it was killed at once, its node or this machine went down, or its disk was full",
    )


def _exit_status(files: _Files, record: JobRecord) -> int | None:
    """Return what the script left in its exit file; None: nothing, or nothing that is a number."""
    text = files.get(f"{record.folder}/{EXIT_STATUS}", b"").strip()
    return int(text) if text.isdigit() and len(text) <= 3 else None
