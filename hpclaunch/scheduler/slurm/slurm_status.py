"""The states of Slurm's jobs: the squeue, sacct and scontrol commands, and what their answers mean.

Text output only, in forms that are the same from 22.05 on: 22.05 has no JSON in scontrol and sbatch, and
squeue's JSON changes with every version. Tested on 22.05.8, 25.05.8 and 25.05.9 (tests/data/slurm). A width
of 0 in squeue's --Format cuts nothing off (src/squeue/print.c of 25.05). The script of a job is squeue's
Command, and its path stands in sacct's SubmitLine.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hpclaunch.amounts import grouped
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError, note_text
from hpclaunch.package_data import package_constants, package_patterns, text_beside
from hpclaunch.scheduler import scheduler_interface
from hpclaunch.scheduler.scheduler_interface import JobIdentity, JobStatus, iso_time, own_words, state_words

# Sources of the sentences: the sections JOB REASON CODES and JOB STATE CODES of man squeue and sacct (22.05
# to 24.11), and slurm.schedmd.com/job_reason_codes.html. Limits come as {Assoc,QOS}{Grp,Max}{what}{Limit,
# Minutes,...}: the parts name those that are no keys.
WORDS = state_words("slurm")

_QUERIES: dict[str, Any] = json.loads(text_beside(__file__, "queries.json"))
"""squeue: name -> width, the last one of any length. row: the names which all three sources are brought to,
in the order of sacct's columns and of scontrol's keys; scontrol has no ClusterName."""
_FORMAT = ",".join(f"{name}:{width}" for name, width in _QUERIES["squeue"].items())
_WORD = package_constants("scheduler/forms.json", "slurm_status")
_FORM = package_patterns("scheduler/forms.json", "slurm_status")

_QUERY: dict[str, tuple[str, ...]] = {
    "squeue": ("-h", "-a", "-r", "-t", "all", "-O", _FORMAT),
    "sacct": ("-X", "-n", "-P", "-D", "-o", ",".join(_QUERIES["sacct"])),
}


def status_commands(source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return one command a cluster; jobs whose sbatch named no cluster are one group."""
    if source == "scontrol":
        few = ids[: _WORD.scontrol_max_jobs]
        return tuple(("scontrol", *cluster_of(i), "-o", "show", "job", number_of(i)) for i in few)
    groups = grouped((cluster_of(one), number_of(one)) for one in ids)
    return tuple((source, *_QUERY[source], *cluster, "-j", ",".join(n)) for cluster, n in groups.items())


