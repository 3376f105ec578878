"""The state of a job array: that of each of its jobs, and from these that of the whole."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.host.host_interface import Host
from hpclaunch.job.binding_report import BindingVerdict, verdict
from hpclaunch.job.log_extract import EXIT_STATUS, HANG, REASON, hang_left, reason_left
from hpclaunch.job.record import ArrayJob, JobRecord
from hpclaunch.plural import listed
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, JobState, JobStatus, array_state

_SHOWN = 5


def open_indices(record: JobRecord) -> frozenset[int]:
    """Return the indices of which more may become known."""
    return frozenset(
        i for i, job in record.array.items() if job.state not in FINAL_STATES or job.state == "lost"
    )


def job_of_array(record: JobRecord, index: int) -> JobRecord:
    """Return a record whose files are those of one job of the array, for reading only.

    Raises BadInputError where the array has no such job.
    """
    if index not in record.array:
        indices = ", ".join(map(str, sorted(record.array)[:20]))
        has = f"its indices are {indices}" if record.array else "it is not an array"
        raise BadInputError(f"job {record.id} has no index {index}: {has}")
    state = record.array[index].state
    return replace(record, folder=f"{record.folder}/{index}", state=state, array={}, binding=None)


def array_paths(record: JobRecord) -> Iterator[str]:
    """Yield the files that tell how the jobs ended, where that is not known yet."""
    for index in sorted(open_indices(record)):
        yield from (f"{record.folder}/{index}/{name}" for name in (EXIT_STATUS, REASON, HANG))


def with_array_status(
    record: JobRecord, status: JobStatus | None, files: Mapping[str, bytes], now: str, *, asked: bool
) -> JobRecord:
    """Return the record with its state from the scheduler or, where that does not know it, the exit files.

    ``files`` holds what ``array_paths`` names, as far as it exists, and the job's ``cancelled``. ``asked``:
    the scheduler has answered, so that what it does not know is over.
    """
    said = status.jobs if status else {}
    array = dict(record.array)
    for index in open_indices(record):
        array[index] = _judged(record, index, said.get(index), files, asked=asked)
    jobs = list(array.values())
    state = array_state(job.state for job in jobs)
    over = state in FINAL_STATES
    started = min(filter(None, (job.started for job in jobs)), default=record.started)
    ended = max(filter(None, (job.ended for job in jobs)), default=now)
    codes = [job.exit_code for job in jobs if job.exit_code]
    return replace(
        record,
        array=array,
        state=state,
        reason=sentence(array, over=over),
        exit_code=(0 if state == "done" else next(iter(codes), None)) if over else None,
        started=started,
        ended=ended if over else None,
        restarts=sum(job.restarts for job in jobs),
    )


def _judged(
    record: JobRecord, index: int, said: JobStatus | None, files: Mapping[str, bytes], *, asked: bool
) -> ArrayJob:
    old = record.array[index]
    folder = f"{record.folder}/{index}"
    left = exit_status(files, folder)
    cancelled = bool(files.get(f"{record.folder}/cancelled"))
    if said is None and left is None:
        if not asked:
            return old
        return replace(old, state="cancelled" if cancelled else "lost", reason=None)
    if said is None:
        state: JobState = "done" if left == 0 else "cancelled" if cancelled else "failed"
        said = JobStatus(
            state=state, exit_code=left, reason=f"it ended with exit status {left}" if left else None
        )
    started, restarts = said.started or old.started, max(old.restarts, said.restarts)
    if said.state not in FINAL_STATES:
        return replace(old, state=said.state, reason=said.reason, started=started, restarts=restarts)
    own = reason_left(files, folder) if said.state == "failed" else None
    job = ended_as(old, replace(said, reason=own or said.reason), left)
    return replace(job, hang=hang_left(files, folder))


_Ended = TypeVar("_Ended", JobRecord, ArrayJob)


def ended_as(job: _Ended, status: JobStatus, left: int | None) -> _Ended:
    """Return a job that is over, also one of an array; ``left``: what its script left in its exit file."""
    code = status.exit_code if status.exit_code is not None else left
    if status.state != "done" and code == 0:
        code = None  # the script's last word was good, but its scheduler ended it: a limit, a lost node
    return replace(
        job,
        state=status.state,
        exit_code=code,
        reason=status.reason,
        started=status.started or job.started,
        ended=status.ended or job.ended,
        restarts=max(job.restarts, status.restarts),
    )


def exit_status(files: Mapping[str, bytes], folder: str) -> int | None:
    """Return what a script left in its exit file; None: nothing, or nothing that is a number."""
    text = files.get(f"{folder}/{EXIT_STATUS}", b"").strip()
    return int(text) if text.isdigit() and len(text) <= 3 else None


def sentence(array: Mapping[int, ArrayJob], *, over: bool) -> str | None:
    """Return how many are in which state, and which are not done; None where all are."""
    counts = Counter(job.state for job in array.values())
    if counts["done"] == len(array):
        return None
    text = f"of {len(array)} jobs " + ", ".join(f"{count} {state}" for state, count in counts.most_common())
    bad = [i for i, job in sorted(array.items()) if job.state in FINAL_STATES and job.state != "done"]
    if bad:
        text += f"; not done: {listed([f'{i} ({array[i].reason or array[i].state})' for i in bad], _SHOWN)}"
    elif not over:
        waiting = next((job.reason for job in array.values() if job.state == "queued" and job.reason), None)
        text += f"; {waiting}" if waiting else ""
    return text


def array_verdict(record: JobRecord, logs: Mapping[int, str]) -> BindingVerdict:
    """Judge the reports in the jobs' logs, by index; the first one that differs is returned.

    Jobs that never began have no reports and are passed over, unless they say that they are done.
    """
    best: BindingVerdict | None = None
    for index, job in sorted(record.array.items()):
        of_this = verdict(logs.get(index, ""), record.tasks)
        if not of_this.ranks and job.state != "done":
            continue
        if not of_this.ok:
            return replace(of_this, finding=f"job {index} of the array: {of_this.finding}")
        best = best or of_this
    if best is None:
        return BindingVerdict(ok=False, finding="no job of the array reported its binding", ranks=())
    return replace(best, finding=f"in each job of the array {best.finding}")


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
