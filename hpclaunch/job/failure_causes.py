"""Causes of a failure in a job's log: the first failed rank, a mask, bad nodes."""

import re

from hpclaunch.cpuset import format_cpu_list, parse_mask
from hpclaunch.errors import note_text
from hpclaunch.failures.failed_ranks import failed_ranks, first_failed_rank
from hpclaunch.failures.known_errors import SLURM_ENDS, each_of, launchers_own
from hpclaunch.failures.own_files import verdict_of_all
from hpclaunch.failures.read_failure import FailureLog, Verdict
from hpclaunch.job.log_extract import failed_nodes, read_preflight
from hpclaunch.job.record import Failure, JobRecord
from hpclaunch.plan.program import python_target
from hpclaunch.plan.script_commands import inner_words

_LAST_LINES = 5
_SHELL = re.compile(r"(^|/)(ba|da|k|z)?sh$|\.(ba|k|z)?sh$")
_LINE_SHOWN = 200  # characters of a log's line in a reason


def failure_of(record: JobRecord, log: FailureLog) -> Failure:
    """Return what a failed job's log tells: the rank, its node, its exit code, the error and its lines."""
    found = verdict_of_all(log, failed=bool(record.exit_code), ranks=record.tasks, nodes=record.nodes)
    # Before the line by which Slurm announces an end the last ones tell how far the program came.
    lines = tuple(line for line in found.lines if not re.search(SLURM_ENDS, line))
    whose = found.stderr_rank
    own = len(lines) if whose else 0
    if not lines or (found.error and found.error.cause == "MPI_Abort"):  # who calls it has said why before
        only = "".join(log.stderr) if len(log.stderr) == 1 else ""
        whose = found.rank if found.rank in log.stderr else only
        said = _last_lines(log.stderr.get(whose or "", ()))
        own = len(said)
        lines = (*said, *(line for line in lines or _last_lines(log.lines) if line not in said))
    return Failure(
        rank=found.rank or _only_rank(found, record, log),
        candidates=found.candidates,
        node=_node_of(found, record),
        exit_code=found.failed.exit_code if found.failed else None,
        cause=found.error.cause if found.error else None,
        remedy=_remedy(found, record),
        lines=_with_end(lines, found.lines),
        where=found.where,
        ranks_alike=found.ranks_alike,
        stderr_rank=whose if own else None,
        stderr_lines=own,
        file=found.file,
        file_lines=found.file_lines,
    )


def _only_rank(found: Verdict, record: JobRecord, log: FailureLog) -> str | None:
    """Return the rank of a job that has one, unless the job ended before it started."""
    if not found.error or record.tasks != 1 or found.candidates:
        return None
    began = record.binding.ranks if record.binding else "missing" not in {p.status for p in record.preflight}
    return "0" if began or log.stderr else None


def _with_end(lines: tuple[str, ...], found: tuple[str, ...]) -> tuple[str, ...]:
    """Return lines with the first found one by which Slurm announces an end, unless they have it."""
    end = next(filter(re.compile(SLURM_ENDS).search, found), "")
    return lines if end in "\n".join(lines) else (*lines, end)


def _remedy(found: Verdict, record: JobRecord) -> str | None:
    """Return what to do: for Python, or for a program that is neither Python nor a shell's script."""
    error = found.error
    if error and error.of_python and _is_compiled(found, record):
        return note_text("failure: core dump", program=inner_words(record.command)[0])
    return error.remedy if error else None


def _is_compiled(found: Verdict, record: JobRecord) -> bool:
    if record.bundled or not record.command or python_target(record.command) or record.request.get("imports"):
        return False
    said = any("Python" in line for line in found.lines)
    return not (said or _SHELL.search(inner_words(record.command)[0]))


def _node_of(found: Verdict, record: JobRecord) -> str | None:
    """Return the node that the launcher names, else the one from which the rank reported its binding."""
    if found.failed and found.failed.node:
        return found.failed.node
    reports = record.binding.ranks if record.binding else ()
    return next((one.host for one in reports if str(one.rank) == found.rank), None)


