"""Which rank failed first: what launchers write into a job's log when ranks fail."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import NamedTuple

from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.errors import BadInputError

# Each launcher's lines, as POSIX extended regular expressions for grep. Tried: srun of Slurm 22.05.8, mpiexec
# of Open MPI 4.1.4 and 5.0.11, and of MPICH 5.0.2, which names no rank; flux run of 0.88.0. PALS, whose words
# start_ranks.sh has, too: from ALCF's pages, not tried.
RANK_LINES = (
    r"^srun: error: [A-Za-z0-9._-]+: tasks? [0-9,-]+: "
    r"|^ +Process name: \[.*,[0-9]+\]|^ +Exit code: +[0-9]+"
    r"|(prterun|mpirun|mpiexec|orterun)[^ ]* noticed that process rank [0-9]+ |^signal [0-9]+ \("
    r"|exited on signal [0-9]+"
    r"|^=   PID [0-9]+ RUNNING AT |THE EXIT STRING: .* \(signal [0-9]+\)"
    r"|: rank [0-9]+ (exited with code|died from signal) [0-9]+"
    r"|(task|shell|worker) rank [0-9]+ on host [^ ]+ (failed|exited) \("
)
ENDED_BY_LAUNCHER = 128 + signal.SIGTERM
"""Exit code of a rank that its launcher has ended."""
ENDED_BY_KILL = 128 + signal.SIGKILL
"""Exit code of a rank that the kernel or an administrator has ended: it could say nothing."""


class RankWords(NamedTuple):
    """The end of one rank's stderr, which the rank itself has left in the job's folder."""

    rank: str
    errors: tuple[str, ...] = ()
    """The first lines with a known error."""
    end: tuple[str, ...] = ()
    """The last lines."""


class FailureLog(NamedTuple):
    """What a job's last run has left about a failure: in its log, and in the stderr of a rank."""

    ranks: str = ""
    """The launcher's lines about failed ranks, the first ones."""
    errors: tuple[str, ...] = ()
    """The first lines with a known error."""
    end: tuple[str, ...] = ()
    """The last lines."""
    own: RankWords | None = None
    """What the rank that failed first has written itself."""


class FailedRank(NamedTuple):
    """A rank that ended with a failure."""

    rank: str | None
    """``3``, or several ranks as the launcher writes them: ``0-3,7``."""
    node: str | None
    exit_code: int
    """128+N where signal N ended it."""
    words: str
    """The launcher's."""


def first_failed_rank(log: str) -> FailedRank | None:
    """Return the rank that failed first, and not one that was ended because of it; None: the log names none.

    srun itself exits with the highest code of all its ranks, which may be that of one it ended: it ends them
    by SIGTERM after the first failure, so ranks that SIGTERM ended count only where no other failed.
    """
    failed = failed_ranks(log)
    return next(
        (rank for rank in failed if rank.exit_code != ENDED_BY_LAUNCHER), failed[0] if failed else None
    )


def ranks_to_read(log: str, written: Sequence[str]) -> list[str]:
    """Return the ranks whose stderr is to be read, of those with one, in the order of their last words.

    Those that the launcher names as the first ones to fail; where it names none, all, but not more than 64.
    """
    rank = first_failed_rank(log)
    if rank is None or rank.rank is None or rank.exit_code == ENDED_BY_LAUNCHER:
        return list(written[:_RANKS_READ])
    named = _numbers(rank.rank)
    return [each for each in written if each in named][:_RANKS_READ]


_RANKS_READ = 64


def own_words(found: Sequence[RankWords]) -> RankWords | None:
    """Return the words that count, of the ranks that were read: the first ones with a known error.

    Where there are none, those of the only rank.
    """
    return next((words for words in found if words.errors), found[0] if len(found) == 1 else None)


def _numbers(ranks: str) -> frozenset[str]:
    """Return the ranks of a text such as ``0-3,7``; it comes from a log, so that anything may stand there."""
    try:
        return frozenset(map(str, parse_cpu_list(ranks)))
    except BadInputError:
        return frozenset()


def failed_ranks(log: str) -> list[FailedRank]:
    """Return all ranks that a launcher reports as failed, in the order of its reports.

    Where a launcher of the program's own has started the ranks, the site's launcher numbers nodes.
    """
    if workers := _workers(log):
        return workers
    found: list[FailedRank] = []
    process = node = None
    for line in log.splitlines():
        if match := re.search(r"^srun: error: ([\w.-]+): tasks? ([\d,-]+): (.+)$", line):
            words = match[3].strip()
            code = _code_of_words(words)
            if code is not None:
                found.append(FailedRank(match[2], match[1], code, words))
        elif match := re.search(r"noticed that process rank (\d+) with PID \d+ on node (\S+)", line):
            process, node = match[1], match[2]
            if match := re.search(r"exited on signal (\d+)", line):
                found.append(FailedRank(process, node, 128 + int(match[1]), f"ended by signal {match[1]}"))
        elif process and (match := re.match(r"(?:exited on )?signal (\d+) \(", line)):
            found.append(FailedRank(process, node, 128 + int(match[1]), f"ended by signal {match[1]}"))
        elif match := re.search(r"^ +Process name: \[.*,(\d+)\]", line):
            process, node = match[1], None
        elif match := re.search(r"^ +Exit code: +(\d+)", line):
            found.append(FailedRank(process, node, int(match[1]), f"exited with exit code {match[1]}"))
        elif match := re.search(r"^=   PID \d+ RUNNING AT (\S+)", line):
            process, node = None, match[1]
        elif match := re.search(r"THE EXIT STRING: (.* \(signal (\d+)\))", line):
            found.append(FailedRank(None, node, 128 + int(match[2]), match[1]))
        elif match := re.search(r"^([\w.-]+): rank (\d+) (exited with code|died from signal) (\d+)", line):
            code = int(match[4]) + 128 * (match[3] == "died from signal")
            found.append(FailedRank(match[2], match[1], code, f"{match[3]} {match[4]}"))
        else:
            found += _flux_rank(line)
    return found


def _workers(log: str) -> list[FailedRank]:
    """Return the workers of torchrun and its like that failed, as their shells report them.

    The launcher itself is not asked: srun ends it where another node reports first.
    """
    found = re.findall(
        r"^hpclaunch: worker rank (\d+) on host (\S+) failed \(Exit (\d+)\)", log, re.MULTILINE
    )
    return [FailedRank(rank, host, int(code), f"exited with exit code {code}") for rank, host, code in found]


def _flux_rank(line: str) -> list[FailedRank]:
    """Read the line of a failing rank's own shell under Flux, or that of Flux' shell about the first rank."""
    pattern = r"(?:^hpclaunch:|FATAL: .*:) task rank (\d+) on host (\S+) (?:failed|exited) \(([^)]+)\)"
    match = re.search(pattern, line)
    code = _code_of_words(match[3]) if match and match[3] != "Alarm clock" else None  # the walltime limit
    return [] if match is None or code is None else [FailedRank(match[1], match[2], code, match[3])]


def _code_of_words(words: str) -> int | None:
    """Read srun's or Flux' words: an exit code, or the name of a signal as strsignal(3) gives it."""
    if match := re.match(r"(?:Exited with exit code|Exit) (\d+)", words):
        return int(match[1])
    if words.startswith("Out Of Memory"):
        return 128 + signal.SIGKILL
    plain = words.removesuffix(" (core dumped)")
    return next(
        (128 + number for number in signal.valid_signals() if signal.strsignal(number) == plain), None
    )
