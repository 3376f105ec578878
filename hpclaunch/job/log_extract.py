"""Reports and logs that jobs left in their folders, read for any number of jobs in one round trip."""

import datetime as dt
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from hpclaunch.errors import RefusedError
from hpclaunch.failures.known_errors import SAYS_RANK, SLURM_SAYS, error_lines, log_words
from hpclaunch.host.host_interface import Host
from hpclaunch.job.record import LATER, PREFIX, Hang, JobRecord, NodeVerdict
from hpclaunch.package_data import shell_words

# The reader of errors is loaded for jobs that failed alone.
if TYPE_CHECKING:
    from hpclaunch.failures.read_failure import FailureLog

LOG, EXIT_STATUS, CANCELLED = "out.log", "exit_status", "cancelled"
REASON, NEXT_ID, RESTARTS, HANG = "reason", "next_id", "restarts", "hang"
WORKER_RESTARTS = "worker_restarts"
"""How often torchrun has started its workers again."""
PREFLIGHT_PREFIX = "hpclaunch-preflight "
BINDING, PREFLIGHT = "binding", "preflight"
"""The folder with the ranks' reports, one file per node, and the file with the nodes' reports. Jobs of older
versions have them in the log."""

_NAMES = (LOG, EXIT_STATUS, BINDING, PREFLIGHT)
_TIMEOUT_S = 300.0  # gigabytes of logs, on a slow file system
_PATTERNS = {
    "LC_ALL": "C",
    "SAID": f"{PREFIX}|{LATER}|{PREFLIGHT_PREFIX}|{SLURM_SAYS}",
    "RANK_SAID": SAYS_RANK,
}


