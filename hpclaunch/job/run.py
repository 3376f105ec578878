"""The life of a job: submit it once, know what became of it, follow it, end it.

The contract with the script: it writes its exit status as one decimal line to ``exit_status`` in the job's
folder however it ends, and its result, if any, to ``result.json`` there; its output goes to ``out.log``.
So a job is never forgotten, even when its scheduler has forgotten it.
"""

from __future__ import annotations

import datetime as dt
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.base import Host, NoAnswerError
from hpclaunch.job.array_log import ArrayLogReader
from hpclaunch.job.array_status import (
    array_paths,
    array_verdict,
    job_of_array,
    open_indices,
    sentence,
    with_array_status,
)
from hpclaunch.job.blame import alone, first_death, refused_mask
from hpclaunch.job.model import ArrayJob, JobRecord
from hpclaunch.job.node_report import failed_nodes, read_preflight
from hpclaunch.job.report import BindingVerdict, verdict
from hpclaunch.job.store import Store
from hpclaunch.job.submission import recover, submit_once
from hpclaunch.job.traces import EXIT_STATUS, LOG, Trace, read_traces
from hpclaunch.scheduler.base import FINAL_STATES, JobStatus, Scheduler, array_state
from hpclaunch.scheduler.registry import get_scheduler

SCRIPT, RESULT, CANCELLED, REASON, NEXT_ID = "job.sh", "result.json", "cancelled", "reason", "next_id"
_LEFT = (EXIT_STATUS, CANCELLED, REASON, NEXT_ID)

_Files = Mapping[str, bytes]
"""Small files of jobs by their paths; those that are not there are left out."""

_QUERY_TIMEOUT_S = 120.0
_LOG_POLL_MAX_S = 1.0
# What a job wrote last may reach this machine late where the file system is a network's.
_LATE_FILES_S = 5.0

Note = Callable[[str], None]


def to_stderr(text: str) -> None:
    """Print a note where a person sees it."""
    sys.stderr.write(f"hpclaunch: {text}\n")


def _now() -> str:
    return dt.datetime.now(dt.timezone.utc).astimezone().isoformat(timespec="seconds")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put Ctrl-C off to the end of the block: half a submission or half a cancel is worse than waiting."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        raise KeyboardInterrupt


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Make SIGTERM, as from ``timeout`` or a CI, in this block what Ctrl-C is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def submit_job(store: Store, host: Host, scheduler: Scheduler, record: JobRecord, script: str) -> JobRecord:
    """Write the script, submit it exactly once and return the saved record with the scheduler's id.

    Raises RefusedError with the scheduler's own words; the record then is ``failed`` and says them. Where
    the scheduler gave no answer in time the record stays ``created`` and says so; ``refresh`` finds out.
    """
    path = f"{record.folder}/{SCRIPT}"
    host.make_folder(record.folder)
    host.write_file(path, script.encode(), mode=0o755)
    with _uninterrupted():
        try:
            env = dict.fromkeys(scheduler.overriding(script))
            scheduler_id = submit_once(host, scheduler, path, record.folder, record.workdir, env)
        except NoAnswerError as error:
            store.save(replace(record, reason=f"{error.message}; it may have been submitted or not"))
            raise
        except RefusedError as error:
            store.save(replace(record, state="failed", ended=_now(), reason=error.message))
            raise
        started = _now() if scheduler.starts_at_once else None
        state = "running" if started else "queued"
        return store.save(replace(record, scheduler_id=scheduler_id, state=state, started=started))


def refresh(store: Store, host: Host, scheduler: Scheduler, record: JobRecord) -> JobRecord:
    """Ask what became of a job, save and return it; a final record is returned as it is.

    Raises RefusedError where the scheduler cannot be asked and the job left no exit status.
    """
    (record,), trouble = _refresh_group(store, host, scheduler, [record])
    if trouble and record.state not in FINAL_STATES:
        raise trouble
    return record


