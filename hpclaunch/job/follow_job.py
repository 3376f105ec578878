"""The life of a job: submit it once, follow it, wait for it, cancel it, fetch its result.

The contract with the script: its exit status goes to ``exit_status`` in the job's folder, its result, if any,
to ``result.json`` there, its output to ``out.log``. Its state is read in ``hpclaunch.job.refresh``.
"""

import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host, Note
from hpclaunch.job import ask_scheduler
from hpclaunch.job.log_extract import CANCELLED, EXIT_STATUS, LOG
from hpclaunch.job.record import JobRecord
from hpclaunch.job.refresh import NOT_SUBMITTED, refresh
from hpclaunch.job.store import Store, now
from hpclaunch.job.submission import SCRIPT, handling, prevent_submission, uninterrupted
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, Scheduler
from hpclaunch.text_table import to_stderr

RESULT = "result.json"
PROGRESS = "progress.json"

_LOG_POLL_MAX_S = 1.0
_IS = {"created": "was not submitted", "queued": "is queued", "running": "runs"}
# What a job wrote last may reach this machine late where the file system is a network's.
_LATE_FILES_S = 5.0


def log_text(host: Host, record: JobRecord) -> str:
    """Return the job's output so far; nothing where there is none yet."""
    return (host.read_file(f"{record.folder}/{LOG}") or b"").decode(errors="replace")


def failed_nodes(host: Host, record: JobRecord) -> tuple[str, ...]:
    """Return the nodes whose failure ended the job, if still known. Raises RefusedError: host not asked."""
    scheduler = get_scheduler(record.scheduler)
    command = scheduler.failed_nodes_command(record.scheduler_id) if record.scheduler_id else ()
    return scheduler.parse_failed_nodes(host.run(command, timeout_s=60)) if command else ()


def wait_job(
    store: Store,
    host: Host,
    record: JobRecord,
    on_output: Callable[[bytes], None] | None = None,
    *,
    interrupt_cancels: bool = False,
    poll_s: tuple[float, float] | None = None,
    note: Note = to_stderr,
    on_poll: Callable[[], None] = lambda: None,
) -> JobRecord:
    """Wait for the job's end and return the final record; see `JobHandle.wait`.

    The scheduler is asked at growing intervals, within ``poll_s`` (seconds; by default the scheduler's), and
    at once when the exit file appears. A scheduler that cannot be reached in between is waited for. Raises
    RefusedError for a job whose submission was not finished.
    """
    if record.state == "created":
        record = refresh(store, host, record, note)
    _need_id(record)
    try:
        # SIGTERM, as from ``timeout`` or a CI, is then what Ctrl-C is.
        terminated = handling(signal.SIGTERM, signal.default_int_handler)
        with terminated if interrupt_cancels else nullcontext():
            return _wait(store, host, record, on_output, poll_s, note, on_poll)
    except KeyboardInterrupt:
        if interrupt_cancels:
            note(f"interrupted: cancelling job {record.id}")
            cancel_job(store, host, record, note)
        raise


def _wait(
    store: Store,
    host: Host,
    record: JobRecord,
    on_output: Callable[[bytes], None] | None,
    poll_s: tuple[float, float] | None,
    note: Note,
    on_poll: Callable[[], None],
) -> JobRecord:
    scheduler = get_scheduler(record.scheduler)
    poll_s = poll_s or scheduler.poll_s
    log = _log_reader(host, record, on_output)
    record = refresh(store, host, record, note)
    if ask_scheduler.is_last_known(record):
        note(f"job {record.id} {_IS[record.state]}, {record.reason}; waiting for its exit status")
    pause_s, reachable, ended = poll_s[0], True, False
    while record.state not in FINAL_STATES:
        ended = _follow(host, record, log, on_poll, pause_s, wake=not ended)
        pause_s = poll_s[0] if ended else min(pause_s * 1.5, poll_s[1])
        try:
            record = refresh(store, host, record, note)
            reachable = True
        except RefusedError as error:
            if reachable:
                note(f"{error.message}; waiting for it")
            reachable = False
    if scheduler.starts_at_once:
        log.drain(over=True)
        return record
    record = _look_again(store, host, record, note)
    log.drain(late_s=_LATE_FILES_S if record.started else 0.0, over=True)
    return record


def _follow(
    host: Host, record: JobRecord, log: "_Log", on_poll: Callable[[], None], pause_s: float, wake: bool
) -> bool:
    """Pass output on for ``pause_s``, with ``wake`` until the exit file is there; return whether it is."""
    until = time.monotonic() + pause_s
    step_s = min(pause_s / 10, _LOG_POLL_MAX_S)
    while True:
        log.drain()
        on_poll()
        ended = host.exists(f"{record.folder}/{EXIT_STATUS}")
        left_s = until - time.monotonic()
        if left_s <= 0 or (ended and wake):
            return ended
        time.sleep(min(step_s, left_s))
        step_s = min(step_s * 1.2, _LOG_POLL_MAX_S)


