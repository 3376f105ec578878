"""Shared by the commands about jobs: the argument that names a job, and how a job is shown."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hpclaunch.job.record import JobRecord

_SHOWN = (
    "id", "name", "site", "scheduler", "scheduler_id", "state", "exit_code", "reason", "nodes", "tasks",
    "host", "command", "created", "started", "ended", "folder", "workdir",
)  # fmt: skip


def complete_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the newest jobs to the shell's completion; ``Store.find`` explains what names a job."""
    from hpclaunch.errors import HpclaunchError
    from hpclaunch.job.store import Store

    try:
        ids = Store().ids()[-50:]
    except HpclaunchError:
        return []
    return [text for text in ("last", *ids) if text.startswith(incomplete)]


def describe(record: JobRecord) -> dict[str, Any]:
    """Return the facts of a job that ``--json`` prints, ready for JSON."""
    shown = {name: getattr(record, name) for name in _SHOWN}
    if record.array:
        jobs = record.array.items()
        shown["array"] = {
            str(i): {"state": job.state, "exit_code": job.exit_code, "reason": job.reason} for i, job in jobs
        }
    return shown


def outcome(record: JobRecord, result: dict[str, Any] | None) -> dict[str, Any]:
    """Return the JSON document of a job after the wait for its end."""
    return {"id": record.id, "state": record.state, "exit_code": record.exit_code, "result": result}


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