def refresh_all(
    store: Store, host: Host, records: Sequence[JobRecord], note: Note = to_stderr
) -> list[JobRecord]:
    """Refresh many jobs with one question to each scheduler; one that cannot be asked is noted."""
    fresh: dict[str, JobRecord] = {}
    for kind in sorted({record.scheduler for record in records}):
        group = [record for record in records if record.scheduler == kind]
        refreshed, trouble = _refresh_group(store, host, get_scheduler(kind), group)
        fresh |= {record.id: record for record in refreshed}
        if trouble:
            note(f"{kind} jobs are shown as they were last known: {trouble.message}")
    return [fresh[record.id] for record in records]


def _refresh_group(
    store: Store, host: Host, scheduler: Scheduler, records: Sequence[JobRecord]
) -> tuple[list[JobRecord], RefusedError | None]:
    records = [_recovered(store, host, scheduler, record) for record in records]
    asked_for = [record for record in records if _is_open(record) and record.scheduler_id]
    if scheduler.starts_at_once:  # no queue that had a say: a job that left its exit status is over
        over = host.read_files([f"{record.folder}/{EXIT_STATUS}" for record in asked_for])
        asked_for = [record for record in asked_for if f"{record.folder}/{EXIT_STATUS}" not in over]
    wanted = {record.scheduler_id or "": open_indices(record) for record in asked_for}
    known, trouble = _ask(host, scheduler, wanted)
    try:
        left = _left_behind(host, records, known)
    except RefusedError as error:  # the host itself cannot be asked
        return list(records), trouble or error
    judged = [_judged(old, known.get(old.scheduler_id or ""), left, trouble is None) for old in records]
    changed = [new for new, old in zip(judged, records, strict=True) if new != old]
    ended = [folder for new in changed if new.state in FINAL_STATES for folder in _run_folders(new)]
    try:
        traces = read_traces(host, ended)
    except RefusedError as error:
        return list(records), trouble or error
    saved = {
        new.id: store.save(_explained(new, traces, left) if new.state in FINAL_STATES else new)
        for new in changed
    }
    return [saved.get(old.id, old) for old in records], trouble


def _judged(record: JobRecord, status: JobStatus | None, left: _Files, asked: bool) -> JobRecord:
    """Return the record with what its scheduler, if that was ``asked``, and its small files say."""
    if not _is_open(record) and record.state != "lost":
        return record
    if record.array:
        asked = asked and record.scheduler_id is not None and _is_open(record)
        return with_array_status(record, status, left, _now(), asked=asked)
    return _with_status(record, status, left, asked=asked)


def _run_folders(record: JobRecord) -> list[str]:
    """Return the folders with a log: the job's own, of an array one a job."""
    return [f"{record.folder}/{index}" for index in sorted(record.array)] or [record.folder]


def _is_open(record: JobRecord) -> bool:
    return record.state not in FINAL_STATES


def _left_behind(host: Host, records: Sequence[JobRecord], known: Mapping[str, JobStatus]) -> _Files:
    """Read, in one round trip, what the jobs that neither wait nor run left in their folders."""
    folders, paths = [], list[str]()
    for record in records:
        if record.array and (_is_open(record) or record.state == "lost"):
            paths += [f"{record.folder}/{CANCELLED}", *array_paths(record)]
            continue
        status = known.get(record.scheduler_id or "")
        if (record.state not in FINAL_STATES or record.state == "lost") and not (
            status and status.state not in FINAL_STATES
        ):
            folders.append(record.folder)
    return host.read_files([*paths, *(f"{folder}/{name}" for folder in folders for name in _LEFT)])


def _recovered(store: Store, host: Host, scheduler: Scheduler, record: JobRecord) -> JobRecord:
    """Return the record of a job whose submission was cut off, with its id where there is one by now."""
    if record.state != "created" or record.scheduler_id:
        return record
    try:
        found = recover(host, scheduler, f"{record.folder}/{SCRIPT}", record.folder)
    except NoAnswerError:
        return record
    except RefusedError as error:
        return store.save(replace(record, state="failed", ended=_now(), reason=error.message))
    return store.save(replace(record, scheduler_id=found, state="queued", reason=None)) if found else record


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