def _last_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line.strip() for line in lines if not launchers_own(line))[-_LAST_LINES:]


def error_words(log: FailureLog) -> str | None:
    """Return the cause and the start of the first line of the error that counts in a log.

    None where the launcher's report is all that is known, which `first_death` has.
    """
    found = verdict_of_all(log, failed=True)
    lines = [line for line in found.lines if not re.search(SLURM_ENDS, line)]
    if found.error is None or (found.failed and lines in ([], [found.failed.line])):
        return None
    reported = first_failed_rank(log.ranks)  # by the launcher: maybe ended because of another rank
    another = found.rank and reported and reported.rank != found.rank
    who = [f"rank {found.rank}"] if another else []
    first = [line[:_LINE_SHOWN] + f" (in {found.file})" * bool(found.file) for line in lines[:1]]
    return ": ".join([*who, *_with_cause(found.error.cause, first)])


def _with_cause(cause: str, words: list[str]) -> list[str]:
    """Return the words of an error with its cause in front, unless they begin with it."""
    return words if "".join(words).lower().startswith(cause.lower()) else [cause, *words]


def own_exit_code(code: int | None, log: FailureLog) -> int | None:
    """Return the exit code of a job that ended with ``code``: that of the rank that failed first.

    A launcher exits with the highest code of its ranks, also of those that it ended because one failed. The
    script's exit code stays where no rank of the log ended with it: then something else ended the job.
    """
    first = first_failed_rank(log.ranks)
    codes = {rank.exit_code for rank in failed_ranks(log.ranks)}
    if first is None or first.exit_code is None or code not in codes:
        return code
    return first.exit_code


def first_death(log: str) -> str | None:
    """Return the first rank that the launcher reports as failed; one that left with 0 is not reported."""
    rank = first_failed_rank(log)
    if rank is None or rank.rank is None:
        return None
    node = f" on {rank.node}" if rank.node else ""
    return f"first failure reported: rank {rank.rank}{node}: {rank.words}"


def refused_mask(record: JobRecord, log: str) -> str | None:
    """Return which mask of the plan Slurm refused and what to do about it; None: it refused none."""
    match = re.search(
        r"^srun: error: CPU binding outside of job step allocation, allocated CPUs are: (0x[0-9A-Fa-f]+)",
        log,
        re.MULTILINE,
    )
    if not match:
        return None
    got = parse_mask(match[1])
    planned = [frozenset(rank["cpus"]) for rank in (record.plan.get("binding") or {}).get("ranks", ())]
    wrong = [(rank, cpus) for rank, cpus in enumerate(planned) if cpus - got]
    text = "Slurm refused the CPU binding"
    if wrong:
        rank, cpus = wrong[0]
        text += f": the mask of local rank {rank} (CPUs {format_cpu_list(cpus)}) holds CPUs that are not the"
        text += f" job's: {format_cpu_list(cpus - got)}" + (
            f", and {len(wrong) - 1} more masks do" * (len(wrong) > 1)
        )
    text += f"; the job's are {format_cpu_list(got)}"
    if not record.request.get("exclusive"):
        return f"{text}. Masks hold on whole nodes only: ask for them (--exclusive), or add --binding off"
    missing = format_cpu_list(cpu for _, cpus in wrong for cpu in cpus - got)
    return note_text("binding: system cores", text=text, colon=": " if missing else "", cores=missing)


def bad_nodes(record: JobRecord, log: str) -> dict[str, str]:
    """Return node -> why: a failed preflight, a report of Slurm, or ranks not bound as planned."""
    found = failed_nodes(record.preflight or read_preflight(log))
    for rank in record.binding.ranks if record.binding else ():
        if rank.wrong:
            found.setdefault(rank.host, f"rank {rank.rank} did not get its binding ({rank.verdict})")
    for line in log.splitlines():
        for pattern in each_of("bad_nodes"):
            if match := pattern.search(line):
                found.setdefault(match["node"].rstrip("."), line.strip())
    return found
