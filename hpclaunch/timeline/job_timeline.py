"""The timelines of all ranks of a job together: its steps, the ranks' waiting, the shares of a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants
from hpclaunch.timeline.late_ranks import deviation
from hpclaunch.timeline.rank_trace import COLUMNS, PHASES, RankTrace, bus_factor
from hpclaunch.timeline.read_timeline import TimelineFile

LIMIT = package_constants("timeline/limits.yaml", "jobs")


@dataclass(frozen=True)
class Place:
    """Where a rank ran."""

    node: str | None = None
    gpu: str | None = None

    def named(self, rank: int) -> str:
        """Return ``rank 3 (nid001, GPU 2)``."""
        where = ", ".join(text for text in (self.node, f"GPU {self.gpu}" if self.gpu else None) if text)
        return f"rank {rank}{f' ({where})' if where else ''}"


@dataclass(frozen=True)
class JobTimeline:
    """All that was read. Times are milliseconds."""

    files: tuple[TimelineFile, ...]
    traces: Mapping[int, RankTrace]
    ranks: int
    """Of the job, which may be more than there are traces."""
    steps: int
    first: int
    """Of the steps that can be compared, how many at the beginning are set apart."""
    times: tuple[float, ...]
    """Of each step, the median of the ranks; the first ones included."""
    columns: Mapping[int, Mapping[str, Sequence[float]]]
    """Rank -> the columns of `RankSteps`, without the first steps."""
    waits: Mapping[int, Sequence[float]]
    """Rank -> waiting per step, without the first steps; empty where the traces do not tell."""
    begins_within: bool
    """Whether recording began after some steps, so that the start of the run is not in it."""
    failed: int | None = None
    """The rank that ended the job by its output, which a timeline may not show."""

    @property
    def steady(self) -> tuple[float, ...]:
        """The steps' times without the first ones."""
        return self.times[self.first :]

    @property
    def step_ms(self) -> float:
        """The median, 0 without steps."""
        return median(self.steady) if self.steady else 0.0

    @property
    def sees_computing(self) -> bool:
        """Whether all traces show computing."""
        return all(trace.sees_computing for trace in self.traces.values())


def combined(
    files: Sequence[TimelineFile],
    ranks: int | None = None,
    *,
    begins_within: bool = False,
    failed: int | None = None,
) -> JobTimeline:
    """Put the files of one job together; BadInputError where two are of the same rank.

    ``ranks``: of the job, where it is known; a timeline that was started within a run may not tell.
    ``begins_within``: that it was; Horovod's times begin with the run all the same. ``failed``:
    see `JobTimeline`.
    """
    traces: dict[int, RankTrace] = {}
    names: dict[int, str] = {}
    for file in files:
        for trace in file.traces:
            if trace.rank in traces:
                if _says_more(traces[trace.rank], trace):
                    continue
                if not _says_more(trace, traces[trace.rank]):
                    raise BadInputError.case(
                        "timeline: one rank", other=names[trace.rank], file=file, rank=trace.rank
                    )
            traces[trace.rank], names[trace.rank] = trace, file.name
    stride = max((trace.steps.stride for trace in traces.values()), default=1)
    numbers = {rank: _columns(trace, stride) for rank, trace in sorted(traces.items())}
    with_steps = {rank: columns for rank, columns in numbers.items() if columns["time"]}
    count = min((len(columns["time"]) for columns in with_steps.values()), default=0)
    times = tuple(median(columns["time"][step] for columns in with_steps.values()) for step in range(count))
    first = _first_steps(times)
    columns = {
        rank: {name: column[first:count] for name, column in each.items()}
        for rank, each in with_steps.items()
    }
    told = max(max(trace.ranks or 0, rank + 1) for rank, trace in traces.items())
    steps = min((trace.steps.steps for trace in traces.values() if trace.steps.steps), default=0)
    waits = _waits(traces, columns, first, count, stride)
    return JobTimeline(
        tuple(files),
        dict(sorted(traces.items())),
        max(told, ranks or 0),
        steps,
        first,
        times,
        columns,
        waits,
        begins_within or any(trace.begins_within for trace in traces.values()),
        failed,
    )


def _says_more(trace: RankTrace, other: RankTrace) -> bool:
    """Whether of two traces of a rank this one is a profile and the other a flight recorder's dump."""
    return other.form == "flight-recorder" != trace.form


