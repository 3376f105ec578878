"""The job store: one folder a job below ``$XDG_STATE_HOME/hpclaunch/jobs``, with ``record.json`` in it.

Any number of processes may use it at once, and one may be killed at any moment: a job's folder appears whole,
with its first record, by one rename, and a record changes only by replacing the whole file.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hpclaunch.atomic_file import new_folder, write_new_file
from hpclaunch.errors import BadInputError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.record import JobRecord
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES
from hpclaunch.user_folders import user_state_folder

RECORD = "record.json"
# Without the letters that are read as others; in the order of their codes, as file names sort.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_job_id(now: dt.datetime) -> str:
    """Return ``YYYYMMDD-HHMMSS-xxyyyy``, so that ids sort by age: the time in UTC and four random signs.

    ``xx`` are the 1024ths of the second: one person's two submissions are not as near as that.
    """
    stamp = now.astimezone(dt.timezone.utc).strftime("%Y%m%d-%H%M%S")
    fraction = divmod(now.microsecond * 1024 // 1_000_000, 32)
    return f"{stamp}-{_signs(fraction)}{_signs(byte % 32 for byte in os.urandom(4))}"


def _signs(digits: Iterable[int]) -> str:
    return "".join(_ALPHABET[digit] for digit in digits)


class Store:
    """The records of all jobs below one folder."""

    def __init__(self, root: Path | None = None) -> None:
        """Use ``root``, by default the user's state folder; nothing is made before the first job."""
        self.root = (root or user_state_folder()).absolute()
        self.jobs = self.root / "jobs"

    def folder(self, job_id: str) -> Path:
        """Return the absolute folder of a job, made or not."""
        return self.jobs / job_id

    def create(self, record: JobRecord) -> None:
        """Make the job's folder with its first record, both or neither.

        Raises BadInputError where the store cannot be written or has a job of that id.
        """
        target = self.folder(record.id)
        try:
            with new_folder(target) as made:  # fails where a job is: no job replaces another
                write_new_file(made / RECORD, _encode(record))
        except OSError as error:
            if target.exists():
                raise BadInputError(f"{target}: there is a job of that id already", "submit again") from None
            raise BadInputError(
                f"{self.jobs}: cannot keep jobs here: {error.strerror}",
                "make the folder writable, or set XDG_STATE_HOME to one that is",
            ) from None

    def save(self, record: JobRecord) -> JobRecord:
        """Replace the job's record and return the one that is kept.

        What is final stays final: a slower process must not bring an ended job back to life.
        Raises BadInputError where the folder cannot be written.
        """
        if record.state not in FINAL_STATES:
            kept = self.load(record.id)
            if kept.state in FINAL_STATES:
                return kept
        LocalHost().write_file(str(self.folder(record.id) / RECORD), _encode(record))
        return record

    def load(self, job_id: str) -> JobRecord:
        """Return a job's record; raises BadInputError where it is missing or damaged, naming the file."""
        path = f"{self.jobs}/{job_id}/{RECORD}"  # a Path takes as long as reading it does
        try:
            with open(path, "rb") as file:
                record = msgspec.json.decode(file.read(), type=JobRecord)
        except FileNotFoundError:
            raise BadInputError(f"{path}: no such record") from None
        except OSError as error:
            raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadInputError(f"{path}: damaged job record: {error}", _damaged_hint(path)) from None
        if record.id != job_id:
            raise BadInputError(f"{path}: damaged job record: it is that of {record.id}", _damaged_hint(path))
        return record

    def ids(self) -> list[str]:
        """Return the ids of all jobs, the oldest first."""
        try:
            return sorted(name for name in os.listdir(self.jobs) if not name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInputError(f"{self.jobs}: cannot be read: {error.strerror}") from None

    def list(self, newest: int | None = None) -> tuple[list[JobRecord], list[str]]:
        """Return the records, the oldest first, and one sentence for each that cannot be read.

        ``newest``: only so many, counted from the newest.
        """
        records: list[JobRecord] = []
        damaged: list[str] = []
        for job_id in reversed(self.ids()):
            if newest is not None and len(records) == newest:
                break
            try:
                records.append(self.load(job_id))
            except BadInputError as error:
                damaged.append(error.message)
        return records[::-1], damaged[::-1]

    def find(self, text: str) -> JobRecord:
        """Return the job whose id starts with ``text``, the newest for ``last``, or that of a scheduler's id.

        Raises BadInputError where there is none or more than one.
        """
        ids = self.ids()
        if text == "last":
            records, damaged = self.list(newest=1)
            if not records:
                raise BadInputError("there is no job yet" if not damaged else damaged[-1])
            return records[0]
        matches = [job_id for job_id in ids if job_id.startswith(text)] if text else []
        if text in matches or len(matches) == 1:
            return self.load(text if text in matches else matches[0])
        if not matches:
            matches = [record.id for record in self.list()[0] if text and record.scheduler_id == text]
            if len(matches) == 1:
                return self.load(matches[0])
        if matches:
            raise BadInputError(
                f"{text!r} fits {len(matches)} jobs: {', '.join(matches[-5:])}", "give more of it"
            )
        raise BadInputError(
            f"no job {text!r} in {self.jobs}", "hpclaunch jobs lists them; last is the newest"
        )


def _encode(record: JobRecord) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def _damaged_hint(path: str) -> str:
    return f"remove {os.path.dirname(path)} to forget this job"
