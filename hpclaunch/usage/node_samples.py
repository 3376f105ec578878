"""The files of the sampler, one per node: what CPU, memory, GPUs and energy counters showed over time. Pure.

Their form is in ``hpclaunch/remote/sampler.sh``. A file may be cut at any byte, and holds all runs of a job
that came back; lines that cannot be read are passed over and counted.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.topology.tool_text import bus_id

GIB = 1 << 30
TICKS_PER_S = 100
"""USER_HZ of /proc on x86-64, arm64 and ppc64le (man 5 proc)."""


@dataclass(frozen=True)
class NodeSample:
    """The node at one moment."""

    time: int
    cpu_busy: int
    """Ticks of all CPUs since the node's start."""
    cpu_all: int
    memory: int
    """Bytes in use on the node, by all that runs there."""
    values: dict[str, int]
    """``now``, ``peak``, ``limit`` (bytes) and ``used`` (us) of the cgroup; Cray's counters (J)."""
    rapl: dict[str, tuple[int, int]]
    """Zone -> microjoules and the value at which it begins again."""


@dataclass(frozen=True)
class RankSample:
    """The processes of a rank at one moment."""

    time: int
    cpu_s: float
    memory: int
    """Bytes, summed over its processes; what they share counts in each."""
    peak: int
    """Of its first process, by the kernel."""


@dataclass(frozen=True)
class GpuSample:
    """A GPU at one moment; None: the tool does not say."""

    time: int
    busy: float | None
    """Percent."""
    memory: int | None
    memory_of: int | None
    power_w: float | None


@dataclass
class NodeRun:
    """The samples of one sampler: a node during one run of the job."""

    node: str
    start: int
    every: int = 0
    cpus: int = 0
    memory_of: int = 0
    """Bytes."""
    own_cgroup: bool = False
    """The cgroup is the job's: its peak is that of the job on this node."""
    label: str = "0"
    """How often the job had come back."""
    end: int | None = None
    """When the sampler ended orderly; None: it was killed, or still runs."""
    ranks_started: dict[int, int] = field(default_factory=dict)
    looks: list[NodeSample] = field(default_factory=list)
    ranks: dict[int, list[RankSample]] = field(default_factory=dict)
    gpus: dict[str, list[GpuSample]] = field(default_factory=dict)
    """PCI address, or the number that the tool gives it -> its looks."""
    gpu_source: str = ""

    @property
    def last(self) -> int:
        """The time of the last thing that is known."""
        return max(self.end or 0, self.start, *(look.time for look in self.looks[-1:]))


@dataclass(frozen=True)
class NodeFile:
    """One file."""

    runs: tuple[NodeRun, ...]
    damaged: int
    """Lines that could not be read."""


def read_samples(node: str, text: str) -> NodeFile:
    """Read the file of a node."""
    runs: list[NodeRun] = []
    started: dict[int, int] = {}
    columns: list[str] = []
    damaged = 0
    for line in text.splitlines():
        words = line.split()
        try:
            if words[0] == "rank":
                rank, time = int(words[1]), int(words[3])
                # Ranks start before and after the sampler.
                (runs[-1].ranks_started if runs and time - runs[-1].start <= 60 else started)[rank] = time
            elif words[0] == "start":
                runs.append(_start(node, words, started))
                started, columns = {}, []
            elif runs:
                columns = _add(runs[-1], words, line, columns)
            else:
                damaged += 1
        except (ValueError, LookupError):
            damaged += 1
    return NodeFile(tuple(runs), damaged)


def _start(node: str, words: list[str], started: dict[int, int]) -> NodeRun:
    given = _pairs(words[2:])
    start = int(words[1])
    return NodeRun(
        node,
        start,
        every=int(given["every"]) if "every" in given else 0,
        cpus=int(given.get("cpus", 0)),
        memory_of=int(given.get("mem", 0)) * 1024,
        own_cgroup=given.get("cgroup") == "job",
        label=given.get("run", "0"),
        ranks_started={rank: time for rank, time in started.items() if start - time <= 300},
    )


