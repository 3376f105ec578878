"""Logs of jobs that failed, read for any number of jobs in two round trips."""

import re
from collections.abc import Iterable
from functools import cache

from hpclaunch.failures.failed_ranks import ranks_to_read
from hpclaunch.failures.known_errors import error_lines, log_words
from hpclaunch.failures.read_failure import FailureLog
from hpclaunch.host.host_interface import Host
from hpclaunch.job.log_extract import look

_END = 400
"""The last lines that are read of a log."""
_KEPT, _LEAST_KEPT = 3200, 60
"""The last lines that are read of all ranks' stderr together, about, and of each at least."""


def read_failures(host: Host, folders: Iterable[str]) -> dict[str, FailureLog]:
    """Return folder -> what its log and the failed ranks' stderr hold about a failure, for those with a log.

    That takes one round trip for all logs and one for the ranks. Raises RefusedError where the host cannot be
    asked.
    """
    parts = look(host, "failures", folders, _patterns())
    logs, written = dict[str, FailureLog](), dict[str, list[str]]()
    for folder, ranks, errors, end, count, names in zip(*[iter(parts)] * 6, strict=False):
        logs[folder] = FailureLog(ranks, (*_before(errors, int(count) - _END), *end.splitlines()))
        written[folder] = ranks_to_read(ranks, names.split())
    pairs = [(folder, rank) for folder, ranks in written.items() for rank in ranks]
    most = max(map(len, written.values()), default=0)
    kept = max(_LEAST_KEPT, min(_END, _KEPT // max(1, most)))
    names_of_ranks = (text for pair in pairs for text in pair)
    parts = look(host, "rank_ends", names_of_ranks, {**_patterns(), "KEPT": str(kept)})
    found = dict[str, dict[str, tuple[str, ...]]]()
    for folder, rank, words in zip(*[iter(parts)] * 3, strict=False):
        found.setdefault(folder, {})[rank] = tuple(words.splitlines())
    return {folder: log._replace(stderr=found.get(folder, {})) for folder, log in logs.items()}


def _before(lines: str, last: int) -> list[str]:
    """Return the text of the lines of ``grep -n`` whose numbers go up to ``last``."""
    numbered = (re.match(r"(\d+)[-:](.*)", line) for line in lines.splitlines())
    return [match[2] for match in numbered if match and int(match[1]) <= last]


@cache
def _patterns() -> dict[str, str]:
    return {"LC_ALL": "C", "RANKS": log_words("rank_lines").pattern, "ERRORS": error_lines()}
