"""The states of Slurm's jobs: the squeue, sacct and scontrol commands, and what their answers mean.

Text output only, in forms that are the same from 22.05 on: 22.05 has no JSON in scontrol and sbatch, and
squeue's JSON changes with every version. Tested on 22.05.8 and 25.05.9 (tests/data/slurm has their answers);
those between are known from their sources.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.scheduler_interface import JobState, JobStatus, array_status
from hpclaunch.scheduler.slurm_reasons import ENDED, pending_sentence

_STATES: dict[str, JobState] = {
    "PENDING": "queued",
    "REQUEUED": "queued",
    "REQUEUE_HOLD": "queued",
    "REQUEUE_FED": "queued",
    "SPECIAL_EXIT": "queued",
    "RESV_DEL_HOLD": "queued",
    "CONFIGURING": "running",
    "RUNNING": "running",
    "COMPLETING": "running",
    "RESIZING": "running",
    "SIGNALING": "running",
    "STAGE_OUT": "running",
    "STOPPED": "running",
    "SUSPENDED": "running",
    "COMPLETED": "done",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "FAILED": "failed",
    **dict.fromkeys(ENDED, "failed"),
}
_RUNNING_WORDS = {
    "CONFIGURING": "its nodes are being made ready",
    "COMPLETING": "it is ending",
    "SUSPENDED": "it is suspended by the site",
    "STOPPED": "it is stopped",
}

_SQUEUE_COLUMNS = (
    ("JobArrayID", 60),
    ("State", 24),
    ("exit_code", 16),
    ("StartTime", 24),
    ("EndTime", 24),
    ("Reason", 240),
)
_SACCT_COLUMNS = ("JobID", "State", "ExitCode", "Start", "End", "Reason")
# squeue comes before, and scontrol knows what squeue knows: it is only for a squeue that does not
# work, and takes one job at a time.
_SCONTROL_MAX_JOBS = 4


_QUERY: dict[str, tuple[str, ...]] = {
    "squeue": (
        "-h",
        "-a",
        "-r",
        "-t",
        "all",
        "-O",
        ",".join(f"{name}:{width}" for name, width in _SQUEUE_COLUMNS),
    ),
    "sacct": ("-X", "-n", "-P", "-D", "-o", ",".join(_SACCT_COLUMNS)),
}


def status_commands(source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return one command a cluster; jobs whose sbatch named no cluster are one group."""
    if source == "scontrol":
        few = ids[:_SCONTROL_MAX_JOBS]
        return tuple(("scontrol", *cluster_of(i), "-o", "show", "job", number_of(i)) for i in few)
    groups: dict[tuple[str, ...], list[str]] = {}
    for scheduler_id in ids:
        groups.setdefault(cluster_of(scheduler_id), []).append(number_of(scheduler_id))
    return tuple((source, *_QUERY[source], *cluster, "-j", ",".join(n)) for cluster, n in groups.items())


