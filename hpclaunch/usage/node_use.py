"""The use of nodes and ranks, from the samples of their runs. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from hpclaunch.amounts import grouped, rounded
from hpclaunch.timeline.late_ranks import growth
from hpclaunch.usage.node_samples import GpuSample, NodeFile, NodeRun, RankSample, intervals
from hpclaunch.usage.report_documents import EnergyUse, GpuUse, NodeUse, RankUse, TimePoint

_POINTS = 200
_TOTAL = "energy"
"""Cray's counter of the whole node; those of its parts have longer names."""


def node_use(
    index: int | None, file: NodeFile, buses: Mapping[str, tuple[int, ...]], asked: int | None
) -> NodeUse:
    """Return what a node used in all its runs.

    ``buses``: PCI address -> the ranks that see this GPU; empty: not known, so all GPUs of the node are
    listed. ``asked``: bytes of memory that the job asked for per node.
    """
    runs = file.runs
    peak, source, limit = _memory(runs)
    return NodeUse(
        node=runs[-1].node,
        index=index,
        looks=sum(len(run.looks) for run in runs),
        cpus=runs[-1].cpus,
        cpus_busy=rounded(_cpus_busy(runs)),
        memory_peak=peak,
        memory_source=source,
        memory_of=limit or asked or runs[-1].memory_of or None,
        gpus=tuple(_gpus(runs, buses)),
        energy=tuple(_energy(runs, buses)),
    )


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _cpus_busy(runs: Sequence[NodeRun]) -> float | None:
    """Busy ticks of all CPUs by the ticks of one; these are those of all divided by the number of CPUs."""
    pairs = [(run, run.looks[0], run.looks[-1]) for run in runs if len(run.looks) > 1 and run.cpus]
    ticks = sum((last.cpu_all - first.cpu_all) / run.cpus for run, first, last in pairs)
    busy = sum(last.cpu_busy - first.cpu_busy for _, first, last in pairs)
    return busy / ticks if ticks > 0 else None


def _memory(runs: Sequence[NodeRun]) -> tuple[int | None, str | None, int | None]:
    """Return peak, its source, and the limit of the job's cgroup where it is less than the node's memory."""
    of_job = [look.values for run in runs if run.own_cgroup for look in run.looks]
    peaks = [values["peak"] for values in of_job if "peak" in values]
    peaks = peaks or [values["now"] for values in of_job if "now" in values]
    most = max((run.memory_of for run in runs), default=0)
    limits = [values["limit"] for values in of_job if 0 < values.get("limit", 0) < most]
    limit = limits[-1] if limits else None
    if peaks:
        return max(peaks), "cgroup", limit
    of_ranks = [most for run in runs if (most := _memory_of_ranks(run.ranks.values()))]
    return (max(of_ranks), "ranks", limit) if of_ranks else (None, None, limit)


def _memory_of_ranks(ranks: Iterable[Sequence[RankSample]]) -> int:
    """Return the most bytes of all ranks of a node at a look; 0 where they were looked at once only."""
    sums: dict[int, int] = {}
    for samples in ranks:
        for look in samples if len(samples) > 1 else ():
            sums[look.time] = sums.get(look.time, 0) + max(look.memory, look.peak)
    return max(sums.values(), default=0)


def _gpus(runs: Sequence[NodeRun], buses: Mapping[str, tuple[int, ...]]) -> Iterable[GpuUse]:
    looks: dict[str, list[GpuSample]] = {}
    for run in runs:
        for name, samples in run.gpus.items():
            looks.setdefault(name, []).extend(samples)
    for name in _ours(looks, buses):
        known = looks[name]
        memory = [look.memory for look in known if look.memory is not None]
        yield GpuUse(
            name=name,
            ranks=buses.get(name, ()),
            busy=rounded(mean(look.busy for look in known), 1),
            memory_peak=max(memory, default=None),
            memory_of=next((look.memory_of for look in known if look.memory_of), None),
            power_w=rounded(mean(look.power_w for look in known), 1),
            source=runs[-1].gpu_source,
        )


