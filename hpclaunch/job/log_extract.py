"""What jobs left behind in their folders, read for any number of jobs in one round trip."""

import datetime as dt
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from hpclaunch.failures.failed_ranks import ranks_to_read
from hpclaunch.failures.known_errors import error_lines, log_words
from hpclaunch.failures.launcher_lines import SAYS_RANK, SLURM_SAYS
from hpclaunch.failures.read_failure import FailureLog
from hpclaunch.host.host_interface import Host
from hpclaunch.job.binding_report import LATER, PREFIX
from hpclaunch.job.preflight_report import PREFIX as PREFLIGHT_PREFIX
from hpclaunch.job.record import Hang

SCRIPT, LOG, EXIT_STATUS, CANCELLED = "job.sh", "out.log", "exit_status", "cancelled"
REASON, NEXT_ID, RESTARTS, HANG = "reason", "next_id", "restarts", "hang"
WORKER_RESTARTS = "worker_restarts"
"""How often torchrun has started its workers again."""
BINDING, PREFLIGHT = "binding", "preflight"
"""The folder with the ranks' reports, one file per node, and the file with the nodes' reports. Jobs of older
versions have them in the log."""

# Names come on stdin, any number of them; stat and grep put each name with a NUL before what they found.
# Of what ranks say they are the first lines will do: a program may say it at every step.
_LOOK = """
stat --printf='%n\\0%Y\\n' -- "$@"
grep -r -D skip -aHZE -e "$SAID" -- "$@"
grep -r -D skip -aHZEi -m 20000 -e "$RANK_SAID" -- "$@"
exit 0
"""
_NAMES = (LOG, EXIT_STATUS, BINDING, PREFLIGHT)
_TIMEOUT_S = 300.0  # gigabytes of logs, on a slow file system
_COMMAND = ("xargs", "-0", "-r", "sh", "-c", _LOOK, "sh")
_PATTERNS = {
    "LC_ALL": "C",
    "SAID": f"{PREFIX}|{LATER}|{PREFLIGHT_PREFIX}|{SLURM_SAYS}",
    "RANK_SAID": SAYS_RANK,
}


# What launchers report in the last run of a job that failed, the lines that may tell of an error with those
# before them, and its end. Its part of the log begins where the job's script has noted. Folders come on
# stdin; NUL ends each part.
_LOOK_AT_FAILURE = r"""
for folder; do
  log=$folder/out.log
  [ -f "$log" ] || continue
  read -r start 2> /dev/null < "$folder/log_start" || start=
  case $start in ''|*[!0-9]*) start=0;; esac
  part() { tail -c "+$((start + 1))" -- "$log" | tr -d '\000' | tr '\r' '\n'; }
  printf '%s\000' "$folder"
  part | grep -aE -m 1000 -e "$RANKS" | cut -c 1-600; printf '\000'
  part | grep -anE -B 20 -m 40 -e "$ERRORS" | cut -c 1-600; printf '\000'
  part | tail -n 400 | cut -c 1-600; printf '\000'
  part | wc -l; printf '\000'
  [ ! -d "$folder/stderr" ] || ls -tr "$folder/stderr" | grep -xE '[0-9]{1,7}' | head -n 20000; printf '\000'
done
exit 0
"""
_END = 400
"""The last lines that are read of a log."""
_KEPT, _LEAST_KEPT = 3200, 60
"""The last lines that are read of all ranks' stderr together, about, and of each at least."""
# The end of the stderr of ranks: folder and rank by turns come on stdin.
_LOOK_AT_RANKS = r"""
while [ $# -ge 2 ]; do
  file=$1/stderr/$2
  for each in "$file.before" "$file"; do [ ! -f "$each" ] || tail -c 300000 -- "$each"; done |
    tr -d '\000' | tr '\r' '\n' | tail -n "$KEPT" | { printf '%s\000%s\000' "$1" "$2"; cut -c 1-600; }
  printf '\000'
  shift 2
done
exit 0
"""


def read_failures(host: Host, folders: Iterable[str]) -> dict[str, FailureLog]:
    """Return folder -> what its log and the failed ranks' stderr hold about a failure, for those with a log.

    That takes one round trip for all logs and one for the ranks. Raises RefusedError where the host cannot be
    asked.
    """
    parts = _look(host, _LOOK_AT_FAILURE, folders)
    logs, written = dict[str, FailureLog](), dict[str, list[str]]()
    for folder, ranks, errors, end, count, names in zip(*[iter(parts)] * 6, strict=False):
        logs[folder] = FailureLog(ranks, (*_before(errors, int(count) - _END), *end.splitlines()))
        written[folder] = ranks_to_read(ranks, names.split())
    pairs = [(folder, rank) for folder, ranks in written.items() for rank in ranks]
    most = max(map(len, written.values()), default=0)
    kept = max(_LEAST_KEPT, min(_END, _KEPT // max(1, most)))
    parts = _look(host, _LOOK_AT_RANKS, (text for pair in pairs for text in pair), KEPT=str(kept))
    found = dict[str, dict[str, tuple[str, ...]]]()
    for folder, rank, words in zip(*[iter(parts)] * 3, strict=False):
        found.setdefault(folder, {})[rank] = tuple(words.splitlines())
    return {folder: log._replace(stderr=found.get(folder, {})) for folder, log in logs.items()}


def _before(lines: str, last: int) -> list[str]:
    """Return the text of the lines of ``grep -n`` whose numbers go up to ``last``."""
    numbered = (re.match(r"(\d+)[-:](.*)", line) for line in lines.splitlines())
    return [match[2] for match in numbered if match and int(match[1]) <= last]


def _look(host: Host, program: str, names: Iterable[str], **env: str) -> list[str]:
    """Return what a program prints about names, without its NUL bytes; where there is no name, nothing."""
    given = "".join(f"{name}\0" for name in names)
    if not given:
        return []
    command = ("xargs", "-0", "-r", "-n", "1000", "sh", "-c", program, "sh")
    answer = host.run(
        command, stdin=os.fsencode(given), env={**_patterns_of_failures(), **env}, timeout_s=_TIMEOUT_S
    )
    return answer.stdout.split("\0")


@cache
def _patterns_of_failures() -> dict[str, str]:
    return {"LC_ALL": "C", "RANKS": log_words("rank_lines").pattern, "ERRORS": error_lines()}


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
    """What one folder tells of the end of its job."""

    log: str = ""
    """The telling lines of its output and reports: words of Slurm's programs, reports of ranks and nodes, and
    then the lines in which ranks say who they are."""
    ended: str | None = None
    """When the exit status was written, ISO 8601 with time zone."""


def read_traces(host: Host, folders: Iterable[str]) -> dict[str, Trace]:
    """Return folder -> what is found there, for all of them.

    Logs may be large, so only their telling lines are brought here. Raises RefusedError where the host
    cannot be asked.
    """
    folders = list(folders)
    if not folders:
        return {}
    names = (f"{folder}/{name}\0" for folder in folders for name in _NAMES)
    answer = host.run(_COMMAND, stdin=os.fsencode("".join(names)), env=_PATTERNS, timeout_s=_TIMEOUT_S)
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
