"""Errors that programs and libraries write, ``known_errors.yaml``, and lines of launchers and schedulers."""

import re
from functools import cache, lru_cache

import msgspec

from hpclaunch.package_data import package_table, text_beside

OWN_ERROR, RANK_ENDED, KILLED = "the program's own error", "another rank ended", "killed"
RANKS_DIFFER, TIMED_OUT, ABORTED_ITSELF = "ranks differ", "collective timed out", ("MPI_Abort", "aborted")
WAITED = (TIMED_OUT, "ranks did not find each other")
"""Causes that the reader itself has to know."""

_FOLLOWS = {None: 0, "maybe": 1, "always": 2}
CERTAINLY = _FOLLOWS["always"]
"""`KnownError.follows` of an error that is always the result of another rank's end."""


class KnownError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of error: a row of the table, whose first lines explain the keys."""

    cause: str
    pattern: re.Pattern[str] = msgspec.field(name="patterns")
    holds: str
    source: str
    unless: re.Pattern[str] | None = None
    remedy: str | None = None
    exit_codes: frozenset[int] = frozenset()
    follows: int = 0
    """How far it may be the result of another rank's end: 0 not, 1 maybe, 2 always."""
    explains: frozenset[str] = frozenset()
    within: re.Pattern[str] | None = None
    outside: bool = False
    accuses: re.Pattern[str] | None = None
    shared: bool = False
    """Whether all ranks have it or another one is at fault, so that who writes it only reports."""
    of_python: bool = False

    def fits(self, line: str, files: str = "") -> bool:
        """Whether a line shows this error, of a traceback with frames in these files."""
        if not self.pattern.search(line) or (self.unless and self.unless.search(line)):
            return False
        return not (self.outside and files) and (not self.within or bool(self.within.search(files)))


@cache
def known_errors() -> tuple[KnownError, ...]:
    """Return the rows of the table, in its order."""
    table = package_table("failures/known_errors.yaml")
    rows = [{**row, "follows": _FOLLOWS[row.get("follows")]} for row in table]
    return msgspec.convert(rows, tuple[KnownError, ...], dec_hook=_compiled)


def _compiled(_: type, text: str | list[str]) -> re.Pattern[str]:
    """Return one pattern of a text, or of all alternatives."""
    return re.compile(text if isinstance(text, str) else "|".join(text))


@cache
def log_words(name: str) -> re.Pattern[str]:
    """Return what ``log_words.yaml`` has under a name, all alternatives in one pattern."""
    return re.compile("|".join(package_table("failures/log_words.yaml")[name]))


@cache
def each_of(name: str) -> tuple[re.Pattern[str], ...]:
    """Return what ``log_words.yaml`` has under a name, each alternative alone."""
    return tuple(map(re.compile, package_table("failures/log_words.yaml")[name]))


def error_named(cause: str) -> KnownError:
    """Return the row of that name, of several the last one, which is the most general."""
    return next(error for error in reversed(known_errors()) if error.cause == cause)


def error_of_code(code: int) -> KnownError | None:
    """Return the row of a rank that ended with this exit code and wrote nothing better (128+N: signal N)."""
    return next((error for error in known_errors() if code in error.exit_codes), None)


@lru_cache(maxsize=1 << 15)
def error_of(line: str, files: str = "") -> KnownError | None:
    """Return the first row that fits a line and the files of its traceback's frames.

    Where the line goes on to guess why it may have happened, the guesses do not count.
    """
    if not _any().search(line):
        return None
    line = log_words("guesses").sub("", line)
    return next((error for error in known_errors() if error.fits(line, files)), None)


@cache
def _any() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{error.pattern.pattern})" for error in known_errors()))


@cache
def error_lines() -> str:
    """Return a POSIX extended regular expression of the lines with a known error or a traceback's head."""
    patterns = (f"({error.pattern.pattern})" for error in known_errors())
    return "|".join((*patterns, r"Traceback \(most recent call last\)", "^Fatal Python error: "))


# slurmstepd names itself up to 24.11, and from 25.05 on its time only, as the programs of others do: of those
# lines its own are known by their words (src/slurmd/slurmstepd/req.c, src/common/log.c). From 23.11 on a site
# may have the newer form, too (LogTimeFormat=format_stderr in slurm.conf).
_SLURM = msgspec.json.decode(text_beside(__file__, "slurm_words.json"), type=dict[str, list[str]])
SLURM_ENDS = "|".join(_SLURM["ends"])
"""A line in which Slurm says that it ends a job or a step, as a POSIX extended regular expression."""
SLURM_SAYS = "|".join((*_SLURM["says"], SLURM_ENDS))
"""A line of Slurm's own programs, likewise."""
SAYS_RANK = "rank[ :=]*[0-9]+ *(of|/|out of|,? *(world[ _])?size[ :=]*) *[0-9]+"
"""A line with a rank and its size, likewise, in any case; the words before it decide whether it counts."""


def launchers_own(line: str) -> bool:
    """Whether a line is blank, ours, or one in which a launcher reports the end."""
    return bool(log_words("launchers_own").search(line) or re.search(SLURM_SAYS, line))
