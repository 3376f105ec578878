"""The states of PBS' jobs by qstat. Tested on outputs recorded from OpenPBS 23.06 (tests/data/pbs)."""

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler import scheduler_interface

# Exit_status below 0: JOB_EXEC_* in PBS Professional's reference guide, "Job Exit Status Codes". States:
# B, an array of which some jobs have begun; X, a finished subjob; C, completed in Torque and old versions.
_WORDS = scheduler_interface.state_words("pbs")
# Above 256 the top shell was ended by signal N: 256+N; a script that signals itself ends with 128+N.
_TOP_SHELL_SIGNAL = 256
_SUBSTATE_DELETED = 91


def status_commands(source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return one qstat for all: JSON, and text for jobs whose JSON cannot be read.

    qstat leaves out the jobs that come after one it does not know (recorded: ``qstat-x-mixed``), so where
    several are missing each has its own qstat.
    """
    if source == "each":
        return tuple(status_commands("text", [i])[0] for i in ids) if len(ids) > 1 else ()
    subjobs = ("-t",) if any("[]" in scheduler_id for scheduler_id in ids) else ()
    return (("qstat", *subjobs, "-x", "-f", *(("-F", "json") if source == "json" else ()), *ids),)


def parse_status(
    source: str, ids: Sequence[str], answer: CommandResult
) -> dict[str, scheduler_interface.JobStatus]:
    """Read qstat's answer; an unknown job fails the command, but the answer has the other jobs."""
    if "cannot connect to server" in answer.stderr or answer.exit_code == 255:
        raise RefusedError(f"qstat gives no answer: {scheduler_interface.own_words(answer)}")
    jobs = _json_jobs(answer.stdout) if source == "json" else text_jobs(answer.stdout)
    if not jobs and source != "json" and answer.exit_code == 0:  # it fails where it knows no job
        raise RefusedError(f"qstat gives an answer that cannot be read: {answer.stdout.strip()[:80]!r}")
    known = scheduler_interface.with_arrays(_row(job, attributes) for job, attributes in jobs.items())
    return {i: known[number] for i in ids if (number := _number(i)) in known}


def _row(
    job: str, attributes: Mapping[str, Any]
) -> tuple[str, str, int | None, scheduler_interface.JobStatus]:
    number, index = _number(job), re.fullmatch(r"(\d+)\[(\d+)\]", _number(job))
    array = (f"{index[1]}[]", int(index[2])) if index else ("", None)
    arguments = attributes.get("Submit_arguments")
    said = scheduler_interface.JobIdentity(
        cluster=job.partition(".")[2] or None,
        script=str(arguments) if arguments else None,
        submitted=iso_time(attributes.get("ctime")),
    )
    return (number, *array, replace(status_of(attributes), identity=said))


def _number(scheduler_id: str) -> str:
    return scheduler_id.partition(".")[0]


def _json_jobs(text: str) -> dict[str, Mapping[str, Any]]:
    """Return the jobs of ``qstat -F json``; none where a user's value made it unreadable."""
    try:
        # strict=False: control characters in strings, which some versions do not escape
        document = json.loads(text[text.index("{") :], strict=False)
        jobs = document.get("Jobs", {})
        return {str(job): attributes for job, attributes in jobs.items() if isinstance(attributes, dict)}
    except (ValueError, AttributeError):
        return {}


def text_jobs(text: str) -> dict[str, Mapping[str, Any]]:
    """Return the jobs of ``qstat -f``: ``    name = value`` lines, folded with newline and tab.

    A user's value may hold newlines itself: lines of any other form are dropped.
    """
    jobs: dict[str, Mapping[str, Any]] = {}
    attributes: dict[str, Any] = {}
    for line in text.replace("\r\n", "\n").replace("\n\t", "").split("\n"):
        if match := re.fullmatch(r"Job Id: (\S+)", line):
            jobs[match[1]] = attributes = {}
        elif match := re.fullmatch(r" {4}(\w[\w.]*) = (.*)", line):
            attributes.setdefault(match[1], match[2])
    return jobs


def _integer(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def status_of(attributes: Mapping[str, Any]) -> scheduler_interface.JobStatus:
    """Return what the attributes of a job mean."""
    letter = str(attributes.get("job_state", ""))
    started = iso_time(attributes.get("stime"))
    if _WORDS.states.get(letter) in scheduler_interface.FINAL_STATES:
        return _finished(attributes, started)
    return _WORDS.status(letter, waits=_queued_sentence(letter, attributes), started=started)


def _queued_sentence(letter: str, attributes: Mapping[str, Any]) -> str | None:
    if letter == "H" and attributes.get("depend"):
        return f"it waits for another job to end ({attributes['depend']})"
    if letter == "H":
        types = str(attributes.get("Hold_Types", ""))
        return next((_WORDS.pending[kind] for kind in "os" if kind in types), _WORDS.pending["u"])
    return _WORDS.pending.get(letter) or _WORDS.waiting(str(attributes.get("comment", "")).strip())


def _finished(attributes: Mapping[str, Any], started: str | None) -> scheduler_interface.JobStatus:
    """Judge a finished job. Without Exit_status it never ran, which is never a success."""
    code = _integer(attributes.get("Exit_status"))
    ended = iso_time(attributes.get("obittime")) or iso_time(attributes.get("mtime"))
    deleted = _integer(attributes.get("substate")) == _SUBSTATE_DELETED
    state: scheduler_interface.JobState = "failed"
    reason: str | None = None
    if code is None:
        reason = "it ended without having run, as when a job it depends on failed"
    elif code < 0:
        reason = _WORDS.ended.get(str(code), f"PBS could not run it (Exit_status {code}): tell the site")
    elif code >= _TOP_SHELL_SIGNAL:
        reason = f"its shell was ended by signal {code - _TOP_SHELL_SIGNAL}"
    elif code > 0:
        reason = f"the script ended with exit status {code}"
    elif not deleted:
        state = "done"
    if deleted:
        state, reason = "cancelled", None
    if code is not None:
        code = None if code < 0 else 128 + code - _TOP_SHELL_SIGNAL if code >= _TOP_SHELL_SIGNAL else code
    return scheduler_interface.JobStatus(
        state=state,
        exit_code=code if code or state == "done" else None,
        reason=reason,
        started=started,
        ended=ended,
    )


def iso_time(value: Any) -> str | None:
    """Read ``Fri Nov 20 22:37:24 2026``, in UTC as requested, into ISO 8601."""
    from email.utils import parsedate  # strptime would read the months of this machine's locale

    found = parsedate(str(value).strip())
    if found is None:
        return None
    time = dt.datetime(*found[:5], min(found[5], 59), tzinfo=dt.timezone.utc)
    return time.astimezone().isoformat()