def _look_again(store: Store, host: Host, record: JobRecord, note: Note) -> JobRecord:
    until = time.monotonic() + _LATE_FILES_S
    while record.state == "lost" and time.monotonic() < until:
        time.sleep(0.5)
        record = refresh(store, host, record, note)
    return record


class LogReader:
    """Reads a job's output from where it stopped."""

    def __init__(self, host: Host, record: JobRecord, on_output: Callable[[bytes], None] | None) -> None:
        self._host, self._path, self._on_output = host, f"{record.folder}/{LOG}", on_output
        self._offset, self._last = 0, b""

    def drain(self, late_s: float = 0.0, *, over: bool = False) -> None:
        """Pass on what is there; ``late_s``: wait so long for a file that is not there yet."""
        if self._on_output is None:
            return
        until = time.monotonic() + late_s
        while time.monotonic() < until and not self._host.exists(self._path):
            time.sleep(0.2)
        while data := self._next_piece():
            self._offset, self._last = self._offset + len(data), data[-1:]
            self._on_output(data)

    def _next_piece(self) -> bytes:
        """Return what follows; all where the last byte, read again, shows that another run emptied it."""
        if self._offset:
            data = self._host.tail(self._path, self._offset - 1)
            if data[:1] == self._last:
                return data[1:]
            self._offset = 0
        return self._host.tail(self._path, 0)


class ArrayLogReader:
    """Passes the logs on, each below a line with its index; see LogReader."""

    def __init__(self, host: Host, record: JobRecord, on_output: Callable[[bytes], None] | None) -> None:
        self._host, self._folder, self._on_output = host, record.folder, on_output
        self._left = sorted(record.array)

    def drain(self, late_s: float = 0.0, *, over: bool = False) -> None:
        """Pass on the logs of the jobs that have ended since; ``over``: all that are left."""
        if self._on_output is None:
            return
        statuses = {i: f"{self._folder}/{i}/exit_status" for i in self._left}
        ended = self._host.read_files(list(statuses.values())) if statuses and not over else {}
        for index, path in statuses.items():
            if over or path in ended:
                self._left.remove(index)
                self._show(f"job {index}", f"{self._folder}/{index}/out.log")
        if over:
            self._show("the array", f"{self._folder}/out.log")

    def _show(self, title: str, path: str) -> None:
        assert self._on_output is not None  # noqa: S101
        offset = 0
        while data := self._host.tail(path, offset):
            if not offset:
                self._on_output(f"==> {title} <==\n".encode())
            offset += len(data)
            self._on_output(data)


_Log = LogReader | ArrayLogReader


def _log_reader(host: Host, record: JobRecord, on_output: Callable[[bytes], None] | None) -> _Log:
    return (ArrayLogReader if record.array else LogReader)(host, record, on_output)


def cancel_job(store: Store, host: Host, record: JobRecord, note: Note = to_stderr) -> JobRecord:
    """Cancel a job and return its record, which may still be running where the scheduler takes its time.

    The scheduler is always asked, whatever the record says, and only this very job is cancelled: its number
    may be another's by now. One whose submission has not begun is never submitted. A file that cannot be
    written does not keep the scheduler from being asked. Raises RefusedError where the scheduler refuses or
    is not the job's, and where the job's processes are on another machine.
    """
    if record.state == "created" and not record.scheduler_id:
        return _cancel_submission(store, host, record, note)
    scheduler = get_scheduler(record.scheduler)
    if record.scheduler_id is None:
        return record
    if ask_scheduler.is_elsewhere(record):
        if record.state in FINAL_STATES:
            return record
        raise _not_from_here(record, record.machine.host if record.machine else None)
    if not scheduler.starts_at_once:
        record = _seen_by_scheduler(store, host, scheduler, record, note)
    if record.state not in FINAL_STATES:
        return _cancel(store, host, scheduler, record, note)
    if scheduler.starts_at_once:
        _end_what_is_left(host, scheduler, record, note)
    return record


def _seen_by_scheduler(
    store: Store, host: Host, scheduler: Scheduler, record: JobRecord, note: Note
) -> JobRecord:
    """Return the record as the scheduler knows the job; raise RefusedError where that cannot be cancelled."""
    answers = ask_scheduler.ask(host, scheduler, [record])
    if why := _why_not_cancelled(scheduler, record, answers):
        raise why
    status = answers.statuses.get(record.id)
    if status is None or status.state in FINAL_STATES:
        return refresh(store, host, record, note)
    if record.state not in FINAL_STATES:
        return record
    note(f"job {record.id} was {record.state} as recorded, but {scheduler.title} still has it")
    return store.save(replace(record, state=status.state, reason=status.reason, ended=None), reopen=True)


