"""Shared by the commands about jobs: the argument that names a job, and how a job is shown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._options import wants_document
from hpclaunch.cli._terminal import printed
from hpclaunch.errors import HpclaunchError, RefusedError
from hpclaunch.text_table import to_stderr

if TYPE_CHECKING:
    from hpclaunch.api import JobHandle
    from hpclaunch.job.record import JobRecord


def named(job: str) -> JobHandle:
    """Return the job of this name or id; what had to be noted of it is on stderr. Raises BadInputError."""
    from hpclaunch.api import find_job

    return find_job(job, to_stderr)


def named_or_all(jobs: tuple[str, ...], every: bool, **among: Any) -> list[JobHandle]:
    """Return the jobs that are named, each once, or all that ``chosen`` takes by the options of ``among``."""
    from hpclaunch.api import jobs as all_jobs

    if bool(jobs) == every:
        raise click.UsageError("name the jobs, or give --all")
    if every:
        return chosen(all_jobs(note=to_stderr), **among)
    if any(among.values()):
        *names, last = (f"--{name.removesuffix('s')}" for name in among)
        raise click.UsageError(f"{', '.join(names)} and {last} choose among the jobs of --all")
    return list({(found := named(job)).id: found for job in jobs}.values())


def chosen(
    handles: list[JobHandle],
    sites: tuple[str, ...],
    names: tuple[str, ...],
    since: str | None,
    before: str | None = None,
) -> list[JobHandle]:
    """Return the jobs of these sites whose name fits one of the patterns, submitted between these times."""
    for site in set(sites) - {handle.record.site for handle in handles}:
        from hpclaunch.site.load_profile import load_site

        load_site(site)  # a misspelt one would silently choose nothing
    times = {"--since": since, "--before": before}
    first, last = (moment(text, option) if text else None for option, text in times.items())
    return [
        handle
        for handle in handles
        if (not sites or handle.record.site in sites)
        and (not names or any(fnmatchcase(handle.record.name, pattern) for pattern in names))
        and (first is None or _submitted(handle.record) >= first)
        and (last is None or _submitted(handle.record) < last)
    ]


def act(handles: list[JobHandle], action: Callable[[JobHandle], str]) -> bool:
    """Do this to each job, whichever fails, and print what it says; return whether it did it to all."""
    from hpclaunch.job.job_documents import ActionDocument

    found = []
    for handle in handles:
        try:
            words, done = action(handle), True
        except HpclaunchError as error:
            words, done = str(error), False
        if not (done and wants_document()):
            click.echo(words if done else f"hpclaunch: {words}", err=not done)
        found.append(ActionDocument(id=handle.id, state=handle.record.state, done=done, message=words))
    printed(found)
    return all(each.done for each in found)


@contextmanager
def goes_on(handle: JobHandle) -> Iterator[None]:
    """Tell after Ctrl-C, which ends only the waiting in this block, how to follow and how to end the job."""
    try:
        yield
    except KeyboardInterrupt:
        ways = f"hpclaunch logs -f {handle.id} follows it, hpclaunch cancel {handle.id} ends it"
        click.echo(f"hpclaunch: job {handle.id} goes on: {ways}", err=True)
        raise


_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def moment(text: str, option: str) -> dt.datetime:
    """Return the time of an age (``2h``) or date, local where it names no zone. Raises click.BadParameter."""
    try:
        if text[-1:] in _UNITS_S:
            age = dt.timedelta(seconds=int(text[:-1]) * _UNITS_S[text[-1]])
            return dt.datetime.now(dt.timezone.utc) - age
        return dt.datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        words = f"{text!r} is neither an age, such as 30m, 2h, 7d, nor a date, such as 2026-11-21"
        raise click.BadParameter(words, param_hint=option) from None


def _submitted(record: JobRecord) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(record.created).astimezone()
    except ValueError:
        return dt.datetime.max.replace(tzinfo=dt.timezone.utc)  # a damaged time hides no job


def shown_state(record: JobRecord) -> str:
    """Return the state as people read it: of a job that cannot be seen from here, where it was last known."""
    from hpclaunch.job.ask_scheduler import is_last_known

    where = f", {str(record.reason).partition(';')[0]}" if is_last_known(record) else ""
    return f"{record.state}{where}"


def up_to_date(handle: JobHandle) -> JobRecord:
    """Return the record with its state of now; with the last known one, and a note, where that is unknown."""
    if handle.ended and handle.record.state != "lost":
        return handle.record
    try:
        return handle.status()
    except RefusedError as error:
        click.echo(f"hpclaunch: job {handle.id} is shown as it was last known: {error}", err=True)
        return handle.record


def age(created: str, now: dt.datetime) -> str:
    """Return how long ago an ISO 8601 time was, in its largest unit; ``?`` where it is not a time."""
    try:
        seconds = int((now - dt.datetime.fromisoformat(created)).total_seconds())
    except (ValueError, TypeError):
        return "?"
    for unit_s, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= unit_s:
            return f"{seconds // unit_s}{unit}"
    return f"{max(seconds, 0)}s"
