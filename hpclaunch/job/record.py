"""JobRecord: the record of a job, one JSON file in its folder."""

import datetime as dt
from typing import Any, Literal

import msgspec

from hpclaunch.host.this_machine import MachineIdentity
from hpclaunch.job.binding_report import BindingVerdict
from hpclaunch.json_document import Document
from hpclaunch.scheduler.scheduler_interface import JobFate, JobIdentity, JobState


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
