"""Reports and logs that jobs left in their folders, read for any number of jobs in one round trip."""

import datetime as dt
import os
import re
from collections.abc import Iterable, Mapping

import msgspec

from hpclaunch.failures.known_errors import SAYS_RANK, SLURM_SAYS
from hpclaunch.host.host_interface import Host
from hpclaunch.job.binding_report import LATER, PREFIX
from hpclaunch.job.preflight_report import PREFIX as PREFLIGHT_PREFIX
from hpclaunch.job.record import Hang
from hpclaunch.package_data import shell_words

SCRIPT, LOG, EXIT_STATUS, CANCELLED = "job.sh", "out.log", "exit_status", "cancelled"
REASON, NEXT_ID, RESTARTS, HANG = "reason", "next_id", "restarts", "hang"
WORKER_RESTARTS = "worker_restarts"
"""How often torchrun has started its workers again."""
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
    """Return the command that calls a function of ``looks.sh`` with the names on its stdin, any number."""
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
