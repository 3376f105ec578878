"""hpclaunch from Python: a job is planned, submitted and followed. The commands about jobs use this module.

``import hpclaunch`` offers these names and loads this module when the first one is used. Nothing is printed:
notes go to the logger ``hpclaunch``. Errors are those of `hpclaunch.errors`.

In the examples, which the tests run, ``job`` is that of `Job`, and ``handle`` one of it that has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpclaunch.amounts import counted
from hpclaunch.errors import BadInputError, HpclaunchError, RefusedError
from hpclaunch.host.host_interface import Host, Note
from hpclaunch.host.this_machine import open_host
from hpclaunch.job.record import BindingVerdict, JobRecord
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES

# The parts below load what they need: a command that asks for a state does not plan jobs.
if TYPE_CHECKING:
    from hpclaunch.job.prepare import Prepared
    from hpclaunch.plan.layout import LaunchPlan
    from hpclaunch.plan.settings_table import SettingsTable


def _info(text: str, *, warns: bool = False) -> None:
    import logging

    logging.getLogger("hpclaunch").log(logging.WARNING if warns else logging.INFO, "%s", text)


_warning = partial(_info, warns=True)


class _Connection:
    """The way to a job's host: opened for each call, or kept open for a block of calls."""

    def __init__(self, host: str | None) -> None:
        self._name = host
        self._host: Host | None = None

    @contextmanager
    def connected(self) -> Iterator[Host]:
        """Keep one connection for all calls in this block; see `JobHandle.connected`."""
        if self._host is not None:
            yield self._host
            return
        with open_host(self._name) as host:
            self._host = host
            try:
                yield host
            finally:
                self._host = None


