"""How jobs end, also those of an array: what their files and logs add to what the scheduler reports."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from hpclaunch.amounts import listed
from hpclaunch.errors import BadInputError
from hpclaunch.job import log_extract
from hpclaunch.job.record import ArrayJob, BindingVerdict, Failure, JobRecord, NodeVerdict, verdict
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, JobState, JobStatus, array_state

# The reader of errors is loaded for a job that failed alone.
if TYPE_CHECKING:
    from hpclaunch.failures.read_failure import FailureLog

_SHOWN = 5


def open_indices(record: JobRecord) -> frozenset[int]:
    """Return the indices of which more may become known."""
    return frozenset(
        i for i, job in record.array.items() if job.state not in FINAL_STATES or job.state == "lost"
    )


def job_of_array(record: JobRecord, index: int) -> JobRecord:
    """Return a record to read, with the files of one job of the array. Raises BadInputError: none such."""
    if index not in record.array:
        indices = ", ".join(map(str, sorted(record.array)[:20]))
        has = f"its indices are {indices}" if record.array else "it is not an array"
        raise BadInputError(f"job {record.id} has no index {index}: {has}")
    state = record.array[index].state
    return replace(record, folder=f"{record.folder}/{index}", state=state, array={}, binding=None)


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
    old, folder = record.array[index], f"{record.folder}/{index}"
    left = exit_status(files, folder)
    if said is None and left is None and not asked:
        return old
    said = said or status_left(files, record, left, "it")
    if said.state not in FINAL_STATES:
        return open_again(old, said)
    own = log_extract.reason_left(files, folder) if said.state == "failed" else None
    job = ended_as(old, replace(said, reason=own or said.reason), left)
    return replace(job, hang=log_extract.hang_left(files, folder))


_Ended = TypeVar("_Ended", JobRecord, ArrayJob)


def status_left(files: Mapping[str, bytes], record: JobRecord, left: int | None, what: str) -> JobStatus:
    """Return how a job ended that its scheduler does not know, by the files in its folder.

    ``left``: its exit status, or that of one job of an array; ``what``: it in words.
    """
    if left == 0:
        return JobStatus(state="done", exit_code=0)
    if files.get(f"{record.folder}/{log_extract.CANCELLED}"):  # empty: the cancellation was refused
        return JobStatus(state="cancelled", exit_code=left)
    if left is not None:
        return JobStatus(state="failed", exit_code=left, reason=f"{what} ended with exit status {left}")
    return JobStatus(state="lost")


def open_again(job: _Ended, status: JobStatus) -> _Ended:
    """Return a job that its scheduler has, also where that had lost sight of it."""
    return replace(ended_as(job, status, None), exit_code=None, ended=None)


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
    text = files.get(f"{folder}/{log_extract.EXIT_STATUS}", b"").strip()
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
    judged: list[BindingVerdict] = []
    for index, job in sorted(record.array.items()):
        of_this = verdict(logs.get(index, ""), record.tasks)
        if not of_this.ranks and job.state != "done":
            continue
        if not of_this.ok:
            return replace(of_this, finding=f"job {index} of the array: {of_this.finding}")
        judged.append(of_this)
    if not judged:
        return BindingVerdict(ok=False, finding="no job of the array reported its binding", ranks=())
    jobs = "each job" if len(judged) == len(record.array) else f"{len(judged)} of {len(record.array)} jobs"
    return replace(judged[0], finding=f"in {jobs} of the array {judged[0].finding}")


def run_folders(record: JobRecord, state: JobState | None = None) -> list[str]:
    """Return the folders with a log, of runs in that state: the job's own, of an array one per job."""
    if record.array:
        runs = sorted(record.array.items())
        return [f"{record.folder}/{index}" for index, job in runs if state in (None, job.state)]
    return [record.folder] if state in (None, record.state) else []


def failed_folders(record: JobRecord) -> list[str]:
    """Return the folders of runs that failed, or that may have failed before somebody cancelled the job."""
    cancelled = record.state == "cancelled" and not record.array
    return [record.folder] if cancelled else run_folders(record, "failed")


class EndLogs(NamedTuple):
    """The contents of the logs of ended jobs, by folder."""

    traces: Mapping[str, log_extract.Trace]
    failures: "Mapping[str, FailureLog]"


def explained(record: JobRecord, logs: EndLogs, files: Mapping[str, bytes], now: str) -> JobRecord:
    """Return the record of an ended job with what its log shows of its end and of its ranks' binding.

    One that has not ended is returned as it is.

    ``files``: the small files of its folder, by path; ``now``: its end where that is not known otherwise.
    """
    if record.state not in FINAL_STATES:
        return record
    traces = logs.traces
    if record.array:
        array = {
            index: _with_log(job_of_array(record, index), job, logs, files)
            for index, job in record.array.items()
        }
        record = replace(record, array=array, state=array_state(job.state for job in array.values()))
        said = log_extract.read_preflight(
            "\n".join(traces[f"{record.folder}/{index}"].log for index in record.array)
        )
        reason = sentence(array, over=True)
        record = replace(record, reason=reason, binding=binding_of(record, traces), preflight=said)
        return replace(record, failure=_failure(record, logs))
    record = _with_log(record, record, logs, files)
    ended = record.ended or traces[record.folder].ended or now
    preflight = log_extract.read_preflight(traces[record.folder].log)
    binding = None if _never_started(record, preflight) else binding_of(record, traces)
    restarts = max(record.restarts, restarts_in(files.get(f"{record.folder}/{log_extract.RESTARTS}")))
    record = replace(record, ended=ended, binding=binding, preflight=preflight, restarts=restarts)
    again = restarts_in(files.get(f"{record.folder}/{log_extract.WORKER_RESTARTS}"))
    record = replace(record, hang=log_extract.hang_left(files, record.folder), worker_restarts=again)
    return replace(record, failure=_failure(record, logs))


