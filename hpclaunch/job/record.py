"""JobRecord: the record of a job, one JSON file in its folder; the ranks' reports on their binding are in it.

These are lines that each rank's shell writes to the job's folder.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from hpclaunch.amounts import listed
from hpclaunch.cpuset import CpuSet, parse_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.host.this_machine import MachineIdentity
from hpclaunch.json_document import Document
from hpclaunch.scheduler.scheduler_interface import JobFate, JobIdentity, JobState
from hpclaunch.text_table import text_table

PREFIX = "hpclaunch-binding "
LATER = "hpclaunch-later "
"""Begins the line of a later look at a rank; of several the last one counts."""
NOT_JUDGED = "not-judged"
"""Verdict on a rank of which nothing wrong was seen, but not all that was planned could be compared."""


class LaterBinding(msgspec.Struct, frozen=True, kw_only=True):
    """CPUs that a thread of a rank, or of a process that it started, had instead of those at the start."""

    cpus: str
    name: str

    def __str__(self) -> str:
        return f"{self.name}: {self.cpus}"


class RankReport(msgspec.Struct, frozen=True, kw_only=True):
    """The binding of one rank, read on its node from /proc and /sys."""

    rank: int
    host: str
    local_rank: int
    cpus: str
    planned: str
    mems: str = ""
    gpus: str = ""
    bus: str = ""
    gpu_numa: str = ""
    verdict: str
    later: tuple[LaterBinding, ...] | None = None

    @property
    def ok(self) -> bool:
        """Whether the rank got the planned binding, as far as can be seen."""
        return self.verdict == "ok"

    @property
    def wrong(self) -> bool:
        """Whether the rank did not get the planned binding."""
        return self.verdict not in ("ok", NOT_JUDGED)

    @property
    def left(self) -> tuple[LaterBinding, ...]:
        """The changes that let a thread run on other CPUs than those at the start."""
        return tuple(change for change in self.later or () if not _is_within(change.cpus, self.cpus))


def read_report(log: str) -> tuple[RankReport, ...]:
    """Return the reports in a text in the order of their ranks; of a rank that reported twice the last one.

    Lines that only look like a report (a program may print anything) are passed over.
    """
    found: dict[int, RankReport] = {}
    later: dict[int, tuple[LaterBinding, ...]] = {}
    for line in log.splitlines():
        if fields := _fields(line, LATER):
            rank, changes = fields.get("rank", ""), fields.get("found", "").split(";")
            pairs = [(cpus, name) for cpus, _, name in (change.partition("@") for change in changes) if cpus]
            if rank.isdecimal() and all(_CPUS.fullmatch(cpus) for cpus, _ in pairs):
                later[int(rank)] = tuple(LaterBinding(cpus=cpus, name=name) for cpus, name in pairs)
            continue
        try:
            report = msgspec.convert(_fields(line, PREFIX), RankReport, strict=False)
        except msgspec.ValidationError:
            continue
        found[report.rank] = report
    return tuple(msgspec.structs.replace(found[rank], later=later.get(rank)) for rank in sorted(found))


_CPUS = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*")


def _fields(line: str, prefix: str) -> dict[str, str]:
    """Return the fields of a line's report; empty where it has none that begins so."""
    _, _, text = line.partition(prefix)
    return dict(word.split("=", 1) for word in text.split(" ") if "=" in word)


def readable_cpus(text: str) -> CpuSet:
    """Read the CPUs that a rank has reported; none where they cannot be read."""
    try:
        return parse_cpu_list(text)
    except BadInputError:
        return frozenset()


def _is_within(cpus: str, others: str) -> bool:
    try:
        return parse_cpu_list(cpus) <= parse_cpu_list(others)
    except BadInputError:
        return False


def judge(reports: Iterable[RankReport], tasks: int) -> tuple[bool, str]:
    """Return whether all ranks got and kept their binding, and the finding in a sentence."""
    reports = list(reports)
    of = f"of {tasks} ranks"
    bad = [
        _counted(f"{of} did not get their binding", reports, lambda one: one.verdict if one.wrong else ""),
        _counted(f"{of} could not be judged", reports, _not_compared),
        f"{len(reports)} {of} reported their binding" * (len(reports) < tasks),
    ]
    left = _counted(
        "left it for other CPUs while running", reports, lambda one: "".join(map(str, one.left[:1]))
    )
    all_did = "the rank got its binding" if tasks == 1 else f"all {tasks} ranks got their binding"
    got = "" if any(bad) else all_did
    changed = _counted(
        "changed it within their CPUs while running",
        reports,
        lambda one: str(one.later[0]) if one.later and not one.left else "",
    )
    return not (any(bad) or left), "; ".join(filter(None, (*bad, got, left, changed)))


def _counted(what: str, reports: list[RankReport], why: Callable[[RankReport], str]) -> str:
    """Return to how many ranks that applies, and the first ones, each with why; empty: to none."""
    named = [f"{report.rank} ({reason})" for report in reports if (reason := why(report))]
    return f"{len(named)} {what}: rank {listed(named)}" if named else ""


