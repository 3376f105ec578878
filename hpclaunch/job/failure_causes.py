"""Causes of a failure in a job's log: the first failed rank, a mask, an MPI plugin, bad nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from hpclaunch.cpuset import format_cpu_list, parse_mask
from hpclaunch.job.binding_report import PREFIX
from hpclaunch.job.failed_ranks import (
    ENDED_BY_KILL,
    ENDED_BY_LAUNCHER,
    FailedRank,
    FailureLog,
    RankWords,
    failed_ranks,
    first_failed_rank,
)
from hpclaunch.job.known_errors import KnownError, recognise
from hpclaunch.job.preflight_report import failed_nodes, read_preflight
from hpclaunch.job.record import Failure, JobRecord

# slurmstepd names itself up to 24.11, and from 25.05 on its time only, as the programs of others do: of those
# lines its own are known by their words (src/slurmd/slurmstepd/req.c, src/common/log.c). From 23.11 on a site
# may have the newer form, too (LogTimeFormat=format_stderr in slurm.conf).
SLURM_ENDS = (
    r"^(slurmstepd[^ ]*:|\[[^]]*[0-9]\]) error: \*\*\* ((HET)?JOB|STEP) [^ ]+ ON [^ ]+ .*\*\*\*$"
    r"|^(slurmstepd[^ ]*:|\[[^]]*[0-9]\]) error: \*\*\* REASON: .*\*\*\*$"
)
"""A line in which Slurm says that it ends a job or a step, as a POSIX extended regular expression."""
SLURM_SAYS = (
    rf"^(srun|slurmstepd[^ ]*): |{SLURM_ENDS}"
    r"|^\[[^]]*[0-9]\] (error|fatal): (Detected [0-9]+ oom[_-]kill event"
    r"|(mpi|task|gres|cgroup|auth|cred|switch|proctrack|job_container)/[a-z0-9_]+: "
    r"|couldn't chdir to |Could not open std|execve\(\): )"
)
"""A line of Slurm's own programs, likewise."""
SAYS_RANK = "rank[ :=]*[0-9]+ *(of|/|out of|,? *(world[ _])?size[ :=]*) *[0-9]+"
"""A line with a rank and its size, likewise, in any case; the words before it decide whether it counts."""

# What srun and slurmstepd write into the log where a node is at fault, tried with 22.05.8 except the last,
# which is PMIx' and known from its source. A program that fails on a node does not make the node bad.
_NODE_WORDS = (
    r"Node failure on (?P<node>[\w.-]+)",
    r"Task launch for \S+ failed on node (?P<node>[\w.-]+): (?!.*cpu bind)",
    r"[Ll]ost connection to (?:node|host) (?P<node>[\w.-]+)",
)


# Of the last lines of a log: blank ones, ours, and those in which a launcher reports the end.
_NOT_THE_PROGRAMS = re.compile(
    rf"^\s*$|{PREFIX}|{SLURM_SAYS}|^[-=]{{20,}}$|^=   "
    r"|^(prterun|mpi(run|exec))[^ ]* (detected|noticed) that |^[\w.-]+: rank [0-9]+ exited with code "
    r"|^(thus causing|the job to be terminated|Primary job +terminated|a non-zero exit code\.|signal \d+ \()"
    r"|^ +(Process name|Exit code): |^YOUR APPLICATION TERMINATED|^This typically refers to"
    r"|^Please see the FAQ"
    r"|^(Terminated|Killed)$"
    r"|: line \d+: +\d+ (Killed|Terminated|Aborted|Segmentation fault) "
    r"|^hpclaunch: (task|worker) rank |^  (time|host|rank|exitcode|error_file|traceback) +: "
    r"|^[\d.]+s: (flux-shell\[|job\.exception )|^flux-job: task\(s\) |^\S+ .* broker\.\w+\[\d+\]: "
    r"|^hpclaunch: .*; more: hpclaunch report \S+$"
)
_LAST_LINES = 5
_LINE_SHOWN = 200  # characters of a log's line in a reason