class _JobMethods:
    """The actions on a job that is not submitted yet."""

    def __init__(
        self,
        *,
        file: Path | str | None = None,
        host: str | None = None,
        sync: Path | str | None = None,
        **settings: Any,
    ) -> None:
        """Take the settings of a job; profiles and files are read when the first method is called.

        ``settings``: the keys of a job file (docs/reference/job.md); a command that begins with ``mnist`` is
        the bundled training. ``file``: a job file with settings that these override. ``host`` and ``sync``:
        as the options of ``hpclaunch submit``. Raises BadInputError for an unknown setting or a wrong value.
        """
        import json

        import msgspec

        from hpclaunch.job.prepare import SubmitMode
        from hpclaunch.plan.settings import JobSettings
        from hpclaunch.plan.settings_table import rows
        from hpclaunch.site.validate import to_struct
        from hpclaunch.site.yaml_tree import parse_tree

        known = [row.name for row in rows()]
        if unknown := sorted(set(settings) - set(known)):
            raise BadInputError(f"Job: {unknown[0]!r} is not a setting", f"settings are {', '.join(known)}")
        if isinstance(settings.get("command"), str):
            raise BadInputError(f"Job: command is one text, {settings['command']!r}", "give a list of words")
        try:
            self._settings = msgspec.convert(settings, JobSettings, str_keys=True)
        except msgspec.ValidationError:  # JSON is YAML, whose reader says what would be right
            self._settings = to_struct(parse_tree(json.dumps(settings, default=str), "Job"), JobSettings)
        self._given = {"file": file, "host": host, "sync": sync, **settings}
        self._file = Path(file) if file is not None else None
        self._mode = SubmitMode(host=host, sync=Path(sync) if sync is not None else None)
        self._note: Note | None = None

    @classmethod
    def of(cls, prepared: Prepared, note: Note | None = None) -> Job:
        """Return the job of a request that was prepared before; ``note`` takes notes, instead of the log."""
        job = Job.__new__(Job)
        job.prepared, job._note = prepared, note
        return job

    @cached_property
    def prepared(self) -> Prepared:
        """The request with its profile, topology and host. Raises BadInputError."""
        from hpclaunch.job.prepare import prepare
        from hpclaunch.job.settings_files import read_layers

        return prepare(read_layers(self._settings, self._file), self._mode)

    @cached_property
    def _connection(self) -> _Connection:
        from hpclaunch.site.site_scheduler import refuse_submission

        refuse_submission(self.prepared.profile)  # before its host is called
        return _Connection(self.prepared.host)

    def connected(self) -> AbstractContextManager[Host]:
        """Keep one connection to the host for all calls in this block, also for those of the handle."""
        return self._connection.connected()

    def plan(self) -> LaunchPlan:
        """Return the plan: ranks, binding, queue, lines of the script, warnings, and problems if any.

        Raises BadInputError, and SiteRuleError for what the site would refuse.
        """
        return self.dry_run()[0]

    def script(self) -> str:
        """Return the batch script, as ``hpclaunch submit --dry-run`` prints it. Raises as `plan`."""
        return self.dry_run()[1]

    def dry_run(self, *, plain: bool = False) -> tuple[LaunchPlan, str]:
        """Return the plan and the script; ``plain``: one that needs no file of ours. Raises as `plan`."""
        from hpclaunch.job.job_script import dry_run

        return dry_run(self.prepared, plain=plain)

    def save(self, folder: str | Path) -> tuple[LaunchPlan, str]:
        """Write the script, ``job.sh``, and its files into a new folder; return the plan and the script.

        Raises as `plan`, and BadInputError where the folder cannot be made.
        """
        from hpclaunch.job.job_script import save_script

        return save_script(self.prepared, Path(folder))

    def expected_start(self) -> str | None:
        """Return the scheduler's estimate of the start; None where it makes none. Raises RefusedError."""
        from hpclaunch.job.start_job import try_submission

        if self.prepared.allocation is not None:
            return None
        notes: list[str] = []
        plan, script = self.dry_run()
        with self.connected() as host:
            try_submission(host, plan.scheduler, plan, script, notes.append)
        return notes[-1] if notes else None

    def submit(self, *, test_first: bool = True) -> JobHandle:
        """Submit the job and return at once; a job on this machine is started.

        ``test_first``: Slurm is asked first whether it accepts the job. Raises as `plan`, BadInputError for a
        command that would fail, and RefusedError where the scheduler or the host refuses.
        """
        from hpclaunch.job.start_job import start

        with self.connected() as host:
            record, plan = start(
                self.prepared, Store(), host, test_first=test_first, note=self._note or _info
            )
        for warning in plan.warnings:
            (self._note or _warning)(str(warning))
        return JobHandle(record, self._note, self._connection)

    def map(self, settings: Iterable[Mapping[str, Any]]) -> list[JobHandle]:
        """Submit this job once for each of these, settings that override its own; ``env`` adds to its own.

        All are planned before the first is submitted. Raises as `submit`, noting which were submitted before.
        """
        if not hasattr(self, "_given"):
            raise TypeError("a job of Job.of has no settings to override")
        several = []
        for each in settings:
            env = {**(self._given.get("env") or {}), **(each.get("env") or {})}
            several.append(Job(**{**self._given, **each, "env": env}))
            several[-1].plan()
        handles: list[JobHandle] = []
        with ExitStack() as stack:
            connections: dict[str | None, _Connection] = {}
            for job in several:
                if job.prepared.host not in connections:
                    stack.enter_context(job.connected())
                job._connection = connections.setdefault(job.prepared.host, job._connection)
                try:
                    handles.append(job.submit())
                except HpclaunchError:
                    ids = ", ".join(handle.id for handle in handles) or "none"
                    _warning(f"of {len(several)} jobs, these were submitted before: {ids}")
                    raise
        return handles


if TYPE_CHECKING:

    class Job(_JobMethods, SettingsTable, frozen=True, kw_only=True):
        """A job that is not submitted yet: the settings of a job file as keyword arguments."""

        command: Sequence[str] = ()  # type: ignore[assignment]
        site: str | None = None  # type: ignore[assignment]
        file: Path | str | None = None
        host: str | None = None
        sync: Path | str | None = None

else:

    class Job(_JobMethods):
        """A job that is not submitted yet: the settings of a job file as keyword arguments.

        >>> job = Job(command=["sh", "-c", "echo words"], site="local", tasks=1)
        >>> job.plan().tasks, job.script()[:11], job.prepared.profile.name, job.expected_start()
        (1, '#!/bin/bash', 'local', None)
        >>> job.save("saved")[0] == job.dry_run()[0] == Job.of(job.prepared).plan()
        True
        >>> with job.connected():  # one connection for all calls
        ...     job.submit().wait().state
        'done'
        >>> [each.wait().exit_code for each in job.map([{}, {"command": ["sh", "-c", "exit 5"]}])]
        [0, 5]
        """