def parse_status(source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
    """Read what squeue, sacct or scontrol reports about the jobs."""
    if answer.exit_code != 0 and not _knows_not(answer):
        raise RefusedError(f"{source} gives no answer: {own_words(answer)}")
    rows = {"squeue": _squeue_rows, "sacct": _sacct_rows, "scontrol": _scontrol_rows}[source]
    by_number = {number_of(scheduler_id): scheduler_id for scheduler_id in ids}
    known: dict[str, JobStatus] = {}
    arrays: dict[str, dict[int, JobStatus]] = {}
    for row in rows(answer.stdout):
        number, underscore, indices = row["id"].partition("_")
        if number in by_number and underscore:
            jobs = arrays.setdefault(by_number[number], {})
            jobs.update(dict.fromkeys(_indices(indices), _status(row)))
        elif number in by_number:
            known[by_number[number]] = _status(row)
    return known | {scheduler_id: array_status(jobs) for scheduler_id, jobs in arrays.items()}


def number_of(scheduler_id: str) -> str:
    """Return the job's number of ``NUMBER;CLUSTER``."""
    return scheduler_id.partition(";")[0]


def cluster_of(scheduler_id: str) -> tuple[str, ...]:
    """Return the option that names the cluster of ``NUMBER;CLUSTER``."""
    name = scheduler_id.partition(";")[2]
    return ("-M", name) if name else ()


def own_words(answer: CommandResult) -> str:
    """Return what Slurm said, on one line, without its programs' names."""
    text = answer.stderr.strip() or answer.stdout.strip()
    text = text or f"exit status {answer.exit_code}, no reason given"
    lines = [
        re.sub(r"^(\w+: (error|fatal)|allocation failure): ", "", line.strip()) for line in text.splitlines()
    ]
    return "; ".join(line for line in lines if line)


def _knows_not(answer: CommandResult) -> bool:
    """Return whether the answer means "no such job" or "no accounting here", and not "no answer"."""
    return bool(
        re.search(r"invalid job id specified|accounting storage is disabled", answer.stderr, re.IGNORECASE)
    )


def _squeue_rows(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        row, at = {}, 0
        for name, width in _SQUEUE_COLUMNS:
            row[name], at = line[at : at + width].strip(), at + width
        if row["State"]:
            start, end = row["StartTime"], row["EndTime"]
            yield _row(
                row["JobArrayID"], row["State"], _raw_code(row["exit_code"]), start, end, row["Reason"]
            )


def _sacct_rows(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        values = line.split("|")
        if len(values) == len(
            _SACCT_COLUMNS
        ):  # -D: a requeued job has a line an attempt, the last one counts
            yield _row(*values)


def _scontrol_rows(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        pairs = dict(re.findall(r"(?:^|\s)(\w+)=(\S*)", line))
        if "ArrayJobId" in pairs and "ArrayTaskId" in pairs:
            pairs["JobId"] = f"{pairs['ArrayJobId']}_{pairs['ArrayTaskId']}"
        if "JobId" in pairs and "JobState" in pairs:
            yield _row(
                *(
                    pairs.get(k, "")
                    for k in ("JobId", "JobState", "ExitCode", "StartTime", "EndTime", "Reason")
                )
            )


def _indices(text: str) -> Iterator[int]:
    """Read ``3`` and ``[2-4,7%2]``, the jobs of an array that share a line while they wait."""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text.strip("[]").partition("%")[0]):
        yield from range(int(first), int(last or first) + 1)


def job_status(state: str, code: str, start: str, end: str) -> JobStatus:
    """Return what the columns State, ExitCode, Start and End of sacct mean."""
    return _status(_row("", state, code, start, end, ""))


def _row(job: str, state: str, code: str, start: str, end: str, reason: str) -> dict[str, str]:
    return {"id": job, "state": state, "code": code, "start": start, "end": end, "reason": reason}


def _raw_code(text: str) -> str:
    """Turn squeue's exit code of 22.05, the number of wait(2), into ``CODE:SIGNAL``, as since 23.02."""
    return f"{int(text) >> 8}:{int(text) & 0x7F}" if text.isdigit() else text


def _exit_code(text: str) -> int | None:
    """Read ``3:0`` (exit code) and ``0:9`` (signal, as a shell writes it: 128+9)."""
    code, _, number = text.partition(":")
    if not (code.isdigit() and (number or "0").isdigit()):
        return None
    return 128 + int(number) if number and int(number) else int(code)


def _status(row: Mapping[str, str]) -> JobStatus:
    word = row["state"].split()[0].rstrip("+") if row["state"].strip() else ""  # CANCELLED by 1000
    state = _STATES.get(word)
    if state is None:
        return JobStatus(state="running", reason=f"Slurm calls its state {word!r}")
    if state == "queued":
        return JobStatus(state=state, reason=pending_sentence(row["reason"]))
    if state == "running":
        return JobStatus(state=state, reason=_RUNNING_WORDS.get(word), started=iso_time(row["start"]))
    code = _exit_code(row["code"])
    if state == "done":
        return JobStatus(state=state, exit_code=0, started=iso_time(row["start"]), ended=iso_time(row["end"]))
    # TIMEOUT and the like come with 0:0; 25.05 gives a lost node its own 0:1 (sacct: 1:0).
    return JobStatus(
        state=state,
        exit_code=None if word == "NODE_FAIL" else code or None,
        reason=_end_sentence(word, row["state"], code),
        started=_started(row, code),
        ended=iso_time(row["end"]),
    )


def _started(row: Mapping[str, str], code: int | None) -> str | None:
    """Return the start; a cancelled job that never started has the time of its end there (22.05, 25.05)."""
    never = row["state"].startswith("CANCELLED") and row["start"] == row["end"] and not code
    return None if never else iso_time(row["start"])


def _end_sentence(word: str, state: str, code: int | None) -> str | None:
    if word in ENDED:
        return f"{word}: {ENDED[word]}"
    if word == "FAILED":
        # The signals that end programs; 192, say, is srun's own "cannot bind", not SIGRTMAX.
        if code and 128 < code < 128 + 32:
            return f"FAILED: the script was ended by {_signal(code - 128)}"
        return f"FAILED: the script ended with exit status {code}"
    return state.strip() if " by " in state else None


def _signal(number: int) -> str:
    import signal  # it makes its enumerations when it is loaded

    return signal.Signals(number).name


def iso_time(text: str) -> str | None:
    """Turn seconds since 1970 into ISO 8601; what is not a number (Unknown, N/A) is None."""
    if not text.strip().isdigit() or int(text) == 0:
        return None
    return dt.datetime.fromtimestamp(int(text), dt.timezone.utc).astimezone().isoformat()