def _not_compared(report: RankReport) -> str:
    """Return what of a rank could not be judged: its GPUs, or its memory policy; empty: nothing."""
    if report.verdict != NOT_JUDGED:
        return ""
    if report.gpus.replace(",", "").isdigit() or report.gpus in ("", "none"):
        return f"memory policy {report.mems}"
    return f"GPU {report.gpus}"


class BindingVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of the ranks' reports in a record."""

    ok: bool
    finding: str
    ranks: tuple[RankReport, ...]


def verdict(log: str, tasks: int) -> BindingVerdict:
    """Read the reports in a text and judge them."""
    ranks = read_report(log)
    ok, finding = judge(ranks, tasks)
    return BindingVerdict(ok=ok, finding=finding, ranks=ranks)


_COLUMNS = ("rank", "host", "local_rank", "cpus", "planned", "mems", "gpus", "bus", "gpu_numa", "verdict")
_DROPPED = ("gpu_numa", "bus", "mems", "local_rank", "later", "host", "gpus", "planned")
_SHOWN = 3


def table(reports: Iterable[RankReport], width: int | None = None, *, looked_again: bool = True) -> str:
    """Lay the reports out in columns, one line per rank; ``width``: of the terminal."""
    header = (*_COLUMNS, "later") if looked_again else _COLUMNS
    rows = [[*(str(getattr(report, name)) or "-" for name in _COLUMNS), _later(report)] for report in reports]
    return text_table([row[: len(header)] for row in rows], header, width=width, drop=_DROPPED)


def _later(report: RankReport) -> str:
    if report.later is None:
        return "not seen"
    # First those on other CPUs.
    changes = sorted(report.later, key=lambda change: change not in report.left)
    more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return ", ".join(map(str, changes[:_SHOWN])) + more or "the same"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed, as far as its log and the stderr of its ranks tell."""

    rank: str | None = None
    candidates: str | None = None
    node: str | None = None
    exit_code: int | None = None
    cause: str | None = None
    remedy: str | None = None
    lines: tuple[str, ...] = ()
    where: str | None = None
    ranks_alike: int = 0
    stderr_rank: str | None = None
    stderr_lines: int = 0
    file: str | None = None
    file_lines: int = 0


class Hang(msgspec.Struct, frozen=True, kw_only=True):
    """Where the ranks of a job stood before --idle-timeout ended it."""

    finding: str
    kind: str
    remedy: str | None = None
    suspects: tuple[int, ...] = ()


class ArrayJob(JobFate, frozen=True, kw_only=True):
    """The state of one job of an array."""

    state: JobState = "created"
    hang: Hang | None = None
    restarts: int = 0


class NodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check of the preflight on one node."""

    host: str
    check: str
    status: Literal["have", "missing", "unknown"]
    evidence: str


class RecordedJob(Document, frozen=True, kw_only=True):
    """The facts of a job that its record and its JSON document share."""

    id: str
    name: str
    site: str
    scheduler: str
    scheduler_id: str | None = None
    state: JobState = "created"
    exit_code: int | None = None
    reason: str | None = None
    failure: Failure | None = None
    hang: Hang | None = None
    restarts: int = 0
    worker_restarts: int = 0
    nodes: int
    tasks: int
    host: str | None = None
    machine: MachineIdentity | None = None
    folder: str
    workdir: str
    command: tuple[str, ...]
    created: str
    started: str | None = None
    ended: str | None = None


class JobRecord(RecordedJob, frozen=True, kw_only=True):
    """The record of a job, one JSON file in its folder; changed only by replacing the whole file."""

    bundled: bool = False
    request: dict[str, Any]
    plan: dict[str, Any]
    identity: JobIdentity | None = None
    array: dict[int, ArrayJob] = msgspec.field(default_factory=dict)
    binding: BindingVerdict | None = None
    preflight: tuple[NodeVerdict, ...] = ()
    profile_digest: str
    versions: dict[str, str]
    resubmit_of: str | None = None
    git_commit: str | None = None

    @property
    def cluster(self) -> str | None:
        """Name of the cluster that has it; None: it has none, or it is not known."""
        return self.identity.cluster if self.identity else None

    @property
    def queue(self) -> str | None:
        """The queue of its plan."""
        return self.plan.get("queue")

    @property
    def limit_s(self) -> int | None:
        """Its walltime limit in seconds; None on this machine, which has none."""
        return self.plan.get("walltime_s") if self.machine is None else None

    @property
    def elapsed_s(self) -> int | None:
        """Seconds that it ran, or runs by now; None: it has not started, or its times are damaged."""
        try:
            start = dt.datetime.fromisoformat(self.started or "")
            end = dt.datetime.fromisoformat(self.ended) if self.ended else dt.datetime.now(dt.timezone.utc)
            return max(0, int((end - start).total_seconds()))
        except (ValueError, TypeError):
            return None

    @property
    def log(self) -> str:
        """Path of its output."""
        return f"{self.folder}/out.log"

    @property
    def node_names(self) -> list[str]:
        """Names of its nodes, as far as its ranks or its preflight have reported them."""
        ranks = self.binding.ranks if self.binding and not self.array else ()  # of an array those of one job
        reported = (*(rank.host for rank in ranks), *(node.host for node in self.preflight))
        return list(dict.fromkeys(reported))