def _with_status(record: JobRecord, status: JobStatus | None, files: _Files, asked: bool) -> JobRecord:
    """Return the record with what its scheduler or, where that does not know, its exit file says."""
    if status and status.state not in FINAL_STATES:
        started = status.started or record.started
        return replace(record, state=status.state, reason=status.reason, started=started)
    left = _exit_status(files, record)
    if following := _following(files, record):
        record, status = (
            replace(record, scheduler_id=following),
            None,
        )  # how its forerunner ended is no matter
        if left is None:
            return replace(record, state="queued", reason="restarted by its own script")
    if status is None:
        if left is None and (not asked or not record.scheduler_id):
            return record
        status = _status_from_exit_file(files, record, left)
    code = status.exit_code if status.exit_code is not None else left
    if status.state != "done" and code == 0:
        code = None  # the script's last word was good, but its scheduler ended it: a limit, a lost node
    own = _reason(files, record) if status.state == "failed" else None
    return replace(
        record,
        state=status.state,
        exit_code=code,
        reason=own or status.reason,
        started=status.started or record.started,
        ended=status.ended or record.ended,
    )


def _explained(record: JobRecord, traces: Mapping[str, Trace], files: _Files) -> JobRecord:
    """Return the record of an ended job with what its log says of its end and of its ranks' binding."""
    if record.array:
        array = {
            index: _with_log(job_of_array(record, index), job, traces, files)
            for index, job in record.array.items()
        }
        record = replace(record, array=array)
        record = replace(record, state=array_state(job.state for job in array.values()))
        said = read_preflight("\n".join(traces[f"{record.folder}/{index}"].log for index in record.array))
        reason = sentence(array, over=True)
        return replace(record, reason=reason, binding=_binding(record, traces), preflight=said)
    record = _with_log(record, record, traces, files)
    ended = record.ended or traces[record.folder].ended or _now()
    preflight = read_preflight(traces[record.folder].log)
    # Ranks that were never started have no binding to speak of.
    never = record.state != "done" and failed_nodes(preflight)
    binding = None if never else _binding(record, traces)
    return replace(record, ended=ended, binding=binding, preflight=preflight)


_Ended = TypeVar("_Ended", JobRecord, ArrayJob)


def _with_log(record: JobRecord, job: _Ended, traces: Mapping[str, Trace], files: _Files) -> _Ended:
    """Return the job, ``record`` itself or one of its array, with what its log says of its end."""
    log = traces[record.folder].log
    if job.state == "done" and (why := alone(record, log)):
        return replace(job, state="failed", exit_code=None, reason=why)
    if job.state != "failed" or _reason(files, record):
        return job
    why = refused_mask(record, log) or (first_death(log) if job.exit_code else None)
    if not why or why in (job.reason or ""):
        return job
    return replace(job, reason="; ".join(filter(None, (job.reason, why))) or None)


def _binding(record: JobRecord, traces: Mapping[str, Trace]) -> BindingVerdict | None:
    if record.plan.get("binding") is None:
        return None
    if record.array:
        logs = {index: traces[f"{record.folder}/{index}"].log for index in record.array}
        return array_verdict(record, logs)
    return verdict(traces[record.folder].log, record.tasks)


def binding_verdict(host: Host, record: JobRecord) -> BindingVerdict | None:
    """Return what the ranks said of their binding so far, where one was planned."""
    return _binding(record, read_traces(host, _run_folders(record)))


def log_text(host: Host, record: JobRecord) -> str:
    """Return the job's output so far; nothing where there is none yet."""
    return (host.read_file(f"{record.folder}/{LOG}") or b"").decode(errors="replace")


def _following(files: _Files, record: JobRecord) -> str | None:
    """Return the id of the job that took over after a checkpoint, where requeueing is not allowed."""
    text = files.get(f"{record.folder}/{NEXT_ID}", b"").decode(errors="replace")
    following = text.strip().partition(";")[0]  # sbatch --parsable: JOBID;CLUSTER
    return following if following and following != record.scheduler_id else None


