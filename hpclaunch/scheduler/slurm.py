"""Slurm: sbatch, squeue, sacct, scontrol, scancel.

Text output only, in forms that are the same from 22.05 on: 22.05 has no JSON in scontrol and sbatch, and
squeue's JSON changes with every version. Tested on 22.05.8; newer ones are known from their man pages.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler import slurm_trial
from hpclaunch.scheduler.scheduler_interface import JobState, JobStatus, array_status
from hpclaunch.scheduler.slurm_words import ENDED, pending_sentence

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
# squeue has been asked before, and scontrol knows what squeue knows: it is only for a squeue that does not
# work, and takes one job at a time.
_SCONTROL_MAX_JOBS = 4


class SlurmScheduler:
    """Slurm; see Scheduler. An id is ``JOBID``, or ``JOBID;CLUSTER`` where sbatch names a cluster."""

    kind = "slurm"
    sentinel = "#SBATCH"
    starts_at_once = False
    poll_s = (1.0, 30.0)
    # Of an array this one job only: its SLURM_JOB_ID may be the number of the whole array.
    requeue = (
        'scontrol requeue "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"'
    )
    query_env: Mapping[str, str] = {"SLURM_TIME_FORMAT": "%s"}  # seconds since 1970: no time zone to guess
    status_sources: tuple[str, ...] = ("squeue", "sacct", "scontrol")

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Submit by sbatch; the script's own directives say all else."""
        return ("sbatch", "--parsable", script)

    def overriding(self, script: str) -> tuple[str, ...]:
        """Return those that sbatch would put above the script's options, and the one that makes it wait."""
        lines = (line.split() for line in script.splitlines() if line.startswith(self.sentinel + " "))
        given = {word.partition("=")[0] for words in lines for word in words[1:2]}
        return (
            "SBATCH_WAIT",
            *(n for o, names in _SBATCH_READS.items() if o in given for n in names.split()),
        )

    def parse_submit(self, answer: CommandResult) -> str:
        """Return the id, which a site's wrapper may print among other lines."""
        for line in reversed(answer.stdout.splitlines()):
            if answer.exit_code == 0 and re.fullmatch(r"\d+(;[\w.-]+)?", line.strip()):
                return line.strip()
        raise RefusedError(f"Slurm refused the job: {_words(answer)}")

    def test_command(self) -> tuple[str, ...]:
        """Ask by ``sbatch --test-only``."""
        return slurm_trial.TEST

    def parse_test(self, answer: CommandResult) -> str | None:
        """Return the estimate of the start; raise RefusedError with Slurm's words."""
        if answer.exit_code != 0:
            raise RefusedError(f"Slurm would refuse the job: {_words(answer)}")
        return slurm_trial.estimate(answer)

    def doubt_command(self, refusal: str, queue: str | None) -> tuple[str, ...]:
        """List the partition's nodes where the refusal may come from drained or down ones."""
        return slurm_trial.nodes_command(refusal, queue)

    def parse_doubt(self, answer: CommandResult, queue: str | None, nodes: int) -> str | None:
        """Return which nodes are away where it would have enough with them."""
        return slurm_trial.excuse(answer, queue, nodes)

    def find_command(self) -> tuple[str, ...]:
        """List the user's jobs, also those that ended a short while ago (MinJobAge)."""
        return ("squeue", "-h", "-a", "--me", "-t", "all", "-o", "%F|%o")

    def parse_found(self, script: str, answer: CommandResult) -> str | None:
        """Return the id of the job whose command is the script."""
        if answer.exit_code != 0:
            raise RefusedError(f"squeue gives no answer: {_words(answer)}")
        rows = (line.partition("|") for line in answer.stdout.splitlines())
        return next((number.strip() for number, _, command in rows if command.strip() == script), None)

    def status_commands(self, source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return one command a cluster; jobs whose sbatch named no cluster are one group."""
        if source == "scontrol":
            few = ids[:_SCONTROL_MAX_JOBS]
            return tuple(("scontrol", *_cluster(i), "-o", "show", "job", _number(i)) for i in few)
        groups: dict[tuple[str, ...], list[str]] = {}
        for scheduler_id in ids:
            groups.setdefault(_cluster(scheduler_id), []).append(_number(scheduler_id))
        return tuple((source, *_QUERY[source], *cluster, "-j", ",".join(n)) for cluster, n in groups.items())

    def parse_status(self, source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
        """Read what squeue, sacct or scontrol says of the jobs."""
        if answer.exit_code != 0 and not _knows_not(answer):
            raise RefusedError(f"{source} gives no answer: {_words(answer)}")
        rows = {"squeue": _squeue_rows, "sacct": _sacct_rows, "scontrol": _scontrol_rows}[source]
        by_number = {_number(scheduler_id): scheduler_id for scheduler_id in ids}
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

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """End the job with all its steps."""
        return ("scancel", *_cluster(scheduler_id), _number(scheduler_id))

    def parse_cancel(self, answer: CommandResult) -> None:
        """Raise RefusedError unless the job is ended or was."""
        if answer.exit_code != 0 and not re.search(
            r"invalid job id|already complet|job/step already", answer.stderr, re.IGNORECASE
        ):
            raise RefusedError(f"Slurm did not cancel the job: {_words(answer)}")


# Option in a script -> environment variables that sbatch takes before it (man sbatch, input environment
# variables; tried with 22.05), with those that would ask for the same thing in another way.
_GPUS = "SBATCH_GPUS SBATCH_GPUS_PER_NODE SBATCH_GPUS_PER_TASK SBATCH_GRES"
_MEMORY = "SBATCH_MEM_PER_CPU SBATCH_MEM_PER_GPU SBATCH_MEM_PER_NODE"
_SBATCH_READS = {
    "--account": "SBATCH_ACCOUNT",
    "--array": "SBATCH_ARRAY_INX",
    "--constraint": "SBATCH_CONSTRAINT",
    "--exclusive": "SBATCH_EXCLUSIVE",
    "--gpus-per-node": _GPUS,
    "--hint": "SBATCH_HINT SBATCH_THREADS_PER_CORE",
    "--job-name": "SBATCH_JOB_NAME",
    "--mem": _MEMORY,
    "--open-mode": "SBATCH_OPEN_MODE",
    "--output": "SBATCH_OUTPUT SBATCH_ERROR",
    "--partition": "SBATCH_PARTITION",
    "--qos": "SBATCH_QOS",
    "--requeue": "SBATCH_REQUEUE SBATCH_NO_REQUEUE",
    "--signal": "SBATCH_SIGNAL",
    "--time": "SBATCH_TIMELIMIT",
}

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


def _number(scheduler_id: str) -> str:
    return scheduler_id.partition(";")[0]


def _cluster(scheduler_id: str) -> tuple[str, ...]:
    name = scheduler_id.partition(";")[2]
    return ("-M", name) if name else ()


def _words(answer: CommandResult) -> str:
    """Return what Slurm said, on one line, without its programs' names."""
    text = answer.stderr.strip() or answer.stdout.strip() or f"exit status {answer.exit_code}, no word why"
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


def _row(job: str, state: str, code: str, start: str, end: str, reason: str) -> dict[str, str]:
    return {"id": job, "state": state, "code": code, "start": start, "end": end, "reason": reason}


def _raw_code(text: str) -> str:
    """Turn squeue's exit code, the number that wait(2) gives, into the ``CODE:SIGNAL`` of the others."""
    return f"{int(text) >> 8}:{int(text) & 0x7F}" if text.isdigit() else text


def _exit_code(text: str) -> int | None:
    """Read ``3:0`` (exit code) and ``0:9`` (signal, as a shell says it: 128+9)."""
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
    started = _time(row["start"])
    if state == "running":
        return JobStatus(state=state, reason=_RUNNING_WORDS.get(word), started=started)
    code = _exit_code(row["code"])
    if state == "done":
        return JobStatus(state=state, exit_code=0, started=started, ended=_time(row["end"]))
    return JobStatus(
        state=state,
        exit_code=code or None,  # TIMEOUT and the like come with 0:0
        reason=_end_sentence(word, row["state"], code),
        started=started,
        ended=_time(row["end"]),
    )


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


def _time(text: str) -> str | None:
    """Turn seconds since 1970 into ISO 8601; what is no number (Unknown, N/A) is None."""
    if not text.strip().isdigit() or int(text) == 0:
        return None
    return dt.datetime.fromtimestamp(int(text), dt.timezone.utc).astimezone().isoformat()
