"""Which rank failed first: what launchers write into a job's log when ranks fail."""

import re
import signal
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from hpclaunch.cpuset import format_cpu_list, parse_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.failures.known_errors import each_of, log_words
from hpclaunch.failures.rank_labels import by_rank

ENDED_BY_LAUNCHER = 128 + signal.SIGTERM
"""Exit code of a rank that its launcher has ended."""
OUTSIDE = frozenset(128 + n for n in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2))
"""Exit codes of ranks that no fault of theirs has ended: Slurm's --signal sends the last two."""
FAULTS = frozenset(128 + n for n in (signal.SIGILL, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV))


class FailedRank(NamedTuple):
    """A rank that ended with a failure."""

    rank: str | None
    """``3``, or several ranks as the launcher writes them: ``0-3,7``."""
    node: str | None
    exit_code: int | None
    """128+N where signal N ended it; None: the launcher does not tell it."""
    words: str
    """The launcher's."""
    line: str = ""
    """The line of the log in which it says so."""


def first_failed_rank(log: str, after: Container[str | None] = ()) -> FailedRank | None:
    """Return the rank that failed first, and not one that was ended because of it; None: the log names none.

    Where all were ended, it is the first of them. ``after``: ranks that write of another one's end.
    """
    own = own_ends(log)
    first = (rank for rank in own if not rank.rank or any(one not in after for one in ranks_named(rank.rank)))
    return next(first, next(iter(own or failed_ranks(log)), None))


def own_ends(log: str) -> list[FailedRank]:
    """Return the failed ranks without those that were ended because another one failed.

    srun itself exits with the highest code of all its ranks, which may be that of one it ended: it ends them
    by SIGTERM after the first failure. SIGKILL is such an end where one met a fault, or where srun tells of
    the step's end before that of any rank: MPI_Abort has Slurm kill the step.
    """
    failed = failed_ranks(log)
    aborted = log_words("step_ended_first").search(log)
    killed = aborted and failed and aborted.start() < log.find(failed[0].line)
    if killed or any(rank.exit_code in FAULTS for rank in failed):
        return [rank for rank in failed if rank.exit_code not in (ENDED_BY_LAUNCHER, 128 + signal.SIGKILL)]
    return [rank for rank in failed if rank.exit_code != ENDED_BY_LAUNCHER]


def ranks_named(ranks: str | None) -> frozenset[str]:
    """Return the ranks of a text such as ``0-3,7``; it comes from a log, so that anything may stand there."""
    try:
        return frozenset(map(str, parse_cpu_list(ranks))) if ranks else frozenset()
    except BadInputError:
        return frozenset()


@lru_cache(maxsize=4)
def failed_ranks(log: str) -> tuple[FailedRank, ...]:
    """Return all ranks that a launcher reports as failed, in the order of its reports.

    Where a launcher of the program's own has started the ranks, the site's launcher numbers nodes.
    """
    lines = log.splitlines()
    # Of workers the launcher itself is not asked: srun ends it where another node reports first.
    workers = [line for line in lines if line.startswith("hpclaunch: worker rank ")]
    plain = by_rank(workers or lines)
    texts = zip(workers or lines, plain, strict=True)
    said = filter(None, (_report(line) or _report(text) for line, (_, text) in texts))
    # Flux reports the end of a rank twice: by its shell, and by flux-job.
    once = (next(same) for _, same in groupby(_told(said), key=lambda rank: rank[:3]))
    return (not workers and tuple(_torchruns(plain))) or tuple(once)


def _told(reports: Iterable[re.Match[str]]) -> Iterator[FailedRank]:
    """Yield the ranks in reports; some name rank and node in one line, and the end in a later one."""
    place: tuple[str | None, str | None] = None, None
    for match in reports:
        said = match.groupdict()
        if said.get("rank") or said.get("node"):
            place = said.get("rank"), said.get("node")
        if (end := _end(said)) and (any(place) or (end[0] or 0) > 128):
            yield FailedRank(*place, *end, match.string.strip())


def _report(line: str) -> re.Match[str] | None:
    return next(filter(None, (report.search(line) for report in each_of("reports"))), None)


def _end(said: Mapping[str, str | None]) -> tuple[int | None, str] | None:
    """Return the exit code and the words of a launcher's report; None: it tells no end, or no code."""
    words, signal_number, code = said.get("words"), said.get("signal"), said.get("code")
    if signal_number:
        return 128 + int(signal_number), (words or f"ended by signal {signal_number}").strip()
    if code:
        return _exit_code(code), (words or f"exited with exit code {code}").strip()
    if said.get("left"):
        return None, "exited before the other ranks"
    known = _code_of_words(words.strip()) if words else None
    return (known, _shown(words.strip(), known)) if words and known is not None else None


def _shown(words: str, code: int) -> str:
    """Return an end as srun words it, also where we did: to bash 128+N is signal N."""
    by_signal = signal.strsignal(code - 128) if code - 128 in signal.valid_signals() else None
    return (by_signal or f"exited with exit code {code}") if words.startswith("Exit ") else words


def _exit_code(code: str) -> int:
    """Return an exit code; launchers written in Python write -N for signal N."""
    return int(code) if int(code) >= 0 else 128 - int(code)


def _torchruns(lines: Sequence[tuple[str | None, str]]) -> Iterator[FailedRank]:
    """Yield the workers of torchrun's table that failed: first what it calls the root cause.

    With several nodes each has its table, and of their root causes the earliest is the first failure. Those
    that failed alike within one second are one; those that the agent ended after the first one are left out.
    """
    # Of each label together: what two nodes write may be mixed.
    log = "\n".join(text for _, text in sorted(lines, key=lambda line: line[0] or ""))
    ended, alike = log_words("sent_a_signal").findall(log), itemgetter("time", "host", "code")
    table = [match for match in log_words("torchruns_table").finditer(log) if match["pid"] not in ended]
    table.sort(key=lambda each: (not each["root"], each["time"]))
    rest = sorted(table, key=lambda each: alike(each) != alike(table[0]))
    for (_, host, code), same in groupby(rest, key=alike):
        ranks, words = format_cpu_list(int(each["rank"]) for each in same), f"exited with exit code {code}"
        yield FailedRank(ranks, host, _exit_code(code), words, f"rank {ranks} {words}")


def _code_of_words(words: str) -> int | None:
    """Read srun's or Flux' words: an exit code, or the name of a signal as strsignal(3) gives it."""
    if match := re.match(r"(?:[Ee]xited with exit code|Exit) (\d+)", words):
        return int(match[1])
    if words.startswith("Out Of Memory"):
        return 128 + signal.SIGKILL
    plain = words.removesuffix(" (core dumped)")
    numbers = (number for number in signal.valid_signals() if signal.strsignal(number) == plain)
    return next((128 + number for number in numbers), None)