def _reason(files: _Files, record: JobRecord) -> str | None:
    """Return what the script itself says of its end: a hang, restarts used up."""
    text = files.get(f"{record.folder}/{REASON}", b"").decode(errors="replace").strip()
    return text or None


def _status_from_exit_file(files: _Files, record: JobRecord, left: int | None) -> JobStatus:
    if left == 0:
        return JobStatus(state="done", exit_code=0)
    if f"{record.folder}/{CANCELLED}" in files:
        return JobStatus(state="cancelled", exit_code=left)
    if left is not None:
        return JobStatus(state="failed", exit_code=left, reason=f"the script ended with exit status {left}")
    return JobStatus(
        state="lost",
        reason=f"{record.scheduler} does not know the job any more, and it left no exit status: "
        "it was killed at once, or its node or this machine went down",
    )


def _exit_status(files: _Files, record: JobRecord) -> int | None:
    """Return what the script left in its exit file; None: nothing, or nothing that is a number."""
    text = files.get(f"{record.folder}/{EXIT_STATUS}", b"").strip()
    return int(text) if text.isdigit() and len(text) <= 3 else None


def wait_job(
    store: Store,
    host: Host,
    scheduler: Scheduler,
    record: JobRecord,
    on_output: Callable[[bytes], None] | None = None,
    *,
    interrupt_cancels: bool = False,
    poll_s: tuple[float, float] | None = None,
    note: Note = to_stderr,
) -> JobRecord:
    """Wait for the job's end and return the final record, passing its output on as it comes.

    The scheduler is asked ever less often, within ``poll_s`` (seconds; by default the scheduler's), and at
    once when the exit file appears. A scheduler that cannot be reached in between is waited for. Ctrl-C
    leaves the job alone and raises KeyboardInterrupt; with ``interrupt_cancels`` it, and SIGTERM, cancel
    the job first. Raises RefusedError for a job whose submission was not finished.
    """
    _need_id(record)
    try:
        with _sigterm_interrupts() if interrupt_cancels else nullcontext():
            return _wait(store, host, scheduler, record, on_output, poll_s or scheduler.poll_s, note)
    except KeyboardInterrupt:
        if interrupt_cancels:
            note(f"interrupted: ending job {record.id}")
            cancel_job(store, host, scheduler, record)
        raise


def _wait(
    store: Store,
    host: Host,
    scheduler: Scheduler,
    record: JobRecord,
    on_output: Callable[[bytes], None] | None,
    poll_s: tuple[float, float],
    note: Note,
) -> JobRecord:
    log = _log_reader(host, record, on_output)
    if record.state in FINAL_STATES or not scheduler.starts_at_once:  # else it may be over in a moment
        record = refresh(store, host, scheduler, record)
    pause_s, reachable, ended = poll_s[0], True, False
    while record.state not in FINAL_STATES:
        ended = _follow(host, record, log, pause_s, wake=not ended)
        pause_s = poll_s[0] if ended else min(pause_s * 1.5, poll_s[1])
        try:
            record = refresh(store, host, scheduler, record)
            reachable = True
        except RefusedError as error:
            if reachable:
                note(f"{error.message}; waiting for it")
            reachable = False
    if record.state == "lost" and not scheduler.starts_at_once:
        record = _look_again(store, host, scheduler, record)
    log.drain(late_s=_LATE_FILES_S if record.started and not scheduler.starts_at_once else 0.0, over=True)
    return record


def _follow(host: Host, record: JobRecord, log: _Log, pause_s: float, wake: bool) -> bool:
    """Pass output on for ``pause_s`` seconds; with ``wake`` return at once when the exit file appears.

    Returns whether it is there.
    """
    until = time.monotonic() + pause_s
    step_s = min(pause_s / 10, _LOG_POLL_MAX_S)
    while True:
        log.drain()
        ended = host.exists(f"{record.folder}/{EXIT_STATUS}")
        left_s = until - time.monotonic()
        if left_s <= 0 or (ended and wake):
            return ended
        time.sleep(min(step_s, left_s))
        step_s = min(step_s * 1.2, _LOG_POLL_MAX_S)


