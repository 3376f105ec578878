"""How a job ended: what its files and the log of its last run add to what its scheduler reports."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from hpclaunch.failures.read_failure import FailureLog
from hpclaunch.job.array_status import array_verdict, job_of_array, sentence
from hpclaunch.job.binding_report import BindingVerdict, verdict
from hpclaunch.job.failure_causes import (
    alone,
    error_words,
    failure_of,
    first_death,
    own_exit_code,
    refused_mask,
)
from hpclaunch.job.log_extract import RESTARTS, WORKER_RESTARTS, Trace, hang_left, reason_left
from hpclaunch.job.preflight_report import failed_nodes, read_preflight
from hpclaunch.job.record import ArrayJob, Failure, JobRecord
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, JobState, array_state


def run_folders(record: JobRecord, state: JobState | None = None) -> list[str]:
    """Return the folders with a log, of runs in that state: the job's own, of an array one per job."""
    if record.array:
        runs = sorted(record.array.items())
        return [f"{record.folder}/{index}" for index, job in runs if state in (None, job.state)]
    return [record.folder] if state in (None, record.state) else []


class EndLogs(NamedTuple):
    """The contents of the logs of ended jobs, by folder."""

    traces: Mapping[str, Trace]
    failures: Mapping[str, FailureLog]


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
    folders = run_folders(record, "failed")
    return next((failure_of(record, logs.failures[f]) for f in folders if f in logs.failures), None)


_Ended = TypeVar("_Ended", JobRecord, ArrayJob)


def _with_log(record: JobRecord, job: _Ended, logs: EndLogs, files: Mapping[str, bytes]) -> _Ended:
    """Return the job, ``record`` itself or one of its array, with the cause of its end that its log shows."""
    log, failure_log = logs.traces[record.folder].log, logs.failures.get(record.folder, FailureLog())
    if job.state == "done" and (why := alone(record, log)):
        return replace(job, state="failed", exit_code=None, reason=why)
    if job.state != "failed" or own_reason(files, record):
        return job
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
