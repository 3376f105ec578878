"""Whether a job that a scheduler reports is the one of a record: numbers are given again. Pure.

Numbers come again when a scheduler has lost its state, when they wrap (Slurm's MaxJobId), and on each other
cluster that shares the home.
"""

from __future__ import annotations

import datetime as dt

from hpclaunch.job.record import JobRecord
from hpclaunch.scheduler.scheduler_interface import JobIdentity, JobStatus

_NEAR = dt.timedelta(minutes=10)
"""How far the clocks of two machines may differ, with the time that a submission takes."""


def own_status(record: JobRecord, status: JobStatus | None) -> JobStatus | None:
    """Return the status of this very job among those that the scheduler has for its number."""
    if status is None:
        return None
    return next((one for one in (status, *status.others) if is_same(record, one)), None)


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
