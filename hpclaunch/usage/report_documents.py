"""The document of ``hpclaunch report --json``. Null: not known; ``unknown`` says why."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from typing import Literal

import msgspec

from hpclaunch.job.job_documents import BindingDocument
from hpclaunch.json_document import Document
from hpclaunch.plan.layout import Cost
from hpclaunch.scheduler.scheduler_interface import JobState

Source = Literal["counter", "scheduler", "estimate"]
"""counter: read from hardware or the kernel on the nodes; scheduler: its accounting; estimate: computed from
something else, as ``how`` says."""


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a job that came back after a checkpoint or was requeued; times in seconds since 1970."""

    index: int | None
    start: int
    end: int


class JobTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time went; of an array that of its first job up to the end of its last one."""

    submitted: str | None
    started: str | None
    ended: str | None
    queue_s: float | None
    start_up_s: float | None
    run_s: float | None
    wall_s: float | None
    limit_s: int | None
    restarts: int
    between_runs_s: float | None
    lost: str | None
    lost_steps: int | None
    lost_s: float | None
    runs: tuple[JobRun, ...]


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU."""

    name: str
    ranks: tuple[int, ...]
    busy: float | None
    memory_peak: int | None
    memory_of: int | None
    power_w: float | None
    source: str


class EnergyUse(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of energy."""

    joules: float
    power_w: float | None
    source: Source
    how: str


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    node: str
    index: int | None
    looks: int
    cpus: int
    cpus_busy: float | None
    memory_peak: int | None
    memory_source: str | None
    memory_of: int | None
    gpus: tuple[GpuUse, ...]
    energy: tuple[EnergyUse, ...]


class RankUse(msgspec.Struct, frozen=True, kw_only=True):
    """One rank."""

    rank: int
    index: int | None
    node: str
    cpus_bound: int | None
    cpus_busy: float | None
    cpus_most: float | None
    memory_peak: int | None
    memory_grows: tuple[float, float] | None = None
    gpu_busy: float | None
    waiting_ms: float | None


class StepSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of the training."""

    steps: int | None
    steps_per_s: float | None
    trend: float | None
    source: str


class CostUsed(Cost, frozen=True, kw_only=True):
    """The job's cost, by the site's rule for whole nodes."""


Requested = Literal["time", "memory", "cores", "nodes"]


class NextRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to ask for next time."""

    what: Requested
    ask: str | None
    option: str | None
    text: str


class TimePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of all nodes in one of up to 200 spans of equal length."""

    second: int
    cpus_busy: float | None
    memory: float | None
    gpu_busy: float | None
    power_w: float | None


class ReportDocument(Document, frozen=True, kw_only=True):
    """The output of ``hpclaunch report --json``. Null: not known; ``unknown`` says why."""

    id: str
    name: str
    site: str
    scheduler: str
    scheduler_id: str | None
    state: JobState
    exit_code: int | None
    nodes: int
    tasks: int | None
    jobs: int
    every_s: int | None
    times: JobTimes
    by_node: tuple[NodeUse, ...]
    by_rank: tuple[RankUse, ...]
    cpu_s: float | None
    rank_memory: int | None
    job_memory: int | None
    energy: tuple[EnergyUse, ...]
    speed: StepSpeed | None
    binding: BindingDocument | None
    cost: CostUsed | None
    next: tuple[NextRequest, ...]
    over_time: tuple[TimePoint, ...]
    unknown: tuple[str, ...]
