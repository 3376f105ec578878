"""The document of ``hpclaunch report --json``. Null: not known; ``unknown`` says why."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from typing import Literal

import msgspec

from hpclaunch.job.job_documents import BindingDocument
from hpclaunch.json_document import Document
from hpclaunch.scheduler.scheduler_interface import JobState

Source = Literal["counter", "scheduler", "estimate"]
"""counter: read from hardware or the kernel on the nodes; scheduler: its accounting; estimate: computed from
something else, as ``how`` says."""


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a job that came back after a checkpoint or was requeued; times in seconds since 1970."""

    index: int | None
    """Of a job of an array."""
    start: int
    """When the first rank started."""
    end: int
    """When the ranks were last seen."""


class JobTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time went; of an array that of its first job up to the end of its last one."""

    submitted: str | None
    started: str | None
    ended: str | None
    queue_s: float | None
    """From the submission to the start; of a job that was requeued all its waiting."""
    start_up_s: float | None
    """From the start to the first rank: environment, checks, staging, the launch."""
    run_s: float | None
    """From the first rank to the end, or to now; of several runs all of them."""
    wall_s: float | None
    """From the start to the end, or to now; of an array the longest of its jobs."""
    limit_s: int | None
    restarts: int
    between_runs_s: float | None
    """Without ranks, between the runs; null where there was one run."""
    lost: str | None
    """Work that was done and lost, with where that is known from; null where there was one run."""
    lost_steps: int | None
    """Steps of the training that were made again."""
    lost_s: float | None
    """Seconds of training that were spent again."""
    runs: tuple[JobRun, ...]


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU."""

    name: str
    """Its PCI address, or its number where the tool gives no address."""
    ranks: tuple[int, ...]
    """That see it, as they have reported."""
    busy: float | None
    """Percent, the mean of the looks."""
    memory_peak: int | None
    """Bytes, the most of all looks."""
    memory_of: int | None
    power_w: float | None
    """The mean of the looks."""
    source: str
    """nvidia-smi, amd-smi, rocm-smi, or amdgpu: the kernel's files."""


class EnergyUse(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of energy."""

    joules: float
    power_w: float | None
    """The mean over the time that it covers."""
    source: Source
    how: str
    """The counted parts, and how they were counted."""


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    node: str
    index: int | None
    looks: int
    cpus: int
    cpus_busy: float | None
    """CPUs, the mean: of all that ran on the node."""
    memory_peak: int | None
    """Bytes."""
    memory_source: str | None
    """cgroup: the kernel's peak of the job on this node; ranks: the most of the job's ranks at a look, where
    what they share counts in each; null: they were not looked at twice."""
    memory_of: int | None
    """Bytes that the job had there: its limit, else the node's."""
    gpus: tuple[GpuUse, ...]
    energy: tuple[EnergyUse, ...]


class RankUse(msgspec.Struct, frozen=True, kw_only=True):
    """One rank."""

    rank: int
    index: int | None
    node: str
    cpus_bound: int | None
    cpus_busy: float | None
    """CPUs, the mean over the time that was sampled."""
    cpus_most: float | None
    """The most between two looks."""
    memory_peak: int | None
    """Bytes: the most of all looks of all its processes, where what they share counts in each, or the
    kernel's peak of its first process if that is more; null: it was looked at once only, as it started."""
    gpu_busy: float | None
    waiting_ms: float | None
    """For other ranks per step, where a timeline tells."""


class StepSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of the training."""

    steps: int | None
    steps_per_s: float | None
    trend: float | None
    """Change of the speed from the first third to the last one: 0.05 is 5 % faster."""
    source: str
    """result: of the bundled training; progress: the same where it has not ended, its evaluations included;
    timeline."""


class CostUsed(msgspec.Struct, frozen=True, kw_only=True):
    """The job's cost, by the site's rule for whole nodes."""

    amount: float
    unit: str
    text: str
    """With the arithmetic."""


class NextRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to ask for next time."""

    what: Literal["time", "memory", "cores", "nodes"]
    ask: str | None
    """The value for the option; null: nothing better than now is known."""
    option: str | None
    text: str
    """With the arithmetic, or why there is none."""


class TimePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of all nodes in one of up to 200 spans of equal length."""

    second: int
    """Since the first look."""
    cpus_busy: float | None
    memory: float | None
    """Bytes."""
    gpu_busy: float | None
    power_w: float | None


class ReportDocument(Document, frozen=True, kw_only=True):
    """The output of ``hpclaunch report --json``. Null: not known; ``unknown`` says why."""

    id: str
    """Of hpclaunch; of another job that of its scheduler."""
    name: str
    site: str
    scheduler: str
    scheduler_id: str | None
    state: JobState
    exit_code: int | None
    nodes: int
    tasks: int | None
    jobs: int
    """Of an array how many; else 1."""
    every_s: int | None
    """Seconds between two looks of the sampler; null: there are no samples."""
    times: JobTimes
    by_node: tuple[NodeUse, ...]
    by_rank: tuple[RankUse, ...]
    cpu_s: float | None
    """CPU time of all processes, by the accounting of the scheduler."""
    rank_memory: int | None
    """Bytes of the largest process of a rank, by the accounting of the scheduler."""
    job_memory: int | None
    """Bytes of all processes together at their peak, by the accounting of the scheduler."""
    energy: tuple[EnergyUse, ...]
    """Of the whole job."""
    speed: StepSpeed | None
    binding: BindingDocument | None
    cost: CostUsed | None
    next: tuple[NextRequest, ...]
    over_time: tuple[TimePoint, ...]
    unknown: tuple[str, ...]


DOCUMENTS = {"report": ReportDocument}
"""Name of the schema -> its type."""
