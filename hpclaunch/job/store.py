"""The job store: one folder per job below ``$XDG_STATE_HOME/hpclaunch/jobs``, with ``record.json`` in it.

Any number of processes may use it at the same time, and any of them may be killed at any moment: a job's
folder appears whole, with its first record, by one rename, and a record changes only by replacing the whole
file.
"""

import datetime as dt
import errno
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from hpclaunch.atomic_file import new_folder, write_new_file
from hpclaunch.errors import BadInputError
from hpclaunch.folders import user_state_folder
from hpclaunch.host.host_interface import Note
from hpclaunch.host.this_machine import LocalHost, open_at_once
from hpclaunch.job.record import JobRecord
from hpclaunch.scheduler.registry import KINDS
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES

RECORD = "record.json"
ORDER = "order"
"""File next to the folder of the jobs, with a line per job in the order of submission: clocks differ."""
_LOCK_WAIT_S = 5.0
"""A record is saved in milliseconds; who holds the lock longer than this is stopped or hangs."""
_ABANDONED_S, _LEFTOVER_S = 10.0, 3600.0
"""Age of a half-made folder that is removed: with the lock that all who make one hold, and without. Some file
systems have locks that hold on one machine only."""
_SHORTEST_END = 4  # characters of an id's end that name a job; the last four are random
# Without letters that look like others; in the order of their codes, as file names sort.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def now() -> str:
    """Return this moment as ISO 8601 with time zone."""
    return dt.datetime.now(dt.timezone.utc).astimezone().isoformat(timespec="seconds")