def parse_status(source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
    """Read what squeue, sacct or scontrol reports about the jobs."""
    nothing = r"(?i)invalid job id specified|accounting storage is disabled"  # which is an answer
    if answer.exit_code != 0 and not re.search(nothing, answer.stderr):
        raise RefusedError(f"{source} gives no answer: {own_words(answer)}")
    read = {"squeue": _squeue_rows, "sacct": _sacct_rows, "scontrol": _scontrol_rows}[source]
    rows = list(read(answer.stdout))
    if not rows and re.search(r"^(?!CLUSTER: |\s*$)", answer.stdout, re.MULTILINE):  # the line of squeue -M
        raise RefusedError(f"{source} gives an answer that cannot be read: {answer.stdout.strip()[:80]!r}")
    by_number = {number_of(scheduler_id): scheduler_id for scheduler_id in ids}
    known: dict[str, JobStatus] = {}
    for (number, _), status in _by_script(rows).items():
        if number in by_number:
            before = known.get(by_number[number])
            others = (before, *before.others) if before else ()
            known[by_number[number]] = replace(status, others=others)
    return known


def _by_script(rows: Sequence[Mapping[str, str]]) -> dict[tuple[str, str], JobStatus]:
    """Return the number and script of each job -> its status, the last one at the end."""
    jobs: dict[tuple[str, str], JobStatus] = {}
    for row in rows:
        number, underscore, indices = row["id"].partition("_")
        key = (number, row["script"])
        old, status = jobs.pop(key, None), _status(row)
        if underscore:
            told = old.jobs if old else {}
            status = scheduler_interface.array_status(
                {**told, **{i: _again(told.get(i), status) for i in _indices(indices)}}
            )
        jobs[key] = status if underscore else _again(old, status)
    return jobs


def _again(old: JobStatus | None, status: JobStatus) -> JobStatus:
    """Return the status of a job of which sacct has a row for each run, as Slurm requeued it."""
    return replace(status, restarts=max(status.restarts, old.restarts + 1)) if old else status


def number_of(scheduler_id: str) -> str:
    """Return the job's number of ``NUMBER;CLUSTER``."""
    return scheduler_id.partition(";")[0]


def cluster_of(scheduler_id: str) -> tuple[str, ...]:
    """Return the option that names the cluster of ``NUMBER;CLUSTER``."""
    name = scheduler_id.partition(";")[2]
    return ("-M", name) if name else ()


def _squeue_rows(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        row, at = {}, 0
        for name, width in _QUERIES["squeue"].items():
            row[name], at = line[at:][: width or None].strip(), at + width
        if _FORM.readable.fullmatch(row["JobArrayID"]) and row["State"]:
            code, command = row["exit_code"], row["Command"]
            if code.isdigit():  # of 22.05, the number of wait(2); since 23.02 CODE:SIGNAL
                code = f"{int(code) >> 8}:{int(code) & 0x7F}"
            times = (row["StartTime"], row["EndTime"], row["SubmitTime"])
            made = _row(row["JobArrayID"], row["State"], code, *times, row["Cluster"], row["Reason"], command)
            yield {**made, "restarts": row["RestartCnt"]}


def _sacct_rows(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        values = line.split("|", len(_QUERIES["sacct"]) - 1)
        # -D: a requeued job has a line an attempt, the last one counts
        if len(values) == len(_QUERIES["sacct"]) and _FORM.readable.fullmatch(values[0]):
            row = _row(*values)
            # Slurm itself cancelled it, as no user is named; sacct keeps the reason of the wait (22.05).
            never = (row["state"], row["reason"]) == ("CANCELLED", "Dependency")
            yield {**row, "reason": "DependencyNeverSatisfied"} if never else row


def _scontrol_rows(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        pairs = dict(re.findall(r"(?:^|\s)(\w+)=(\S*)", line))
        if "ArrayJobId" in pairs and "ArrayTaskId" in pairs:
            pairs["JobId"] = f"{pairs['ArrayJobId']}_{pairs['ArrayTaskId']}"
        if script := re.search(r" Command=(.*?)(?: WorkDir=|$)", line):
            pairs["Command"] = script[1]
        if _FORM.readable.fullmatch(pairs.get("JobId", "")) and "JobState" in pairs:
            made = _row(*(pairs.get(k, "") for k in _QUERIES["scontrol"]))
            yield {**made, "restarts": pairs.get("Restarts", "")}


def _indices(text: str) -> Iterator[int]:
    """Read ``3`` and ``[2-4,7%2]``, the jobs of an array that share a line while they wait."""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text.strip("[]").partition("%")[0]):
        yield from range(int(first), int(last or first) + 1)


def job_status(state: str, code: str, start: str, end: str) -> JobStatus:
    """Return what the columns State, ExitCode, Start and End of sacct mean."""
    return _status(_row("", state, code, start, end, *[""] * 4))


def _row(*values: str) -> dict[str, str]:
    return dict(zip(_QUERIES["row"], values, strict=True))


def _exit_code(text: str) -> int | None:
    """Read ``3:0`` (exit code) and ``0:9`` (signal, as a shell writes it: 128+9)."""
    code, _, number = text.partition(":")
    if not (code.isdigit() and (number or "0").isdigit()):
        return None
    return 128 + int(number) if number and int(number) else int(code)


def _status(row: Mapping[str, str]) -> JobStatus:
    restarts, script = row.get("restarts", ""), row["script"]
    said = JobIdentity(
        cluster=row["cluster"] or None,
        script=None if script in ("", "(null)") else script,
        submitted=iso_time(row["submit"]),
    )
    word = row["state"].strip().partition(" ")[0].rstrip("+")  # CANCELLED by 1000
    code = _exit_code(row["code"])
    never = _never_begun(word, row)
    # TIMEOUT and the like come with 0:0; 25.05 gives a lost node its own 0:1 (sacct: 1:0).
    status = WORDS.status(
        word,
        waits=pending_sentence(row["reason"]),
        fails=never or _end_sentence(word, row, code),
        code=None if never or word == "NODE_FAIL" else code,
        started=_started(row, code),
        ended=iso_time(row["end"]),
    )
    return replace(status, identity=said, restarts=int(restarts) if restarts.isdigit() else 0)


def _started(row: Mapping[str, str], code: int | None) -> str | None:
    """Return the start; a cancelled job that never started has the time of its end there (22.05, 25.05)."""
    never = row["state"].startswith("CANCELLED") and row["start"] == row["end"] and not code
    return None if never else iso_time(row["start"])


def _never_begun(word: str, row: Mapping[str, str]) -> str | None:
    """Return why Slurm could not begin the script, a failure that is not the script's.

    The reason JobLaunchFailure does not tell: a script that a signal ended has it too (22.05).
    """
    if (word, row["code"].partition(":")[2]) != ("FAILED", _WORD.io_error):
        return None
    log = (
        f"{row['script'].rpartition('/')[0]}/out.log" if row["script"].startswith("/") else "the job's output"
    )
    return note_text("slurm: no log", log=log)


def _end_sentence(word: str, row: Mapping[str, str], code: int | None) -> str | None:
    for key in (row["reason"], word):
        if key in WORDS.ended:
            return f"{key}: {WORDS.ended[key]}"
    if word == "FAILED":
        # The signals that end programs; 192, say, is srun's own "cannot bind", not SIGRTMAX.
        if code and 128 < code < 128 + 32:
            import signal  # it makes its enumerations when it is loaded

            return f"FAILED: the script was ended by {signal.Signals(code - 128).name}"
        return f"FAILED: the script ended with exit status {code}"
    return row["state"].strip() if " by " in row["state"] else None


def pending_sentence(reason: str) -> str | None:
    """Return ``Reason: sentence`` for a waiting job; an unknown reason comes back as it is, none as None."""
    reason = reason.strip().strip("()")
    if reason in ("", "None", "(null)", "null"):
        return None
    key = reason.split(",")[0].split("(")[0].strip()
    sentence = WORDS.pending.get(key)
    if sentence is None and key.startswith(("Assoc", "QOS")):
        sentence = next((words for part, words in WORDS.pending_parts if part in key), None)
    return f"{reason}: {sentence}" if sentence else reason
