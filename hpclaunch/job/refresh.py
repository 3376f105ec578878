"""The states of jobs: from their scheduler first, then from the files in their folders.

A script writes its exit status as one decimal line to ``exit_status`` in the job's folder however it ends. So
a job is never forgotten, even when its scheduler has forgotten it.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host, NoAnswerError, Note, UnreadableFileError
from hpclaunch.job import ask_scheduler, job_end, log_extract, submission
from hpclaunch.job.record import BindingVerdict, JobRecord
from hpclaunch.job.store import Store, now
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, JobStatus, Scheduler
from hpclaunch.text_table import to_stderr

NOT_SUBMITTED = "nothing was submitted: its submission has not begun, or was interrupted before"
_LEFT = (
    log_extract.EXIT_STATUS,
    log_extract.CANCELLED,
    log_extract.REASON,
    log_extract.NEXT_ID,
    log_extract.RESTARTS,
    log_extract.WORKER_RESTARTS,
    log_extract.HANG,
)

_Files = Mapping[str, bytes]
"""Small files of jobs by their paths; without those that do not exist."""


def once(note: Note) -> Note:
    """Return what takes the notes of several jobs: what each of them says is said once."""
    said = set[str]()

    def say(text: str) -> None:
        if text not in said:
            said.add(text)
            note(text)

    return say


def refresh(store: Store, host: Host, record: JobRecord, note: Note = to_stderr) -> JobRecord:
    """Ask for the state of a job, save and return its record; a final record is returned unchanged.

    Raises RefusedError where the scheduler cannot be asked and the job left no exit status.
    """
    (fresh,), trouble = _refresh_group(store, host, get_scheduler(record.scheduler), [record], note)
    if trouble and fresh.state not in FINAL_STATES:
        raise trouble
    return fresh


def state_now(store: Store, host: Host, record: JobRecord, note: Note = to_stderr) -> JobRecord:
    """Return the record as `refresh` does, of a running job with its restarts, ranks and checks so far."""
    record = refresh(store, host, record, note)
    if record.state != "running" or ask_scheduler.is_last_known(record):
        return record
    if record.plan.get("supervision"):
        restarts = job_end.restarts_in(host.read_file(f"{record.folder}/{log_extract.RESTARTS}"))
        record = replace(record, restarts=max(record.restarts, restarts))
    if record.array:
        return record
    traces = log_extract.read_traces(host, [record.folder])
    binding = job_end.binding_of(record, traces)
    found = binding if binding and binding.ranks else None  # none before the first rank has begun
    return replace(record, binding=found, preflight=log_extract.read_preflight(traces[record.folder].log))


def refresh_all(
    store: Store, host: Host, records: Sequence[JobRecord], note: Note = to_stderr
) -> list[JobRecord]:
    """Refresh many jobs with one query per scheduler; a scheduler that cannot be asked is noted."""
    fresh: dict[str, JobRecord] = {}
    for kind in sorted({record.scheduler for record in records}):
        group = [record for record in records if record.scheduler == kind]
        refreshed, trouble = _refresh_group(store, host, get_scheduler(kind), group, note)
        fresh |= {record.id: record for record in refreshed}
        if isinstance(trouble, UnreadableFileError):
            note(f"its job is shown as it was last known: {trouble.message}")
        elif trouble:
            note(f"{kind} jobs are shown as they were last known: {trouble.message}")
    return [fresh[record.id] for record in records]


def _refresh_group(
    store: Store, host: Host, scheduler: Scheduler, records: Sequence[JobRecord], note: Note
) -> tuple[list[JobRecord], RefusedError | None]:
    """Ask the scheduler, read what the jobs left in their folders, judge, and save what has changed."""
    records = [_recovered(store, host, scheduler, record, note) for record in records]
    trouble: RefusedError | None = None
    try:
        answers = ask_scheduler.ask(host, scheduler, list(filter(ask_scheduler.may_change, records)))
        trouble = answers.trouble
        left, unreadable = ask_scheduler.read_each(host, _files_wanted(records, answers))
        answers = answers._replace(unusable={**answers.unusable, **unreadable})
        judged = [judge(record, scheduler, answers, left) for record in records]
        changed = _news(records, judged)
        logs = _end_logs(host, changed.values())
    except RefusedError as error:  # the host itself cannot be asked
        return list(records), trouble or error
    saved = {i: store.keep(job_end.explained(new, logs, left, now()), note) for i, new in changed.items()}
    return [saved.get(new.id, new) for new in judged], trouble or next(iter(answers.unusable.values()), None)


def _news(before: Sequence[JobRecord], judged: Sequence[JobRecord]) -> dict[str, JobRecord]:
    """Return the records to save, by id: not those that tell only where the job was last known."""
    pairs = zip(before, judged, strict=True)
    return {new.id: new for old, new in pairs if new != old and not ask_scheduler.is_last_known(new)}


def judge(record: JobRecord, scheduler: Scheduler, answers: ask_scheduler.Answers, left: _Files) -> JobRecord:
    """Return the record with its state from the scheduler and from its small files. Pure.

    What the scheduler does not know is over only where it was asked about this very job.
    """
    if record.id in answers.unusable or not ask_scheduler.may_change(record):
        return record
    record = replace(record, identity=ask_scheduler.learned(record, answers))
    status = answers.statuses.get(record.id)
    asked = record.scheduler_id is not None and answers.tell_all_of(record)
    if record.array:
        new = job_end.with_array_status(record, status, left, now(), asked=asked)
    else:
        new = _with_status(record, scheduler, status, left, asked=asked)
    if record.id in answers.away and new.state not in FINAL_STATES:
        state = "running" if scheduler.starts_at_once else new.state
        return replace(new, state=state, reason=answers.away[record.id])
    if new.state == "lost":
        return replace(new, reason=_why_lost(new, scheduler, answers))
    return new


def _why_lost(record: JobRecord, scheduler: Scheduler, answers: ask_scheduler.Answers) -> str:
    """Return why it is not known how a job ended, and how certain that is."""
    if record.array or not answers.tell_all_of(record):
        return record.reason or ""
    whose = f"{record.scheduler} of {answers.cluster}" if answers.cluster else record.scheduler
    stranger = f", and {record.scheduler_id} is another job by now" if record.id in answers.strangers else ""
    text = f"{whose} no longer knows the job{stranger}, and it left no exit status: "
    text += "it was killed at once, its node or this machine went down, or its disk was full"
    if ask_scheduler.cluster_is_known(scheduler, record):
        return text
    return text + "; or another cluster has it: which one took it is not recorded"


def _end_logs(host: Host, changed: Collection[JobRecord]) -> job_end.EndLogs:
    ended = [folder for new in changed if new.state in FINAL_STATES for folder in job_end.run_folders(new)]
    failed = [folder for new in changed for folder in job_end.failed_folders(new)]
    logs = log_extract.read_failures(host, failed) if failed else {}
    logs = log_extract.with_own_files(host, logs, changed) if logs else {}
    return job_end.EndLogs(log_extract.read_traces(host, ended), logs)


def _files_wanted(records: Sequence[JobRecord], answers: ask_scheduler.Answers) -> dict[str, list[str]]:
    """Return the files that tell how those jobs ended which neither wait nor run."""
    wanted: dict[str, list[str]] = {}
    for record in records:
        if not ask_scheduler.may_change(record):
            continue
        status = answers.statuses.get(record.id)
        if record.array:
            names = (log_extract.EXIT_STATUS, log_extract.REASON, log_extract.HANG)
            ended = [f"{index}/{name}" for index in sorted(job_end.open_indices(record)) for name in names]
            wanted[record.id] = [f"{record.folder}/{name}" for name in (log_extract.CANCELLED, *ended)]
        elif status is None or status.state in FINAL_STATES:
            wanted[record.id] = [f"{record.folder}/{name}" for name in _LEFT]
    return wanted


def _recovered(store: Store, host: Host, scheduler: Scheduler, record: JobRecord, note: Note) -> JobRecord:
    """Return the record of a job whose submission was cut off, with its id where there is one by now."""
    if record.state != "created" or record.scheduler_id:
        return record
    try:
        found = submission.recover(host, scheduler, f"{record.folder}/{submission.SCRIPT}", record.folder)
    except NoAnswerError:
        return record
    except RefusedError as error:
        return store.keep(replace(record, state="failed", ended=now(), reason=error.message), note)
    if found is None:
        return replace(record, reason=record.reason or NOT_SUBMITTED)
    return store.keep(replace(record, scheduler_id=found, state="queued", reason=None), note)


def _with_status(
    record: JobRecord, scheduler: Scheduler, status: JobStatus | None, files: _Files, asked: bool
) -> JobRecord:
    """Return the record with its state from the scheduler or, where that does not know it, the exit file."""
    if status and status.state not in FINAL_STATES:
        return replace(job_end.open_again(record, status), failure=None)
    left = job_end.exit_status(files, record.folder)
    following = _next_id(scheduler, files, record)
    if _is_another(following, record):
        record = replace(record, scheduler_id=following)
        status = None  # how the job before it in the chain ended does not matter
        if left is None:
            return replace(record, state="queued", reason="restarted by its own script")
    if status is None and left is None and not asked:
        return record
    status = status or job_end.status_left(files, record, left, "the script")
    return job_end.ended_as(
        record, replace(status, reason=_own_words(status, files, record, following)), left
    )


def _is_another(following: str | None, record: JobRecord) -> bool:
    """Return whether a job with another number, of Slurm's ``NUMBER;CLUSTER``, follows this one."""
    number = (record.scheduler_id or "").partition(";")[0]
    return following is not None and following.partition(";")[0] != number


def _own_words(status: JobStatus, files: _Files, record: JobRecord, following: str | None) -> str | None:
    """Return why a job ended; the script of a failed one may have left the reason."""
    if status.state != "failed":
        return status.reason
    own = log_extract.reason_left(files, record.folder)
    if own is None and not following and f"{record.folder}/{log_extract.NEXT_ID}" in files:
        return f"{status.reason}; {record.folder}/{log_extract.NEXT_ID} holds no id of a next job"
    return own or status.reason


def binding_verdict(host: Host, record: JobRecord) -> BindingVerdict | None:
    """Return the ranks' reports on their binding so far, where one was planned."""
    return job_end.binding_of(record, log_extract.read_traces(host, job_end.run_folders(record)))


def _next_id(scheduler: Scheduler, files: _Files, record: JobRecord) -> str | None:
    """Return the id of the job that took over after a checkpoint, where requeueing is not allowed."""
    text = files.get(f"{record.folder}/{log_extract.NEXT_ID}", b"").decode(errors="replace")
    try:
        found = scheduler.parse_submit(CommandResult(exit_code=0, stdout=text, stderr=""))
    except RefusedError:
        return None
    return found if scheduler.is_id(found) else None