def new_job_id(now: dt.datetime) -> str:
    """Return ``YYYYMMDD-HHMMSS-xxyyyy``, so that ids sort by age: the time in UTC and six characters.

    ``xx``: 1024ths of the second, finer than a user submits jobs one after the other; ``yyyy``: random.
    """
    stamp = now.astimezone(dt.timezone.utc).strftime("%Y%m%d-%H%M%S")
    fraction = divmod(now.microsecond * 1024 // 1_000_000, 32)
    digits = (*fraction, *(byte % 32 for byte in os.urandom(4)))
    return f"{stamp}-{''.join(_ALPHABET[digit] for digit in digits)}"


class NoSuchJobError(BadInputError):
    """No job fits what names one."""


class Store:
    """The records of all jobs below one folder."""

    def __init__(self, root: Path | None = None) -> None:
        """Use ``root``, by default the user's state folder; no folder is made before the first job."""
        self.root = (root or user_state_folder()).absolute()
        self.jobs = self.root / "jobs"
        self.is_unwritable = False
        """Whether a record could not be saved, and that was noted."""

    def folder(self, job_id: str) -> Path:
        """Return the absolute folder of a job, whether it exists or not."""
        return self.jobs / job_id

    def create(self, record: JobRecord) -> None:
        """Make the job's folder with its first record, both or neither. Raises BadInputError."""
        target = self.folder(record.id)
        try:
            self.jobs.mkdir(parents=True, exist_ok=True)
            with _locked(self.jobs) as locked:
                self._remove_leftovers(_ABANDONED_S if locked else _LEFTOVER_S)
                self._note_order(record.id)  # first: a kill between this and the folder leaves a line only
                with new_folder(target) as made:  # fails where a job exists: no job replaces another
                    made.chmod(0o700)  # logs and records are the user's own, whatever the umask is
                    write_new_file(made / RECORD, _encode(record), 0o600)
        except OSError as error:
            if target.exists():
                raise BadInputError(f"{target}: a job with that id exists already", "submit again") from None
            case = "no room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "not stored"
            raise BadInputError.case(f"jobs: {case}", folder=self.jobs, error=error) from None

    def save(self, record: JobRecord, *, reopen: bool = False) -> JobRecord:
        """Replace the job's record and return the record that is stored now.

        A final state stays: a slower process must not make an ended job appear to run. A lost job may be
        found again, and ``reopen`` says that the scheduler still has the job. Raises BadInputError where the
        folder cannot be written.
        """
        with _locked(self.folder(record.id)):
            if record.state not in FINAL_STATES and not reopen:
                stored = self.load(record.id)
                if stored.state in FINAL_STATES and stored.state != "lost":
                    return stored
            LocalHost().write_file(str(self.folder(record.id) / RECORD), _encode(record), 0o600)
        return record

    def keep(self, record: JobRecord, note: Note) -> JobRecord:
        """Save the record and return what is stored now; where nothing can be written, say so and go on.

        A full disk must not hide what the scheduler reports. It is noted once for each store.
        """
        try:
            return self.save(record)
        except BadInputError as error:
            if not self.is_unwritable:
                note(f"{error.message}; the state shown is right, and is not saved")
            self.is_unwritable = True
            return record

    def load(self, job_id: str) -> JobRecord:
        """Return a job's record; raises BadInputError: it is missing, damaged or another user's."""
        path = f"{self.jobs}/{job_id}/{RECORD}"  # making a Path takes as long as reading the file
        try:
            with open(path, "rb", opener=open_at_once) as file:
                _refuse_anothers(path, os.fstat(file.fileno()).st_uid)
                record = msgspec.json.decode(file.read(), type=JobRecord)
        except FileNotFoundError:
            raise BadInputError(f"{path}: no such record") from None
        except OSError as error:
            raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _damaged(path, error) from None
        if record.id != job_id:
            raise _damaged(path, f"it is the record of {record.id}")
        if (name := _damaged_field(record)) is not None:
            raise _damaged(path, f"{name} is {getattr(record, name)!r}")
        return record

    def forget(self, job_id: str) -> None:
        """Remove a job's folder with its record, script, log and result; raises BadInputError."""
        import shutil  # few commands remove folders

        folder = self.folder(job_id)
        hidden = folder.with_name(f".{job_id}.{os.urandom(6).hex()}")  # so that no half of it is seen
        try:
            folder.rename(hidden)
            with suppress(FileNotFoundError):  # a submission removes it, too
                shutil.rmtree(hidden)
        except OSError as error:
            raise BadInputError(f"{folder}: cannot be removed: {error.strerror}") from None

    def _remove_leftovers(self, age_s: float) -> None:
        """Remove the hidden folders of processes that were killed while they made or removed a job's."""
        import shutil  # few commands make jobs

        with suppress(OSError):
            for entry in os.scandir(self.jobs):
                if entry.name.startswith(".") and time.time() - entry.stat().st_mtime > age_s:
                    shutil.rmtree(entry.path, ignore_errors=True)

    def _note_order(self, job_id: str) -> None:
        """Add a job to the order of submissions before it appears; its folder may never do so."""
        handle = os.open(
            self.root / ORDER, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600
        )
        try:
            # One write, so that lines of several processes do not mix; a line that was cut stays alone.
            os.write(handle, f"\n{job_id}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def _order(self) -> dict[str, int]:
        """Return the ids in the order of submission -> their places; without those of older versions."""
        try:
            with open(self.root / ORDER, "rb", opener=open_at_once) as file:
                names = file.read().decode(errors="replace").split()
        except OSError:
            return {}
        return {name: place for place, name in reversed([*enumerate(names, 1)])}  # a name's first line counts

    def ids(self) -> list[str]:
        """Return the ids of all jobs, the oldest first; those of older versions come first, by their time."""
        try:
            names = [name for name in os.listdir(self.jobs) if not name.startswith(".")]
            order = self._order()
            return sorted(names, key=lambda name: (order.get(name, 0), name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInputError(f"{self.jobs}: cannot be read: {error.strerror}") from None

    def list(self, newest: int | None = None) -> tuple[list[JobRecord], list[str]]:
        """Return the records, the oldest first, and one sentence for each record that cannot be read.

        ``newest``: the number of records to return, counted from the newest; None: all.
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
        """Return the job that a text means: ``last``, an id, either end of one, a scheduler's id, or a name.

        Of several jobs with that name it is the newest. Raises BadInputError where no job fits, or where more
        than one id or scheduler's id does.
        """
        if text == "last":
            records, damaged = self.list(newest=1)
            if not records:
                raise BadInputError(damaged[-1] if damaged else "there is no job yet")
            return records[0]
        matches = self._matches(text) if text else []
        if not matches:
            raise NoSuchJobError.case("jobs: none", text=text, folder=self.jobs)
        if len(matches) > 1:
            raise BadInputError.case("jobs: several", text=text, n=len(matches), ids=", ".join(matches[-5:]))
        return self.load(matches[0])

    def _matches(self, text: str) -> Sequence[str]:
        ids = self.ids()
        if text in ids:
            return [text]
        by_id = [job_id for job_id in ids if job_id.startswith(text)]
        if by_id and "-" in text:  # no scheduler's id begins so
            return by_id
        # A whole id of a scheduler comes before the start of one of ours, which it may be by chance.
        by_scheduler, by_name = self._by_record(text)
        return by_scheduler or by_id or by_name[-1:] or _by_end(ids, text)

    def _by_record(self, text: str) -> tuple[Sequence[str], Sequence[str]]:
        records = self.list()[0]
        # Slurm may add a cluster to the number.
        by_scheduler = [each.id for each in records if (each.scheduler_id or "").partition(";")[0] == text]
        return by_scheduler, [record.id for record in records if record.name == text]


def _by_end(ids: Sequence[str], text: str) -> list[str]:
    return [job_id for job_id in ids if len(text) >= _SHORTEST_END and job_id.endswith(text)]


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Keep other processes that use this out of a folder; False where it is not locked, but used anyway."""
    import fcntl  # not every command saves a record

    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield False  # writing the record says what is wrong
        return
    locked = False
    try:
        until = time.monotonic() + _LOCK_WAIT_S
        while not locked and time.monotonic() < until:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = True
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break
        yield locked
    finally:
        os.close(handle)


def _refuse_anothers(path: str, uid: int) -> None:
    """Refuse a record that another user has put into the folder: its command would run as this one."""
    if uid == os.geteuid():
        return
    import pwd  # shared folders are rare

    try:
        owner = pwd.getpwuid(uid).pw_name
    except KeyError:
        owner = str(uid)
    raise BadInputError.case("jobs: other owner", path=path, owner=owner)


def _encode(record: JobRecord) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def _damaged_field(record: JobRecord) -> str | None:
    """Return the name of a field that no job has had so."""
    texts = {name: getattr(record, name) or "" for name in ("folder", "workdir", "host", "scheduler_id")}
    for name, text in texts.items():
        if "\0" in text or (name in ("host", "scheduler_id") and not text.isprintable()):
            return name
    if record.scheduler not in KINDS:
        return "scheduler"
    return None if record.folder.startswith("/") else "folder"


def _damaged(path: str, why: object) -> BadInputError:
    hint = f"remove {os.path.dirname(path)} to forget this job"
    return BadInputError(f"{path}: damaged job record: {why}", hint)