def look(host: Host, function: str, names: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """Return what a function of ``looks.sh`` prints about names, split at NUL; without names nothing."""
    given = "".join(f"{name}\0" for name in names)
    if not given:
        return []
    answer = host.run(
        _command(function, "-n", "1000"), stdin=os.fsencode(given), env=env, timeout_s=_TIMEOUT_S
    )
    return answer.stdout.split("\0")


def _command(function: str, *options: str) -> tuple[str, ...]:
    return ("xargs", "-0", "-r", *options, *shell_words(__file__, "looks.sh", function))


def reason_left(files: Mapping[str, bytes], folder: str) -> str | None:
    """Return the reason of its end that the script in this folder has written: a hang, restarts used up."""
    return files.get(f"{folder}/{REASON}", b"").decode(errors="replace").strip() or None


def hang_left(files: Mapping[str, bytes], folder: str) -> Hang | None:
    """Return where the ranks stood when the job hung, which the script in this folder has written."""
    text = files.get(f"{folder}/{HANG}")
    if not text or not (reason_left(files, folder) or "").startswith("hung:"):
        return None
    try:
        return msgspec.json.decode(text, type=Hang)
    except msgspec.DecodeError:
        return None  # cut, on a full disk


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job, as its folder records it."""

    log: str = ""
    ended: str | None = None


def read_traces(host: Host, folders: Iterable[str]) -> dict[str, Trace]:
    """Return folder -> what is found there, for all of them.

    Logs may be large, so only their telling lines are brought here. Raises RefusedError where the host
    cannot be asked.
    """
    folders = list(folders)
    if not folders:
        return {}
    names = (f"{folder}/{name}\0" for folder in folders for name in _NAMES)
    stdin = os.fsencode("".join(names))
    answer = host.run(_command("traces"), stdin=stdin, env=_PATTERNS, timeout_s=_TIMEOUT_S)
    logs: dict[str, list[str]] = {folder: [] for folder in folders}
    ended: dict[str, str] = {}
    for path, text in re.findall(r"([^\0]*)\0([^\n]*)\n", answer.stdout):
        folder, _, name = path.rpartition("/")
        if folder not in logs:  # the file of a node
            folder, _, name = folder.rpartition("/")
        if name == EXIT_STATUS and text.isdigit():
            ended[folder] = dt.datetime.fromtimestamp(int(text), dt.timezone.utc).astimezone().isoformat()
        elif name in (LOG, BINDING, PREFLIGHT) and not text.isdigit():
            logs.setdefault(folder, []).append(text)
    return {f: Trace(log="".join(f"{line}\n" for line in logs[f]), ended=ended.get(f)) for f in folders}


def read_preflight(log: str) -> tuple[NodeVerdict, ...]:
    """Return the reports, the last one of each check of a node; other lines are ignored."""
    found: dict[tuple[str, str], NodeVerdict] = {}
    for line in log.splitlines():
        _, mark, text = line.partition(PREFLIGHT_PREFIX)
        if not mark:
            continue
        try:
            said = msgspec.json.decode(text, type=NodeVerdict)
        except msgspec.DecodeError:
            continue
        found[said.host, said.check] = said
    return tuple(found.values())


def rank_stderr(host: Host, folder: str, rank: int) -> bytes:
    """Return the end of a rank's stderr, which ``rank_stderr.sh`` keeps in two files; empty: nothing."""
    paths = [f"{folder}/stderr/{rank}{part}" for part in (".before", "")]
    found = host.read_files(paths)
    return b"".join(found.get(path, b"") for path in paths)


def failed_nodes(said: Iterable[NodeVerdict]) -> dict[str, str]:
    """Return node -> what is wrong with it. What all of them lack makes none of them bad.

    A node that is alone is bad only where the check is about its hardware.
    """
    said = tuple(said)
    answered = {each.host for each in said if each.check != "answer"}
    missing: dict[str, set[str]] = {}
    for each in said:
        if each.status == "missing":
            missing.setdefault(each.check, set()).add(each.host)
    wrong: dict[str, list[str]] = {}
    for each in said:
        alike = len(answered) > 1 or each.check not in ("cpus", "gpus", "clock")
        everywhere = alike and missing.get(each.check) == answered
        if each.status == "missing" and not everywhere:
            wrong.setdefault(each.host, []).append(f"{each.check}: {each.evidence}")
    return {host: "; ".join(words) for host, words in wrong.items()}


_END = 400
"""The last lines that are read of a log."""
_KEPT, _LEAST_KEPT = 3200, 60
"""The last lines that are read of a stream of all ranks together, about, and of each at least."""


def read_failures(host: Host, folders: Iterable[str]) -> "dict[str, FailureLog]":
    """Return folder -> what its log and the words of ranks hold about a failure, for those with a log.

    That takes one round trip for all logs and one for the ranks: for 64 at most of each job, those first that
    its launcher names as the first to fail. Raises RefusedError where the host cannot be asked.
    """
    from hpclaunch.failures.failed_ranks import first_failed_rank, ranks_named
    from hpclaunch.failures.read_failure import FailureLog

    parts = look(host, "failures", folders, _patterns())
    logs, written = dict[str, FailureLog](), dict[str, list[str]]()
    for folder, told, errors, end, count, ends, names in zip(*[iter(parts)] * 7, strict=False):
        noted = re.findall(r"(?m)^[\d.]+ (.*)", ends)
        ranks = "\n".join((*(line for line in noted if not line.endswith("(Exit 0)")), told))
        lines = (*_before(errors, int(count) - _END), *end.splitlines())
        logs[folder] = FailureLog(ranks, lines, ends="\n".join(noted))
        first = first_failed_rank(ranks)
        named = ranks_named(first.rank) if first else frozenset[str]()
        by_time = [*dict.fromkeys(reversed(names.split()))][::-1]  # of their last words
        written[folder] = sorted(by_time, key=lambda rank: rank not in named)[:64]
    return _with_output(host, logs, written)


def _with_output(
    host: Host, logs: "dict[str, FailureLog]", written: Mapping[str, Sequence[str]]
) -> "dict[str, FailureLog]":
    """Return the logs with the ends of the stderr and of the stdout of ranks, which are given by folder."""
    most = max(map(len, written.values()), default=0)
    kept = max(_LEAST_KEPT, min(_END, _KEPT // max(1, most)))
    names = (text for folder, ranks in written.items() for rank in ranks for text in (folder, rank))
    parts = look(host, "rank_ends", names, {**_patterns(), "KEPT": str(kept)})
    for folder, rank, *both in zip(*[iter(parts)] * 4, strict=False):
        old, (stderr, stdout) = logs[folder], (tuple(words.splitlines()) for words in both)
        logs[folder] = old._replace(
            stderr={**old.stderr, **({rank: stderr} if stderr else {})},
            stdout={**old.stdout, **({rank: stdout} if stdout else {})},
        )
    return logs


def with_own_files(
    host: Host, logs: "dict[str, FailureLog]", records: Iterable[JobRecord]
) -> "dict[str, FailureLog]":
    """Return the logs with the errors in the program's own files, of failed jobs whose words tell none.

    That takes one round trip; a folder that cannot be read now tells nothing. Jobs of an array write in one
    folder at the same time: none are read.
    """
    from hpclaunch.failures.own_files import errors_of_files

    wanted = {each.folder: each for each in records if _is_untold(each, logs)}
    names = (text for folder, each in wanted.items() for text in (folder, each.workdir))
    parts = iter(list[str]())
    with suppress(RefusedError):
        parts = iter(look(host, "own_files", names, {"LC_ALL": "C"}))
    for folder in filter(None, parts):
        texts = {name: text.splitlines() for name, text in zip(iter(parts.__next__, ""), parts, strict=False)}
        found = errors_of_files(texts, ranks=wanted[folder].tasks, nodes=wanted[folder].nodes)
        logs[folder] = logs[folder]._replace(files=found)
    return logs


def _is_untold(record: JobRecord, logs: "Mapping[str, FailureLog]") -> bool:
    """Whether a job failed and its words do not tell why."""
    from hpclaunch.failures.own_files import tells_why
    from hpclaunch.failures.read_failure import verdict

    log = logs.get(record.folder)
    if record.state != "failed" or not record.exit_code or log is None:
        return False
    return not tells_why(verdict(log, failed=True, ranks=record.tasks, nodes=record.nodes))


def _before(lines: str, last: int) -> list[str]:
    """Return the text of the lines of ``grep -n`` whose numbers go up to ``last``."""
    numbered = (re.match(r"(\d+)[-:](.*)", line) for line in lines.splitlines())
    return [match[2] for match in numbered if match and int(match[1]) <= last]


@cache
def _patterns() -> dict[str, str]:
    return {"LC_ALL": "C", "RANKS": log_words("rank_lines").pattern, "ERRORS": error_lines()}