def _ours(names: Iterable[str], buses: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Return the GPUs without those of other jobs on a shared node, where the job's are known."""
    found = sorted(names)
    return [name for name in found if name in buses] or found


def _energy(runs: Sequence[NodeRun], buses: Mapping[str, tuple[int, ...]]) -> Iterable[EnergyUse]:
    counted, seconds, zones, accelerators = 0.0, 0, 0.0, 0
    for run in runs:
        for before, after in intervals(run):
            step = after.values.get(_TOTAL, 0) - before.values.get(_TOTAL, 0)
            if _TOTAL in after.values and _TOTAL in before.values and step >= 0:
                counted += step
                accelerators += _of_gpus(after.values) - _of_gpus(before.values)
            for name, (now, again) in after.rapl.items():
                if name in before.rapl:
                    zones += ((now - before.rapl[name][0]) % again if again else 0) / 1e6
            seconds += after.time - before.time
    if counted:
        yield _figure(counted, seconds, "counter", "whole node, by Cray's pm_counters")
    if accelerators > 0:
        yield _figure(accelerators, seconds, "counter", "of that its GPUs, by Cray's pm_counters")
    if zones:
        yield _figure(zones, seconds, "counter", "processors and, where counted, memory, by RAPL; no GPUs")
    estimate = sum(_power_by_time(run.gpus[name]) for run in runs for name in _ours(run.gpus, buses))
    if estimate and accelerators <= 0:
        yield _figure(estimate, seconds, "estimate", "GPUs only: their power at each look x the time between")


def _of_gpus(values: Mapping[str, int]) -> int:
    return sum(value for name, value in values.items() if name.startswith("accel"))


def _figure(joules: float, seconds: float, source: str, how: str) -> EnergyUse:
    power = rounded(joules / seconds, 1) if seconds else None
    return EnergyUse(joules=round(joules, 1), power_w=power, source=source, how=how)  # type: ignore[arg-type]


def _power_by_time(samples: Sequence[GpuSample]) -> float:
    """Return joules: the mean of the power at both ends of each interval."""
    return sum(
        (before.power_w + after.power_w) / 2 * (after.time - before.time)
        for before, after in pairwise(samples)
        if before.power_w is not None and after.power_w is not None
    )


def job_energy(nodes: Sequence[NodeUse]) -> Iterable[EnergyUse]:
    """Add the nodes' figures of each kind up, where all nodes have them."""
    for how in dict.fromkeys(figure.how for node in nodes for figure in node.energy):
        figures = [figure for node in nodes for figure in node.energy if figure.how == how]
        with_all = how if len(figures) == len(nodes) else f"{how}; {len(figures)} of {len(nodes)} nodes only"
        power = [figure.power_w for figure in figures if figure.power_w is not None]
        yield EnergyUse(
            joules=round(sum(figure.joules for figure in figures), 1),
            power_w=rounded(sum(power), 1) if power else None,
            source=figures[0].source,
            how=with_all,
        )


def rank_uses(
    index: int | None,
    files: Mapping[str, NodeFile],
    bound: Mapping[int, int],
    gpus: Mapping[int, tuple[str, ...]],
    waiting: Mapping[int, float | None],
) -> Iterable[RankUse]:
    """Yield the ranks in order; by rank ``bound``: CPUs, ``gpus``: addresses, ``waiting``: ms per step."""
    runs = [run for file in files.values() for run in file.runs]
    looks = grouped((rank, (run, samples)) for run in runs for rank, samples in run.ranks.items())
    for rank, found in sorted(looks.items()):
        run = found[-1][0]
        busy = [look.busy for at, _ in found for name in gpus.get(rank, ()) for look in at.gpus.get(name, ())]
        peaks = [max(look.memory, look.peak) for _, seen in found if len(seen) > 1 for look in seen]
        average, most = _cpu_rates(rank, found)
        sizes = _without_end([look.memory for look in found[-1][1]])
        yield RankUse(
            rank=rank,
            index=index,
            node=run.node,
            cpus_bound=bound.get(rank),
            cpus_busy=rounded(average),
            cpus_most=rounded(most),
            memory_peak=max(peaks, default=None),
            memory_grows=growth(sizes[len(sizes) // 2 :], 64 << 20, 1.1),  # not what it loads at first
            gpu_busy=rounded(mean(busy), 1),
            waiting_ms=waiting.get(rank),
        )


def _without_end(sizes: list[int]) -> list[int]:
    """Leave out the last looks, a tenth at most, in which a program that ends gives its memory back."""
    least, last = 0.9 * max(sizes), len(sizes) - len(sizes) // 10
    return sizes[:last] + [size for size in sizes[last:] if size >= least]


def _cpu_rates(
    rank: int, found: Sequence[tuple[NodeRun, list[RankSample]]]
) -> tuple[float | None, float | None]:
    """Return the CPUs that a rank kept busy: on average from its start on, and at most between two looks."""
    used = seconds = 0.0
    rates: list[float] = []
    for run, samples in found:
        first = run.ranks_started.get(rank, run.start)
        last = samples[-1]
        if len(samples) > 1 and last.time - first >= 1:  # one look is at the start of its program
            used, seconds = used + last.cpu_s, seconds + last.time - first
        for before, after in pairwise(samples):
            # The mark of a look is whole seconds, so that short intervals say little.
            if after.time - before.time >= max(1, run.every // 2):
                rates.append(max(0.0, after.cpu_s - before.cpu_s) / (after.time - before.time))
    average = used / seconds if seconds else None
    return average, max([*rates, average or 0.0]) if rates else None


def others_busy(node: NodeUse, ranks: Sequence[RankUse]) -> float:
    """Return the CPUs of a node that processes of others kept busy; 0 where that is not known."""
    own = [rank.cpus_busy for rank in ranks if (rank.node, rank.index) == (node.node, node.index)]
    return (node.cpus_busy or 0.0) - sum(filter(None, own)) if own and None not in own else 0.0


def over_time(runs: Sequence[NodeRun]) -> list[TimePoint]:
    """Return the means of all nodes over time."""
    looks = [look.time for run in runs for look in run.looks]
    if len(looks) < 2 or max(looks) == min(looks):
        return []
    first = min(looks)
    every = max(run.every for run in runs) or 1
    span = max(every, -(-(max(looks) - first + 1) // _POINTS))
    values: dict[int, dict[str, list[float]]] = {}

    def add(time: int, name: str, value: float | None) -> None:
        if value is not None:
            values.setdefault((time - first) // span, {}).setdefault(name, []).append(value)

    for run in runs:
        for look in run.looks:
            add(look.time, "memory", look.memory)
        for before, after in intervals(run):
            ticks = after.cpu_all - before.cpu_all
            if ticks > 0:
                add(after.time, "cpus_busy", (after.cpu_busy - before.cpu_busy) / ticks * run.cpus)
            if _TOTAL in before.values and _TOTAL in after.values:
                joules = after.values[_TOTAL] - before.values[_TOTAL]
                add(after.time, "power_w", joules / (after.time - before.time))
        for samples in run.gpus.values():
            for gpu in samples:
                add(gpu.time, "gpu_busy", gpu.busy)
    return [
        TimePoint(
            second=number * span,
            cpus_busy=rounded(mean(found.get("cpus_busy", ()))),
            memory=rounded(mean(found.get("memory", ())), 0),
            gpu_busy=rounded(mean(found.get("gpu_busy", ())), 1),
            power_w=rounded(mean(found.get("power_w", ())), 1),
        )
        for number, found in sorted(values.items())
    ]
