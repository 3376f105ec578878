"""hpclaunch from Python: a job is planned, submitted and followed as by the commands.

``import hpclaunch`` offers these names and loads this module when the first one is used. Nothing is printed:
notes go to the logger ``hpclaunch``. Errors are those of `hpclaunch.errors`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.host.open_host import open_host
from hpclaunch.job.follow_job import cancel_job, read_log, result_of, wait_job
from hpclaunch.job.prepare import Prepared, SubmitMode, dry_run, prepare
from hpclaunch.job.record import JobRecord
from hpclaunch.job.refresh import state_now
from hpclaunch.job.settings_files import read_layers
from hpclaunch.job.start_job import start
from hpclaunch.job.store import Store
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.settings import JobSettings
from hpclaunch.plan.settings_table import SettingsTable, key, rows
from hpclaunch.scheduler.registry import get_scheduler

_LOG = logging.getLogger("hpclaunch")


class _JobMethods:
    """What can be done with a job that is not submitted yet."""

    def __init__(
        self,
        *,
        file: Path | str | None = None,
        host: str | None = None,
        sync: Path | str | None = None,
        **settings: Any,
    ) -> None:
        """Take the settings of a job; profiles and files are read when a method is called.

        ``settings``: the keys of a job file (docs/reference/job.md); a command that begins with ``mnist`` is
        the bundled training. ``file``: a job file with settings that these override. ``host`` and ``sync``:
        as the options of ``hpclaunch submit``. Raises BadInputError for an unknown setting or a wrong value.
        """
        known = [row.name for row in rows()]
        if unknown := sorted(set(settings) - set(known)):
            raise BadInputError(f"Job: {unknown[0]!r} is not a setting", f"settings are {', '.join(known)}")
        if isinstance(settings.get("command"), str):
            raise BadInputError(f"Job: command is one text, {settings['command']!r}", "give a list of words")
        try:
            self._settings = msgspec.convert(settings, JobSettings, str_keys=True)
        except msgspec.ValidationError as error:
            raise BadInputError(f"Job: {error}") from None
        self._file = Path(file) if file is not None else None
        self._mode = SubmitMode(host=host, sync=Path(sync) if sync is not None else None)

    def _prepared(self) -> Prepared:
        return prepare(read_layers(self._settings, self._file), self._mode)

    def plan(self) -> LaunchPlan:
        """Return the plan: ranks, binding, queue, lines of the script, warnings, and problems if any.

        Raises BadInputError, and SiteRuleError for what the site would refuse.
        """
        return dry_run(self._prepared())[0]

    def script(self) -> str:
        """Return the batch script, as ``hpclaunch submit --dry-run`` prints it. Raises as `plan`."""
        return dry_run(self._prepared())[1]

    def submit(self, *, test_first: bool = True) -> JobHandle:
        """Submit the job and return at once; a job on this machine is started.

        ``test_first``: Slurm is asked first whether it accepts the job. Raises as `plan`, BadInputError for a
        command that would fail, and RefusedError where the scheduler or the host refuses.
        """
        prepared, store = self._prepared(), Store()
        with open_host(prepared.host) as host:
            record, plan = start(prepared, store, host, test_first=test_first, note=_LOG.info)
        for warning in plan.warnings:
            _LOG.warning("%s", warning)
        return JobHandle(record)


if TYPE_CHECKING:

    class Job(_JobMethods, SettingsTable):
        """A job that is not submitted yet: the settings of a job file as keyword arguments."""

        command: Sequence[str] = key("", default=())  # type: ignore[assignment]
        site: str | None = key("", default=None)  # type: ignore[assignment]
        file: Path | str | None = None
        host: str | None = None
        sync: Path | str | None = None

else:

    class Job(_JobMethods):
        """A job that is not submitted yet: the settings of a job file as keyword arguments."""


class JobHandle:
    """A job that was submitted, by this process or another one."""

    def __init__(self, record: JobRecord) -> None:
        """Hold the job of this record."""
        self.record = record
        """The facts of the job when they were last read."""

    def __repr__(self) -> str:
        return f"<JobHandle {self.record.id} {self.record.state}>"

    @property
    def id(self) -> str:
        """The job's id, as the commands take it."""
        return self.record.id

    def status(self) -> JobRecord:
        """Ask for the job's state and return the record. Raises RefusedError without an answer."""
        return self._with_host(lambda store, host: state_now(store, host, self.record, _LOG.info))

    def wait(self, on_output: Callable[[bytes], None] | None = None) -> JobRecord:
        """Wait for the job's end and return the final record; Ctrl-C ends the waiting, not the job.

        ``on_output`` gets the job's output as it comes.
        """
        return self._with_host(
            lambda store, host: wait_job(
                store, host, self._scheduler(), self.record, on_output, note=_LOG.info
            )
        )

    def cancel(self) -> JobRecord:
        """Cancel the job with all its ranks; an ended one stays as it is. Raises RefusedError."""
        return self._with_host(
            lambda store, host: cancel_job(store, host, self._scheduler(), self.record, _LOG.info)
        )

    def logs(self) -> bytes:
        """Return the job's output so far. Raises BadInputError where there is none yet."""
        pieces: list[bytes] = []
        with open_host(self.record.host) as host:
            read_log(host, self.record, pieces.append)
        return b"".join(pieces)

    def result(self) -> dict[str, Any] | None:
        """Return what the job wrote to HPCLAUNCH_RESULT_FILE; None where there is nothing."""
        with open_host(self.record.host) as host:
            return result_of(host, self.record, note=_LOG.warning)

    def _with_host(self, act: Callable[[Store, Any], JobRecord]) -> JobRecord:
        store = Store()
        with open_host(self.record.host) as host:
            self.record = act(store, host)
        return self.record

    def _scheduler(self) -> Any:
        return get_scheduler(self.record.scheduler)


def jobs() -> list[JobHandle]:
    """Return all jobs of this user's records, the oldest first, with the states that were last known."""
    records, damaged = Store().list()
    for error in damaged:
        _LOG.warning("%s", error)
    return [JobHandle(record) for record in records]


def find_job(name: str = "last") -> JobHandle:
    """Return the job of an id, either end of one, the scheduler's id, a name, or ``last``.

    Raises BadInputError where there is none, or several.
    """
    return JobHandle(Store().find(name))
