"""Which jobs a job waits for: from the names that the user gives to the scheduler's ids."""

import re
from collections.abc import Callable, Sequence

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.job.ask_scheduler import QUERY_TIMEOUT_S, is_last_known
from hpclaunch.job.record import JobRecord
from hpclaunch.job.store import Store
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.scheduler_interface import FINAL_STATES, Scheduler


def settle_after(
    request: JobRequest, scheduler: Scheduler, store: Store, fresh: Callable[[JobRecord], JobRecord]
) -> tuple[str, ...]:
    """Return the scheduler's ids of the jobs to wait for, without those that have ended as they should.

    ``fresh`` returns a record with the job's state of now. Schedulers forget ended jobs, and then refuse the
    dependency (Slurm) or end the waiting job unrun (PBS): so ended jobs are judged here.
    Raises BadInputError for unknown jobs, and for one whose end rules out that this job ever starts.
    """
    ids = []
    for text in request.after:
        record = _find(store, scheduler, text)
        if record is None:
            ids.append(text)
            continue
        if record.scheduler != scheduler.kind:
            raise BadInputError.case("after: other scheduler", text=text, record=record, scheduler=scheduler)
        record = fresh(record)
        if is_last_known(record) and text != record.id:
            ids.append(text)  # the scheduler that is asked here may have a job with that id, too
        elif is_last_known(record):
            raise BadInputError.case("after: elsewhere", text=text, record=record)
        elif record.state not in FINAL_STATES:
            ids.append(_id_of(record, text))
        elif record.state != "done" and not request.after_any:
            raise BadInputError.case("after: never", text=text, record=record)
    return tuple(ids)


def forgotten(host: Host, scheduler: Scheduler, store: Store, ids: Sequence[str]) -> Sequence[str]:
    """Return the jobs that no source of the scheduler knows; none where one of them gives no answer.

    Those of the store were asked for as they were settled. Slurm of 22.05 takes a job that it does not know
    for one that has ended, and starts at once what waits for it.
    """
    ours = _open_ids(store, scheduler)
    ids = [text for text in ids if text not in ours]
    for source in scheduler.status_sources:
        for command in scheduler.status_commands(source, ids) if ids else ():
            try:
                answer = host.run(command, timeout_s=QUERY_TIMEOUT_S, env=scheduler.query_env)
                known = scheduler.parse_status(source, ids, answer)
            except RefusedError:
                return ()
            ids = [text for text in ids if text not in known]
    return ids


def _open_ids(store: Store, scheduler: Scheduler) -> set[str]:
    """Return the scheduler's ids of our jobs that it has, as they were last seen."""
    ours = (r for r in store.list()[0] if r.scheduler == scheduler.kind and r.state not in FINAL_STATES)
    return {(r.scheduler_id or "").partition(";")[0] for r in ours if not is_last_known(r)}


def _find(store: Store, scheduler: Scheduler, text: str) -> JobRecord | None:
    """Return the job that is meant; None: one of the scheduler's that was not submitted by hpclaunch.

    A scheduler's id must not be taken for the start of one of ours.
    """
    if not re.fullmatch(scheduler.id_pattern, text):
        return store.find(text)
    ours = [r for r in store.list()[0] if r.scheduler == scheduler.kind and r.scheduler_id == text]
    return ours[-1] if ours else None


def _id_of(record: JobRecord, text: str) -> str:
    if record.scheduler_id is None:
        raise BadInputError.case("after: no id", text=text, record=record)
    return record.scheduler_id.partition(";")[0]  # sbatch --parsable: JOBID;CLUSTER
