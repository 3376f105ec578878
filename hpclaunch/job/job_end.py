"""How a job ended: what its files and the log of its last run add to what its scheduler reports."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from hpclaunch.job.array_status import array_verdict, job_of_array, sentence
from hpclaunch.job.binding_report import BindingVerdict, verdict
from hpclaunch.job.log_extract import RESTARTS, WORKER_RESTARTS, Trace, hang_left, reason_left
from hpclaunch.job.preflight_report import failed_nodes, read_preflight
from hpclaunch.job.record import ArrayJob, Failure, JobRecord
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, JobState, array_state

# The reader of errors is loaded for a job that failed alone.
if TYPE_CHECKING:
    from hpclaunch.failures.read_failure import FailureLog


def run_folders(record: JobRecord, state: JobState | None = None) -> list[str]:
    """Return the folders with a log, of runs in that state: the job's own, of an array one per job."""
    if record.array:
        runs = sorted(record.array.items())
        return [f"{record.folder}/{index}" for index, job in runs if state in (None, job.state)]
    return [record.folder] if state in (None, record.state) else []


class EndLogs(NamedTuple):
    """The contents of the logs of ended jobs, by folder."""

    traces: Mapping[str, Trace]
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
        record = replace(record, array=array)
        record = replace(record, state=array_state(job.state for job in array.values()))
        said = read_preflight("\n".join(traces[f"{record.folder}/{index}"].log for index in record.array))
        reason = sentence(array, over=True)
        record = replace(record, reason=reason, binding=binding_of(record, traces), preflight=said)
        return replace(record, failure=_failure(record, logs))
    record = _with_log(record, record, logs, files)
    ended = record.ended or traces[record.folder].ended or now
    preflight = read_preflight(traces[record.folder].log)
    # Ranks that were never started have no binding to speak of.
    never = record.state != "done" and failed_nodes(preflight)
    binding = None if never else binding_of(record, traces)
    restarts = max(record.restarts, restarts_in(files.get(f"{record.folder}/{RESTARTS}")))
    record = replace(record, ended=ended, binding=binding, preflight=preflight, restarts=restarts)
    again = restarts_in(files.get(f"{record.folder}/{WORKER_RESTARTS}"))
    record = replace(record, hang=hang_left(files, record.folder), worker_restarts=again)
    return replace(record, failure=_failure(record, logs))


def _failure(record: JobRecord, logs: EndLogs) -> Failure | None:
    log = next((logs.failures[f] for f in run_folders(record, "failed") if f in logs.failures), None)
    if log is None:
        return None
    from hpclaunch.job.failure_causes import failure_of

    return failure_of(record, log)


_Ended = TypeVar("_Ended", JobRecord, ArrayJob)


def _with_log(record: JobRecord, job: _Ended, logs: EndLogs, files: Mapping[str, bytes]) -> _Ended:
    """Return the job, ``record`` itself or one of its array, with the cause of its end that its log shows."""
    log = logs.traces[record.folder].log
    if job.state == "done" and (why := alone(record, log)):
        return replace(job, state="failed", exit_code=None, reason=why)
    if job.state != "failed" or own_reason(files, record):
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


def binding_of(record: JobRecord, traces: Mapping[str, Trace]) -> BindingVerdict | None:
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


def own_reason(files: Mapping[str, bytes], record: JobRecord) -> str | None:
    """Return the reason of its end that the script itself wrote: a hang, restarts used up."""
    return reason_left(files, record.folder)


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