def _look_again(store: Store, host: Host, scheduler: Scheduler, record: JobRecord) -> JobRecord:
    until = time.monotonic() + _LATE_FILES_S
    while record.state == "lost" and time.monotonic() < until:
        time.sleep(0.5)
        record = refresh(store, host, scheduler, record)
    return record


class LogReader:
    """Reads a job's output from where it stopped."""

    def __init__(self, host: Host, record: JobRecord, on_output: Callable[[bytes], None] | None) -> None:
        self._host, self._path, self._on_output = host, f"{record.folder}/{LOG}", on_output
        self._offset = 0

    def drain(self, late_s: float = 0.0, *, over: bool = False) -> None:
        """Pass on what is there; ``late_s``: wait so long for a file that is not there yet."""
        if self._on_output is None:
            return
        until = time.monotonic() + late_s
        while not self._host.exists(self._path) and time.monotonic() < until:
            time.sleep(0.2)
        while data := self._host.tail(self._path, self._offset):
            self._offset += len(data)
            self._on_output(data)


_Log = LogReader | ArrayLogReader


def _log_reader(host: Host, record: JobRecord, on_output: Callable[[bytes], None] | None) -> _Log:
    return (ArrayLogReader if record.array else LogReader)(host, record, on_output)


def cancel_job(store: Store, host: Host, scheduler: Scheduler, record: JobRecord) -> JobRecord:
    """End a job and return its record, which may still be running where the scheduler takes its time.

    A final record is returned as it is. Raises RefusedError where the scheduler refuses or cannot be asked.
    """
    if record.state in FINAL_STATES:
        return record
    scheduler_id = _need_id(record)
    with _uninterrupted():
        # Said before it is done: another process that waits must not take the end for a failure.
        host.write_file(f"{record.folder}/{CANCELLED}", f"{_now()}\n".encode())
        while True:
            try:
                scheduler.parse_cancel(host.run(scheduler.cancel_command(scheduler_id)))
            except RefusedError:
                host.write_file(f"{record.folder}/{CANCELLED}", b"")
                raise
            record = refresh(store, host, scheduler, record)
            if record.state in FINAL_STATES or record.scheduler_id == scheduler_id:
                return record
            scheduler_id = _need_id(record)  # the next job of a chain had taken over


def _need_id(record: JobRecord) -> str:
    if record.scheduler_id is None and record.state not in FINAL_STATES:
        raise RefusedError(
            f"job {record.id} has no id from {record.scheduler}: its submission was not finished",
            f"look with {record.scheduler}'s own commands whether {record.folder}/{SCRIPT} is there",
        )
    return record.scheduler_id or ""


def result_of(host: Host, record: JobRecord, note: Note = to_stderr) -> dict[str, Any] | None:
    """Return what the job wrote to its result file; None where there is none or a damaged one (noted).

    Of an array: index -> that job's result, as far as there are any.
    """
    if record.array:
        paths = {f"{record.folder}/{index}/{RESULT}": str(index) for index in sorted(record.array)}
        found = {
            paths[path]: _result(path, data, note) for path, data in host.read_files(list(paths)).items()
        }
        return found or None
    path = f"{record.folder}/{RESULT}"
    data = host.read_file(path)
    return None if data is None else _result(path, data, note)


def _result(path: str, data: bytes, note: Note) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        note(f"{path}: damaged result: {error}")
        return None


def read_log(host: Host, record: JobRecord, on_output: Callable[[bytes], None]) -> None:
    """Pass the job's output so far on; raises BadInputError where there is none yet."""
    if not record.array and not host.exists(f"{record.folder}/{LOG}"):
        raise BadInputError(f"{record.folder}/{LOG}: no output yet", f"the job is {record.state}")
    _log_reader(host, record, on_output).drain(over=True)
