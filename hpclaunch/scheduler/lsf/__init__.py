"""IBM Spectrum LSF: bsub, bjobs, bkill, the header of its scripts, and jsrun.

Known from IBM's documentation of 10.1, from OLCF's guide to Summit (jsrun, -nnodes) and from answers that
others recorded (tests/data/lsf); not tried on a real LSF.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.scheduler import scheduler_interface
from hpclaunch.scheduler.job_header import Line, Resources
from hpclaunch.scheduler.launcher import Mpirun
from hpclaunch.scheduler.scheduler_interface import JobIdentity, JobStatus, Scheduler, own_words, state_words

_WORDS = state_words("lsf")

_WORD = package_constants("scheduler/forms.json", "lsf")
_FORM = package_patterns("scheduler/forms.json", "lsf")


class LsfMpirun(Mpirun, frozen=True, kw_only=True):
    """An MPI's mpirun with the file of the job's hosts."""

    start: str = 'mpirun -n {tasks} -machinefile "$LSB_DJOB_HOSTFILE"'

    def environment(self, cpus_per_task: int | None, header: Iterable[str]) -> tuple[Line, ...]:
        """Keep Open MPI from binding, and make the file name each host once per rank, not per slot."""
        if (cpus_per_task or 1) == 1 or "-x" in header:  # a slot per rank
            return self.shell_lines
        machines = '"$HPCLAUNCH_JOB_FOLDER/machines"'
        text = f"awk 'NR % {cpus_per_task} == 1' \"$LSB_DJOB_HOSTFILE\" > {machines}\n"
        text += f"export LSB_DJOB_HOSTFILE={machines}"
        return (
            *self.shell_lines,
            Line(text=text, reason=f"a rank has {cpus_per_task} slots, and each is a line there"),
        )


class LsfScheduler(Scheduler, frozen=True, kw_only=True):
    """LSF. An id is a number; the jobs of an array share it."""

    def spelled(self, want: Resources) -> dict[str, object]:
        """Return what bsub has in its own way (bsub command reference)."""
        whole = want.launcher == "jsrun"
        if whole and want.memory:
            raise BadInputError("--mem: a job that LSF gives whole nodes (-nnodes) has all of their memory")
        ranges, percent, at_once = (want.array or "").partition("%")
        hours, minutes = divmod(-(-want.walltime_s // 60), 60)
        cpus = 1 if want.exclusive else want.cpus_per_task or 1
        slots = 0 if whole else want.tasks_per_node * cpus
        ends = "ended" if want.after_any else "done"
        return {
            "indices": f"[{ranges}]{percent}{at_once}" if want.array else "",
            "also": ", and a job for each index" if want.array else "",
            "whole_nodes": want.nodes if whole else 0,
            "slots": slots,
            "all_slots": want.nodes * slots,
            "each": "one" if cpus == 1 else cpus,
            "gpus": 0 if whole else want.gpus_per_node,
            "alone": want.exclusive and not whole,
            "limit": f"{hours}:{minutes:02d}",
            "ends": " && ".join(f"{ends}({job})" for job in want.after),
        }

    def overriding(self, script: str) -> tuple[str, ...]:
        """Return the variable by which bsub would not print the job's id."""
        return ("BSUB_QUIET",)

    def parse_found(self, script: str, answer: CommandResult) -> str | None:
        """Return the id of the job whose own file is in the script's folder."""
        if answer.exit_code != 0 and not _knows_no_job(answer):
            raise RefusedError(f"bjobs gives no answer: {own_words(answer)}")
        log = f"{script.rpartition('/')[0]}/{self.kind}.log"  # that of -o, as the planner names it
        rows = (line.partition("|") for line in answer.stdout.splitlines())
        return next((job.partition("[")[0] for job, _, output in rows if output.strip() == log), None)

    def status_commands(self, source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return one bjobs for all; of an array it lists each job."""
        return (("bjobs", "-a", "-noheader", "-o", f"{_WORD.fields[source]} delimiter='|'", *ids),)

    def parse_status(self, source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
        """Read the rows of bjobs; a job that it does not know may fail the command, the rest is there."""
        if answer.exit_code != 0 and not _knows_no_job(answer):
            raise RefusedError(f"bjobs gives no answer: {own_words(answer)}")
        rows = _rows(source, answer.stdout)
        if answer.stdout.strip() and not rows and not _knows_no_job(answer):
            raise RefusedError(f"bjobs gives an answer that cannot be read: {answer.stdout.strip()[:80]!r}")
        return {
            number: status
            for number, status in scheduler_interface.with_arrays(rows).items()
            if number in ids
        }


def _rows(source: str, text: str) -> list[tuple[str, str, int | None, JobStatus]]:
    """Return number twice, index and status of each row; "LSF is processing your request" is none."""
    rows, columns = [], len(_WORD.fields[source].split()) - 1
    for line in text.splitlines():
        values = [value.strip() for value in line.split("|", columns - 1)]
        match = re.fullmatch(r"(\d+)(?:\[(\d+)\])?", values[0], re.ASCII)
        if not match or len(values) < columns:
            continue
        values[-1], file = _without_file(values[-1])
        status = replace(_status(*[*values[2:], "", ""][:4]), identity=JobIdentity(script=file))
        index = match[2] or values[1]
        rows.append((match[1], match[1], int(index) if index.isdigit() and int(index) else None, status))
    return rows


def _without_file(text: str) -> tuple[str, str | None]:
    """Divide the last two columns, of which the first may have a | in it; ours is an absolute path."""
    before, bar, file = text.rpartition("|")
    if bar and file.startswith("/"):
        return before.strip(), file
    return (before.strip(), None) if bar and file in ("", "-") else (text, None)


def _knows_no_job(answer: CommandResult) -> bool:
    text = answer.stdout + answer.stderr
    return bool(re.search(r"is not found|no (unfinished )?job found", text, re.IGNORECASE))


def _status(word: str, exit_code: str, exit_reason: str, pend_reason: str) -> JobStatus:
    """Return the status; ``exit_code`` is empty or a dash for DONE and for many that were cancelled."""
    code = int(exit_code) if exit_code.isdigit() and int(exit_code) else None
    term = exit_reason.partition(":")[0]
    if _WORDS.states.get(word) == "failed" and _FORM.cancelled.fullmatch(term):
        by_another = exit_reason if "ADMIN" in term else None
        return JobStatus(state="cancelled", exit_code=code, reason=by_another)
    if term.startswith("TERM_"):
        reason = f"{exit_reason}: {_WORDS.ended[term]}" if term in _WORDS.ended else exit_reason
    else:
        reason = f"the script ended with exit status {code}" if code else "it ended without exit status"
    return _WORDS.status(word, waits=_WORDS.waiting(pend_reason.strip(" ;-")), fails=reason, code=code)


SCHEDULER = LsfScheduler(**scheduler_interface.scheduler_data("lsf", LsfMpirun()))
