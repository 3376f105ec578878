"""JobRecord: the record of a job, one JSON file in its folder."""

import datetime as dt
from typing import Any, Literal

import msgspec

from hpclaunch.host.this_machine import MachineIdentity
from hpclaunch.job.binding_report import BindingVerdict
from hpclaunch.job.preflight_report import NodeVerdict
from hpclaunch.scheduler.scheduler_interface import JobIdentity, JobState


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed, as far as its log and the stderr of its ranks tell."""

    rank: str | None = None
    node: str | None = None
    exit_code: int | None = None
    cause: str | None = None
    remedy: str | None = None
    lines: tuple[str, ...] = ()
    where: str | None = None
    ranks_alike: int = 0
    stderr_rank: str | None = None
    stderr_lines: int = 0


class Hang(msgspec.Struct, frozen=True, kw_only=True):
    """Where the ranks of a job stood before --idle-timeout ended it."""

    finding: str
    kind: str
    remedy: str | None = None
    suspects: tuple[int, ...] = ()


class ArrayJob(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one job of an array."""

    state: JobState = "created"
    exit_code: int | None = None
    reason: str | None = None
    hang: Hang | None = None
    """Of a job that --idle-timeout has ended."""
    started: str | None = None
    ended: str | None = None
    restarts: int = 0


class JobRecord(msgspec.Struct, kw_only=True):
    """The record of a job, one JSON file in its folder; changed only by replacing the whole file."""

    schema: Literal[1] = 1
    id: str
    name: str
    site: str
    state: JobState = "created"
    scheduler: str
    scheduler_id: str | None = None
    """Slurm's or PBS' job id; for local jobs ``PID:STARTTIME`` of the script's shell."""
    exit_code: int | None = None
    host: str | None = None
    """Where it was submitted over ssh, as ``[user@]host[:port]``, jump hosts of the profile before it with
    commas between; None: on this machine."""
    machine: MachineIdentity | None = None
    """Of a job without a queue: where its processes run; ``scheduler_id`` means nothing elsewhere."""
    folder: str
    """Absolute path of the job folder, on that host: script, log, result, exit status."""
    workdir: str
    """Where the job was submitted from and runs."""
    created: str
    """ISO 8601 with time zone."""
    started: str | None = None
    ended: str | None = None
    reason: str | None = None
    """Why the job waits or has failed."""
    command: tuple[str, ...]
    bundled: bool = False
    nodes: int
    tasks: int
    request: dict[str, Any]
    plan: dict[str, Any]
    identity: JobIdentity | None = None
    """Which job of which cluster it is, as the scheduler said right after the submission; None: not known."""
    array: dict[int, ArrayJob] = {}
    """Index -> that job of an array; its files are in the folder of that name; empty where it is none."""
    restarts: int = 0
    """How often it came back, after a checkpoint or because its scheduler requeued it."""
    worker_restarts: int = 0
    """How often torchrun started its workers again (--max-restarts), while the job went on."""
    failure: Failure | None = None
    """Of a failed job with a log; of an array that of its first failed job."""
    hang: Hang | None = None
    """Of a job that --idle-timeout has ended; of an array each job has its own."""
    binding: BindingVerdict | None = None
    """The ranks' reports on their binding; None before the end, or where none was planned."""
    preflight: tuple[NodeVerdict, ...] = ()
    """The nodes' preflight reports; empty before the end, or where no preflight was requested."""
    profile_digest: str
    """sha256 of the merged profile in canonical JSON."""
    versions: dict[str, str]
    resubmit_of: str | None = None
    """Id of the job whose request this one repeats."""
    git_commit: str | None = None
    """Commit of the workdir, ``-dirty`` appended where files differ."""

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
        ranks = self.binding.ranks if self.binding else ()
        reported = (*(rank.host for rank in ranks), *(node.host for node in self.preflight))
        return list(dict.fromkeys(reported))