class JobHandle:
    """A job that was submitted, by this process or another one; ``record``: its facts when last read.

    >>> handle, other = job.map([{}, {"name": "other"}])
    >>> handle.wait(timeout=60).state, handle.status().exit_code, handle.ended, handle.cancel().state
    ('done', 0, True, 'done')
    >>> with handle.connected():  # one connection for all calls
    ...     handle.logs(), handle.rank_stderr(0), handle.progress(), handle.result()
    (b'words\\n', b'', None, None)
    >>> handle.read_log(print)
    b'words\\n'
    >>> handle.binding().finding, handle.withdraw(), handle.record.name
    ('the rank got its binding', False, 'sh')
    >>> handle.index(3)
    Traceback (most recent call last):
    hpclaunch.errors.BadInputError: job ... has no index 3: it is not an array
    >>> other.wait() and other.forget()
    >>> find_job(other.id)
    Traceback (most recent call last):
    hpclaunch.job.store.NoSuchJobError: ...
    """

    def __init__(
        self, record: JobRecord, note: Note | None = None, connection: _Connection | None = None
    ) -> None:
        """Hold the job of this record; ``note`` takes notes, instead of the log."""
        self.record = record
        """The facts of the job when they were last read."""
        self._note = note
        self._connection = connection or _Connection(record.host)

    @cached_property
    def _store(self) -> Store:
        return Store()

    def __repr__(self) -> str:
        return f"<JobHandle {self.record.id} {self.record.state}>"

    @property
    def id(self) -> str:
        """The job's id, as the commands take it."""
        return self.record.id

    @property
    def ended(self) -> bool:
        """Whether the job had ended when its facts were last read."""
        return self.record.state in FINAL_STATES

    def connected(self) -> AbstractContextManager[Host]:
        """Keep one connection to the job's host for all calls in this block. Raises RefusedError."""
        return self._connection.connected()

    def index(self, index: int) -> JobHandle:
        """Return the job of this index of a job array. Raises BadInputError where there is none."""
        from hpclaunch.job.job_end import job_of_array

        return JobHandle(job_of_array(self.record, index), self._note, self._connection)

    def status(self) -> JobRecord:
        """Ask for the job's state and return the record. Raises RefusedError without an answer."""
        from hpclaunch.job.refresh import state_now

        with self.connected() as host:
            self.record = state_now(self._store, host, self.record, self._note or _info)
        return self.record

    def wait(
        self,
        on_output: Callable[[bytes], None] | None = None,
        *,
        timeout: float | None = None,
        interrupt_cancels: bool = False,
        on_poll: Callable[[], None] = lambda: None,
    ) -> JobRecord:
        """Wait for the job's end and return the final record; Ctrl-C ends the waiting, not the job.

        ``on_output`` gets the job's output as it comes, ``on_poll`` is called whenever it was read. With
        ``interrupt_cancels`` Ctrl-C and SIGTERM cancel the job. Raises TimeoutError after ``timeout``
        seconds; the job goes on.
        """
        from hpclaunch.job.follow_job import wait_job

        over = _time_limit(timeout)

        def polled() -> None:
            on_poll()
            if over():
                raise TimeoutError(f"job {self.id} did not end within {timeout:g} s")

        with self.connected() as host:
            self.record = wait_job(
                *(self._store, host, self.record, on_output),
                interrupt_cancels=interrupt_cancels,
                note=self._note or _info,
                on_poll=polled,
            )
        return self.record

    def cancel(self) -> JobRecord:
        """Cancel the job with all its ranks; one that has ended stays as it is. Raises RefusedError."""
        from hpclaunch.job.follow_job import cancel_job

        with self.connected() as host:
            self.record = cancel_job(self._store, host, self.record, self._note or _info)
        return self.record

    def logs(self) -> bytes:
        """Return the job's output so far. Raises BadInputError where there is none yet."""
        pieces: list[bytes] = []
        self.read_log(pieces.append)
        return b"".join(pieces)

    def read_log(self, on_output: Callable[[bytes], None]) -> None:
        """Pass the job's output so far on in pieces. Raises BadInputError where there is none yet."""
        from hpclaunch.job.follow_job import read_log

        with self.connected() as host:
            read_log(host, self.record, on_output)

    def rank_stderr(self, rank: int) -> bytes:
        """Return the end of what a rank wrote to its stderr, at least the last 64 KiB; empty: nothing."""
        from hpclaunch.job.log_extract import rank_stderr

        with self.connected() as host:
            return rank_stderr(host, self.record.folder, rank)

    def progress(self) -> bytes | None:
        """Return what the job wrote to ``progress.json``: how far it is; None where there is nothing."""
        from hpclaunch.job.follow_job import progress_of

        with self.connected() as host:
            return progress_of(host, self.record)

    def result(self) -> dict[str, Any] | None:
        """Return what the job wrote to HPCLAUNCH_RESULT_FILE; None where there is nothing."""
        from hpclaunch.job.follow_job import result_of

        with self.connected() as host:
            return result_of(host, self.record, self._note or _warning)

    def binding(self) -> BindingVerdict | None:
        """Return what the ranks reported of their binding so far; None where none was planned."""
        from hpclaunch.job.refresh import binding_verdict

        with self.connected() as host:
            return binding_verdict(host, self.record)

    def withdraw(self) -> bool:
        """Make sure that a job whose submission has not begun is never submitted; False: it has begun."""
        from hpclaunch.job.submission import prevent_submission

        with self.connected() as host:
            return prevent_submission(host, self.record.folder)

    def forget(self) -> None:
        """Remove the job's folder on this machine: record, script, log, result. It cancels nothing."""
        self._store.forget(self.record.id)