def _never_started(record: JobRecord, preflight: Iterable[NodeVerdict]) -> bool:
    """Tell whether the preflight ended the job before its ranks, which have no binding to speak of."""
    return record.state != "done" and any(said.status == "missing" for said in preflight)


def _failure(record: JobRecord, logs: EndLogs) -> Failure | None:
    log = next((logs.failures[f] for f in failed_folders(record) if f in logs.failures), None)
    if log is None:
        return None
    from hpclaunch.job.failure_causes import failure_of

    if record.state != "cancelled":
        return failure_of(record, log)
    # The cancellation ended the ranks; an exception of the program came before it.
    failure = failure_of(replace(record, exit_code=None), log._replace(ranks=""))
    return failure if failure.where else None


def _with_log(record: JobRecord, job: _Ended, logs: EndLogs, files: Mapping[str, bytes]) -> _Ended:
    """Return the job, ``record`` itself or one of its array, with the cause of its end that its log shows."""
    log = logs.traces[record.folder].log
    if job.state == "done" and (why := alone(record, log)):
        return replace(job, state="failed", exit_code=None, reason=why)
    if job.state != "failed" or log_extract.reason_left(files, record.folder):
        return job
    from hpclaunch.failures.read_failure import FailureLog
    from hpclaunch.job.failure_causes import error_words, first_death, own_exit_code, refused_mask

    failure_log = logs.failures.get(record.folder, FailureLog())
    code = own_exit_code(job.exit_code, failure_log)
    rank = refused_mask(record, log) or (first_death(failure_log.ranks) if job.exit_code else None)
    # What the scheduler reports is about the code of the script, which may be that of a rank that was ended.
    said = None if rank and code != job.exit_code else job.reason
    return replace(job, exit_code=code, reason=_together(said, rank, error_words(failure_log)))


def _together(said: str | None, *found: str | None) -> str | None:
    """Return the scheduler's reason with what else was found and is not in it."""
    added = [text for text in found if text and text not in (said or "")]
    return "; ".join(filter(None, (said, *added))) or None


def binding_of(record: JobRecord, traces: Mapping[str, log_extract.Trace]) -> BindingVerdict | None:
    """Return the ranks' reports on their binding, where one was planned."""
    if not (record.plan.get("binding") or record.plan.get("at_start")):
        return None
    if record.array:
        logs = {index: traces[f"{record.folder}/{index}"].log for index in record.array}
        return array_verdict(record, logs)
    return verdict(traces[record.folder].log, record.tasks)


def restarts_in(text: bytes | None) -> int:
    """Return how often a job, or its workers, were started again, from the file that counts it."""
    return int(text) if text and len(text) < 10 and text.strip().isdigit() else 0


# What may stand before "rank 0 of 1" where it means the whole job; a "local rank" or a "tensor parallel rank"
# is 0 of 1 in good jobs, too.
_BEFORE_RANK = frozenset(("am", "from", "global", "hello", "is", "mpi", "process", "this", "world"))
_WHO = re.compile(
    r"(?<![A-Za-z])rank[\s:=]*(\d+)\s*(?:of|/|out of|,?\s*(?:world[ _])?size[\s:=]*)\s*(\d+)(?![\d.])",
    re.IGNORECASE,
)


def alone(record: JobRecord, log: str) -> str | None:
    """Return why a job of several ranks that exited with 0 is a failure: each rank prints "rank 0 of 1".

    That is how an MPI behaves that was started by a plugin which it does not speak; it exits with 0.
    With ``--mpi none`` it was meant so.
    """
    if record.request.get("mpi") == "none":
        return None
    said = [(match[1], match[2]) for line in log.splitlines() for match in _who_of_all(line)]
    if record.tasks < 2 or len(said) < record.tasks or set(said) != {("0", "1")}:
        return None
    launch = " ".join(record.plan.get("launch", ()))
    started = "mpiexec belongs to another MPI than the program's"
    if launch.startswith("srun"):
        plugin = re.search(r"--mpi=(\S+)", launch)
        by = f"srun's plugin {plugin[1]}" if plugin else "srun's default plugin"
        started = f"{by} is not what the program's MPI speaks; Open MPI needs --mpi pmix, MPICH --mpi pmi2"
    return f"all {record.tasks} ranks print 'rank 0 of 1': each ran alone, as {started}"


def _who_of_all(line: str) -> Iterator[re.Match[str]]:
    for match in _WHO.finditer(line):
        before = re.search(r"([A-Za-z_']+) *$", line[: match.start()])
        if before is None or before[1].lower() in _BEFORE_RANK:
            yield match
