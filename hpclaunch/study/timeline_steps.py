"""The steps of a job as its timeline shows them, for programs that print no figure."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hpclaunch.errors import BadInputError
from hpclaunch.file_chunks import file_chunks
from hpclaunch.host.host_interface import Host
from hpclaunch.job.job_timelines import brought, timeline_files
from hpclaunch.job.record import JobRecord
from hpclaunch.timeline.job_timeline import combined
from hpclaunch.timeline.read_timeline import TimelineFile, read_timeline

_MOST = 16
"""Files that are read: the ranks wait for each other in every step, so some ranks show its time."""


def writes_timeline(record: JobRecord) -> bool:
    """Return whether the job was submitted with ``--profile`` or ``--timeline``."""
    return bool(record.request.get("profile") or record.request.get("timeline"))


def timeline_step_s(record: JobRecord, host: Host) -> float:
    """Return the median seconds of a step, without the first ones.

    Raises BadInputError where the job left no timeline, or one without steps.
    """
    files = timeline_files(host, record)[:_MOST]
    if not files:
        raise BadInputError(
            f"job {record.id} left no timeline in {record.folder}; without --profile and --timeline its "
            "elapsed time is measured"
        )
    with tempfile.TemporaryDirectory(prefix="hpclaunch-timeline-") as folder:
        paths = brought(host, record, files, Path(folder))
        read = _read(list(paths.values()))
    seconds = combined(read, record.tasks).step_ms / 1e3
    if not seconds > 0:
        raise BadInputError(f"job {record.id}: no steps are in its timeline, {files[0].source}")
    return seconds


def _read(paths: list[Path]) -> list[TimelineFile]:
    """Read what is a timeline among the files; raises BadInputError where none is."""
    read: list[TimelineFile] = []
    refused: list[BadInputError] = []
    for number, path in enumerate(paths):
        try:
            read.append(read_timeline(str(path), file_chunks(path), number))
        except BadInputError as error:
            refused.append(error)
    if not read:
        raise refused[0]
    return read