def _why_not_cancelled(
    scheduler: Scheduler, record: JobRecord, answers: ask_scheduler.Answers
) -> RefusedError | None:
    """Return why a job cannot be cancelled that its scheduler may have: its number may be another job's."""
    by_hand = f"where it is: {' '.join(scheduler.cancel_command(record.scheduler_id or ''))}"
    if trouble := answers.trouble or answers.unusable.get(record.id):
        words = f"it cannot be asked whether {record.scheduler_id} is still this job: {trouble.message}"
        return RefusedError(f"{scheduler.title} did not cancel job {record.id}: {words}", by_hand)
    if record.id in answers.statuses or not ask_scheduler.may_change(record):
        return None
    if record.id in answers.away:
        return _not_from_here(record, record.identity.cluster if record.identity else None)
    if ask_scheduler.cluster_is_known(scheduler, record):
        return None
    words = f"{scheduler.title} here does not know job {record.scheduler_id} of {record.folder}"
    return RefusedError(f"{words}, and the record does not tell which cluster took it", by_hand)


def _not_from_here(record: JobRecord, there: str | None) -> RefusedError:
    there = there or "the machine that runs it"
    return RefusedError.case("cancel: other machine", record=record, there=there)


def _end_what_is_left(host: Host, scheduler: Scheduler, record: JobRecord, note: Note) -> None:
    answer = host.run(scheduler.cancel_command(record.scheduler_id or ""))
    scheduler.parse_cancel(answer)
    if left := answer.stdout.strip():
        note(f"job {record.id} had left processes, which were ended: {left}")


def _cancel(store: Store, host: Host, scheduler: Scheduler, record: JobRecord, note: Note) -> JobRecord:
    scheduler_id = _need_id(record)
    with uninterrupted():
        # Said before it is done: another process that waits must not take the end for a failure.
        marked = _mark_cancelled(host, record, f"{now()}\n".encode())
        while True:
            try:
                scheduler.parse_cancel(host.run(scheduler.cancel_command(scheduler_id)))
            except RefusedError:
                _mark_cancelled(host, record, b"")
                raise
            try:
                record = refresh(store, host, record, note)
            except RefusedError as error:
                note(f"cancelled, but its state is not known: {error.message}")
                return record
            if record.state in ("failed", "lost") and not marked:
                ended = replace(record, state="cancelled", reason=None, ended=record.ended or now())
                return store.keep(ended, note)
            if record.state in FINAL_STATES or record.scheduler_id == scheduler_id:
                return record
            scheduler_id = _need_id(record)  # the next job of a chain had taken over


def _mark_cancelled(host: Host, record: JobRecord, mark: bytes) -> bool:
    """Return whether the job's folder took the mark."""
    try:
        host.write_file(f"{record.folder}/{CANCELLED}", mark)
    except (BadInputError, RefusedError):
        return False
    return True


def _cancel_submission(store: Store, host: Host, record: JobRecord, note: Note) -> JobRecord:
    """End a job that the scheduler does not have, or raise RefusedError where it may have it."""
    if prevent_submission(host, record.folder):
        ended = replace(record, state="cancelled", ended=now(), reason="nothing was submitted")
        return store.keep(ended, note)
    record = refresh(store, host, record, note)
    if record.state == "created":
        _need_id(record)
    return cancel_job(store, host, record, note)


def _need_id(record: JobRecord) -> str:
    if record.scheduler_id is None and record.state not in FINAL_STATES:
        if record.reason == NOT_SUBMITTED:
            raise RefusedError.case("cancel: not submitted", record=record)
        raise RefusedError.case("cancel: no id", record=record, script=SCRIPT)
    return record.scheduler_id or ""


def result_of(host: Host, record: JobRecord, note: Note = to_stderr) -> dict[str, Any] | None:
    """Return what the job wrote to its result file; None where there is none or a damaged one (noted).

    Of an array: index -> that job's result, as far as there are any.
    """
    if record.array:
        paths = {f"{record.folder}/{index}/{RESULT}": str(index) for index in sorted(record.array)}
        files = host.read_files(list(paths))
        return {paths[path]: _result(path, data, note) for path, data in files.items()} or None
    path = f"{record.folder}/{RESULT}"
    data = host.read_file(path)
    return None if data is None else _result(path, data, note)


def _result(path: str, data: bytes, note: Note) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        note(f"{path}: damaged result: {error}")
        return None


def progress_of(host: Host, record: JobRecord) -> bytes | None:
    """Return the file in which the job reports its progress; None where there is none."""
    return host.read_file(f"{record.folder}/{PROGRESS}")


def read_log(host: Host, record: JobRecord, on_output: Callable[[bytes], None]) -> None:
    """Pass the job's output so far on; raises BadInputError where there is none yet."""
    if not record.array and not host.exists(f"{record.folder}/{LOG}"):
        raise BadInputError(f"{record.folder}/{LOG}: no output yet", f"the job is {record.state}")
    _log_reader(host, record, on_output).drain(over=True)