def _columns(trace: RankTrace, stride: int) -> dict[str, list[float]]:
    """Return the columns of a rank in milliseconds, of every ``stride``-th step."""
    every = max(1, stride // trace.steps.stride)
    counts = ("tensors", "bytes", "messages", "requests")
    return {
        name: [value if name in counts else value / 1e3 for value in trace.steps.columns[name][::every]]
        for name in COLUMNS
    }


def _first_steps(times: Sequence[float]) -> int:
    """Return how many steps at the beginning are set apart: those that are much longer than the median."""
    if len(times) < 3:
        return 0
    longest = LIMIT.first_times * median(times)
    most = max(1, int(LIMIT.first_share * len(times)))
    return next((number for number in range(most) if times[number] <= longest), most)


def _waits(
    traces: Mapping[int, RankTrace],
    columns: Mapping[int, Mapping[str, Sequence[float]]],
    first: int,
    count: int,
    stride: int,
) -> dict[int, list[float]]:
    """Return how long each rank waited in each step.

    Horovod's coordinator writes when each rank requested it. Elsewhere a step's communication cannot end
    before its last rank has begun it: what a rank spends above the rank that spends least is waiting.
    """
    for trace in traces.values():
        if trace.names_ranks:
            every = max(1, stride // trace.steps.stride)
            waited = trace.steps.waited
            return {rank: [v / 1e3 for v in waited[rank][::every][first:count]] for rank in sorted(waited)}
    spent = {
        rank: each["communication"]
        for rank, each in columns.items()
        if traces[rank].form in ("kineto", "runner")
    }
    spent = {rank: each for rank, each in spent.items() if any(each)}
    if len(spent) < 2:
        return {}
    least = [min(values) for values in zip(*spent.values(), strict=True)]
    return {rank: [a - b for a, b in zip(each, least, strict=True)] for rank, each in spent.items()}


SHARES = ("computing", "negotiating", "queueing", "copying", "moving", "waiting", "input", "idle", "unseen")


def shares(job: JobTimeline) -> dict[str, float | None]:
    """Return where the time of the steps goes, the mean of the ranks; None where the traces do not tell.

    ``unseen``: computing, input and idle together, where a timeline has only communication.
    """
    whole = sum(sum(columns["time"]) for columns in job.columns.values())
    if not whole:
        return dict.fromkeys(SHARES)
    sums = {name: sum(sum(columns[name]) for columns in job.columns.values()) for name in (*PHASES, "rest")}
    waiting = 0.0
    for rank, columns in job.columns.items():
        source = "negotiating" if job.traces[rank].form == "horovod" else "moving"
        if rank in job.waits:
            part = sum(min(a, b) for a, b in zip(columns[source], job.waits[rank], strict=True))
            sums[source] -= part
            waiting += part
    seen = job.sees_computing
    found: dict[str, float | None] = {name: sums[name] / whole for name in PHASES}
    found["waiting"] = waiting / whole if job.waits else None
    found["idle"] = sums["rest"] / whole if seen else None
    found["unseen"] = None if seen else sums["rest"] / whole
    if not seen:
        found["computing"] = found["input"] = None
    return {name: found[name] for name in SHARES}


def hidden_share(job: JobTimeline) -> float | None:
    """Return the share of the communication at the same time as computing; None where that is not seen."""
    spent = sum(sum(columns["communication"]) for columns in job.columns.values())
    if not job.sees_computing or not spent:
        return None
    return sum(sum(columns["hidden"]) for columns in job.columns.values()) / spent


def step_times(job: JobTimeline) -> dict[str, float | None]:
    """Return what is known about the steps' times, in milliseconds."""
    steady = job.steady
    if not steady:
        return {"median": None, "mean": None, "min": None, "max": None, "spread": None, "first": None}
    return {
        "median": median(steady),
        "mean": fmean(steady),
        "min": min(steady),
        "max": max(steady),
        "spread": deviation(steady),
        "first": fmean(job.times[: job.first]) if job.first else None,
    }


def allreduce_gb_s(job: JobTimeline) -> tuple[float, float] | None:
    """Return the bus bandwidth of the allreduces in GB/s, and the bytes of a message; None where not known.

    The time of a step is that of the rank that waits least.
    """
    found = []
    for rank, trace in job.traces.items():
        sums = trace.collectives.kinds.get("allreduce")
        if sums and sums.seconds > 0 and sums.bytes and not sums.unknown and rank in job.columns:
            found.append((sums.bytes / sums.seconds / 1e9 * bus_factor("allreduce", job.ranks), sums))
    if not found or job.ranks < 2:
        return None
    fastest, sums = max(found, key=lambda each: each[0])
    return fastest, sums.bytes / max(sums.messages, 1)