def jobs(newest: int | None = None, note: Note | None = None) -> list[JobHandle]:
    """Return the jobs of this user's records, the oldest first, with the states that were last known.

    ``newest``: how many, counted from the newest. ``note`` takes notes, instead of the log.

    >>> [each.record.state for each in jobs(newest=1)]
    ['done']
    """
    records, damaged = Store().list(newest)
    for sentence in damaged:
        (note or _warning)(sentence)
    return [JobHandle(record, note) for record in records]


def find_job(name: str = "last", note: Note | None = None) -> JobHandle:
    """Return the job of an id, either end of one, the scheduler's id, a name, or ``last``.

    ``note`` takes notes, instead of the log. Raises BadInputError where there is none, or several.

    >>> find_job("last").ended
    True
    """
    return JobHandle(Store().find(name), note)


def update(handles: Sequence[JobHandle], note: Note | None = None) -> None:
    """Ask for the states of many jobs; each scheduler on each host is asked once.

    Jobs whose host or scheduler cannot be asked keep the state that was last known, which is noted
    in the log, or by ``note``.

    >>> update([handle])
    """
    asked = {handle.record.host for handle in _open(handles)}
    if any(handle.record.state == "lost" for handle in handles):
        asked.add(None)  # a lost job may be found again; for that no connection is made
    for name in sorted(asked, key=str):
        _update_on(name, open_host(name), handles, note or _warning)


def _update_on(
    name: str | None, host: AbstractContextManager[Host], handles: Sequence[JobHandle], note: Note
) -> None:
    from hpclaunch.job.refresh import refresh_all

    there = [handle for handle in handles if handle.record.host == name]
    try:
        with host as connected:
            fresh = refresh_all(Store(), connected, [handle.record for handle in there], note)
    except RefusedError as error:
        note(f"jobs on {name} are shown in their last known state: {error}")
        return
    for handle, record in zip(there, fresh, strict=True):
        handle.record = record


def as_completed(handles: Iterable[JobHandle], *, timeout: float | None = None) -> Iterator[JobHandle]:
    """Yield each of these jobs when it has ended, the first first; a scheduler is asked once for all.

    One connection to each host is kept; one that cannot be reached in between is waited for. Raises
    TimeoutError where some have not ended after ``timeout`` seconds; they go on.

    >>> for each in as_completed(job.map([{}, {"name": "second"}]), timeout=60):
    ...     print(each.record.state)
    done
    done
    """
    from hpclaunch.job.refresh import once

    over, left, note = _time_limit(timeout), list(handles), once(_warning)
    pause_s, longest_s = max((get_scheduler(each.record.scheduler).poll_s for each in left), default=(0, 0))
    connections = {each.record.host: each._connection for each in _open(left)}
    with ExitStack() as stack:
        for connection in connections.values():
            stack.enter_context(connection.connected())
        while left:
            _look_at(left, connections, note)
            yield from (each for each in left if each.ended)
            left = _open(left)
            if left and over():
                raise TimeoutError(f"{counted(len(left), 'job')} did not end within {timeout:g} s")
            time.sleep(pause_s if left else 0)
            pause_s = min(pause_s * 1.5, longest_s)


def _open(handles: Iterable[JobHandle]) -> list[JobHandle]:
    return [handle for handle in handles if not handle.ended]


def _look_at(handles: Sequence[JobHandle], hosts: Mapping[str | None, _Connection], note: Note) -> None:
    for name in {handle.record.host for handle in _open(handles)}:
        _update_on(name, hosts[name].connected(), handles, note)
    for handle in handles:
        if handle.record.state == "lost":
            handle.wait()  # what it left may come late


def _time_limit(timeout: float | None) -> Callable[[], bool]:
    """Return a clock that tells whether ``timeout`` seconds from now are over; None: they never are."""
    until = None if timeout is None else time.monotonic() + timeout
    return lambda: until is not None and time.monotonic() >= until