def failure_of(record: JobRecord, log: FailureLog) -> Failure:
    """Return what a failed job's log tells: the rank, its node, its exit code, the error and its lines."""
    rank = first_failed_rank(log.ranks)
    if rank and rank.exit_code == ENDED_BY_LAUNCHER:  # a limit or a lost node has ended all of them
        rank = None
    error, lines = _decisive(rank, log)
    own = _own_count(log.own, lines) if log.own else 0
    return Failure(
        rank=rank.rank if rank else None,
        node=_node_of(rank, record) if rank else None,
        exit_code=rank.exit_code if rank else None,
        cause=error.cause if error else None,
        remedy=error.remedy if error else None,
        lines=lines,
        stderr_rank=log.own.rank if log.own and own else None,
        stderr_lines=own,
    )


def _node_of(rank: FailedRank, record: JobRecord) -> str | None:
    """Return the node that the launcher names, else the one from which the rank reported its binding."""
    reports = record.binding.ranks if record.binding else ()
    return rank.node or next((one.host for one in reports if str(one.rank) == rank.rank), None)


def _decisive(rank: FailedRank | None, log: FailureLog) -> tuple[KnownError | None, tuple[str, ...]]:
    """Return the known error and its lines, or the last lines: the rank's own words first, then the log's.

    A rank that SIGKILL has ended does not know why: then the log counts as much as its own words.
    """
    own = log.own or RankWords("")
    if rank and rank.exit_code != ENDED_BY_KILL:
        error, lines = recognise(own.errors)
        if error:
            return error, lines
    error, lines = _known_error((*own.errors, *log.errors))
    if lines:
        return error, lines
    first = _last_lines(own.end)
    return error, (*first, *(line for line in _last_lines(log.end) if line not in first))


def _last_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line.strip() for line in lines if not _NOT_THE_PROGRAMS.search(line))[-_LAST_LINES:]


def _own_count(own: RankWords, lines: tuple[str, ...]) -> int:
    """Return how many of the lines, which begin with the rank's own, stand in its stderr."""
    known = frozenset(line.strip() for line in (*own.errors, *own.end))
    return len(list(takewhile(known.__contains__, lines)))


def _known_error(errors: tuple[str, ...]) -> tuple[KnownError | None, tuple[str, ...]]:
    """Return the error that counts and the lines that show it.

    Lines by which Slurm announces an end are left out: the job's state says the same.
    """
    error, lines = recognise(errors)
    return error, tuple(line for line in lines if not re.search(SLURM_ENDS, line))


def error_words(log: FailureLog) -> str | None:
    """Return the cause and the start of the first line of the error that counts in a log."""
    error, lines = _known_error(log.errors)
    return ": ".join([error.cause, *(line[:_LINE_SHOWN] for line in lines[:1])]) if error else None


def own_exit_code(code: int | None, log: FailureLog) -> int | None:
    """Return the exit code of a job that ended with ``code``: that of the rank that failed first.

    A launcher exits with the highest code of its ranks, also of those that it ended because one failed. The
    script's exit code stays where no rank of the log ended with it: then something else ended the job.
    """
    first = first_failed_rank(log.ranks)
    if first is None or code not in {rank.exit_code for rank in failed_ranks(log.ranks)}:
        return code
    return first.exit_code


def first_death(log: str) -> str | None:
    """Return which rank failed first according to the launcher, which then ended the other ranks."""
    rank = first_failed_rank(log)
    if rank is None or rank.rank is None:
        return None
    return f"first ended rank {rank.rank}" + (f" on {rank.node}" if rank.node else "") + f": {rank.words}"


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
    return (
        f"{text}. On whole nodes the site reserves the other cores for the system (core specialization):"
        f" reserve them in the site profile (node.reserved_cores{': ' if missing else ''}{missing}),"
        " or add --binding off"
    )


# What may stand before "rank 0 of 1" where it means the whole job; a "local rank" or a "tensor parallel rank"
# is 0 of 1 in good jobs, too.
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


def bad_nodes(record: JobRecord, log: str) -> dict[str, str]:
    """Return node -> why: a failed preflight, a report of Slurm, or ranks not bound as planned."""
    found = failed_nodes(record.preflight or read_preflight(log))
    for rank in record.binding.ranks if record.binding else ():
        if rank.wrong:
            found.setdefault(rank.host, f"rank {rank.rank} did not get its binding ({rank.verdict})")
    for line in log.splitlines():
        for pattern in _NODE_WORDS:
            if match := re.search(pattern, line):
                found.setdefault(match["node"].rstrip("."), line.strip())
    return found