def _add(run: NodeRun, words: list[str], line: str, columns: list[str]) -> list[str]:
    """Add one line to a run; return the columns of the tool's table."""
    kind, time = words[0], int(words[1])
    if kind == "node":
        run.looks.append(_node(time, _pairs(words[2:])))
    elif kind == "proc":
        rank, ticks, memory, peak = (int(text) for text in words[2:6])
        run.ranks.setdefault(rank, []).append(
            RankSample(time, ticks / TICKS_PER_S, memory * 1024, peak * 1024)
        )
    elif kind == "gpu":
        address, busy, used, of, power = words[2:7]
        watts = _number(power)
        sample = GpuSample(
            time, _number(busy), _whole(used), _whole(of), None if watts is None else watts / 1e6
        )
        _add_gpu(run, "amdgpu", address, sample)
    elif kind == "end":
        run.end = time
    elif kind in _TOOLS:
        cells = next(csv.reader([line.split(" ", 2)[2]], skipinitialspace=True))
        if kind != "nvidia-smi" and {"gpu", "device"} & set(cells):
            return cells
        if kind != "nvidia-smi" and (not columns or len(cells) != len(columns)):
            return columns  # what the tool says before its table
        row = dict(zip(columns or _NVIDIA_SMI, cells, strict=True))
        if not row.get("device", "card").startswith("card"):
            raise ValueError(row["device"])
        _add_gpu(run, kind, *_TOOLS[kind].read(time, row))
    else:
        raise ValueError(kind)
    return columns


def _add_gpu(run: NodeRun, source: str, name: str, sample: GpuSample) -> None:
    run.gpu_source = source
    run.gpus.setdefault(bus_id(name) or name, []).append(sample)


def _node(time: int, given: dict[str, str]) -> NodeSample:
    busy, _, total = given.pop("cpu").partition("/")
    memory = int(given.pop("mem")) * 1024
    rapl = {name: value.split("/") for name, value in given.items() if "/" in value}
    return NodeSample(
        time,
        int(busy),
        int(total),
        memory,
        {name: int(value) for name, value in given.items() if value.isdigit()},
        {name: (int(value[0]), int(value[1])) for name, value in rapl.items()},
    )


def _pairs(words: Iterable[str]) -> dict[str, str]:
    return {name: value for name, mark, value in (word.partition("=") for word in words) if mark}


def _number(text: str | None) -> float | None:
    """Read a number, with its unit behind it where there is one; None: N/A and the like."""
    match = re.match(r"\s*(\d+(?:\.\d+)?)", text or "")
    return float(match[1]) if match else None


def _whole(text: str | None, unit: int = 1) -> int | None:
    number = _number(text)
    return None if number is None else int(number * unit)


class _Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a tool's table; of several (regular expressions) the first that holds something."""

    names: tuple[str, ...]
    busy: str
    used: str
    of: str
    power: str
    unit: int = 1 << 20
    """Bytes that memory is counted in."""

    def read(self, time: int, row: dict[str, str]) -> tuple[str, GpuSample]:
        """Return the name of a GPU and its sample."""
        power = next((text for name, text in row.items() if text and re.search(self.power, name)), None)
        sample = GpuSample(
            time,
            _number(row.get(self.busy)),
            _whole(row.get(self.used), self.unit),
            _whole(row.get(self.of), self.unit),
            _number(power),
        )
        return next(filter(None, map(row.get, self.names)), ""), sample


_NVIDIA_SMI = ("pci.bus_id", "utilization.gpu", "memory.used", "memory.total", "power.draw")
"""What the sampler asks for (--query-gpu); no line with these names precedes the table."""
_TOOLS = msgspec.json.decode(text_beside(__file__, "gpu_tools.json"), type=dict[str, _Columns])


def intervals(run: NodeRun) -> Iterator[tuple[NodeSample, NodeSample]]:
    """Yield each pair of neighbouring looks between which time has passed."""
    for before, after in zip(run.looks, run.looks[1:], strict=False):
        if after.time > before.time:
            yield before, after
