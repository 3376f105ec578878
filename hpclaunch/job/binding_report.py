"""The ranks' reports on their binding: the lines that each rank's shell writes to the job's folder."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from collections.abc import Iterable

import msgspec

from hpclaunch.text_table import text_table

PREFIX = "hpclaunch-binding "


class RankReport(msgspec.Struct, frozen=True, kw_only=True):
    """The binding of one rank, read on its node from /proc and /sys."""

    rank: int
    host: str
    local_rank: int
    cpus: str
    """Allowed CPUs, as the kernel lists them."""
    planned: str
    """CPUs of the plan."""
    mems: str = ""
    """NUMA nodes whose memory it may use: those of its memory policy if that binds, else all allowed ones."""
    gpus: str = ""
    """GPUs it sees, as its runtime's variable says; ``none`` without one."""
    bus: str = ""
    """PCI addresses of those GPUs, ``unknown`` where the driver shows none."""
    gpu_numa: str = ""
    """NUMA nodes of those GPUs."""
    verdict: str
    """ok, cpus-differ, memory-on-another-numa-node, other-gpus, gpu-on-another-numa-node or no-such-gpu."""

    @property
    def ok(self) -> bool:
        """Whether the rank has the planned binding."""
        return self.verdict == "ok"


def read_report(log: str) -> tuple[RankReport, ...]:
    """Return the reports in a text in the order of their ranks; of a rank that reported twice the last one.

    Lines that only look like a report (a program may print anything) are passed over.
    """
    found: dict[int, RankReport] = {}
    for line in log.splitlines():
        at = line.find(PREFIX)
        if at < 0:
            continue
        fields = dict(word.split("=", 1) for word in line[at + len(PREFIX) :].split(" ") if "=" in word)
        try:
            report = msgspec.convert(fields, RankReport, strict=False)
        except msgspec.ValidationError:
            continue
        found[report.rank] = report
    return tuple(found[rank] for rank in sorted(found))


def judge(reports: Iterable[RankReport], tasks: int) -> tuple[bool, str]:
    """Return whether all ranks got their binding, and the finding in a sentence."""
    reports = list(reports)
    wrong = [report for report in reports if not report.ok]
    missing = f"{len(reports)} of {tasks} ranks reported their binding"
    if wrong:
        names = ", ".join(f"{report.rank} ({report.verdict})" for report in wrong[:8])
        more = (", ..." if len(wrong) > 8 else "") + (f"; {missing}" if len(reports) < tasks else "")
        return False, f"{len(wrong)} of {tasks} ranks did not get their binding: rank {names}{more}"
    if len(reports) < tasks:
        return False, missing
    return True, f"all {tasks} ranks got their binding"


NOT_SEEN = "each rank reported as it started; a binding that the program changes afterwards is not seen"


class BindingVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a record keeps of the ranks' reports."""

    ok: bool
    finding: str
    """In a sentence."""
    ranks: tuple[RankReport, ...]


def verdict(log: str, tasks: int) -> BindingVerdict:
    """Read the reports in a text and judge them."""
    ranks = read_report(log)
    ok, finding = judge(ranks, tasks)
    return BindingVerdict(ok=ok, finding=finding, ranks=ranks)


_COLUMNS = ("rank", "host", "local_rank", "cpus", "planned", "mems", "gpus", "bus", "gpu_numa", "verdict")


def table(reports: Iterable[RankReport]) -> str:
    """Lay the reports out in columns, one line per rank."""
    rows = [[str(getattr(report, name)) or "-" for name in _COLUMNS] for report in reports]
    return text_table(rows, _COLUMNS)
