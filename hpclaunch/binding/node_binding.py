"""The request for a binding, the binding, and where the CPUs of a node are."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.text_table import text_table
from hpclaunch.topology.node_topology import Gpu, NodeTopology

Order = Literal["gpu", "numa"]


class BindingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How the ranks of one node are to be bound."""

    tasks_per_node: int
    cpus_per_task: int | None = None
    gpus_per_task: int | None = None
    threads_per_core: int = 1
    order: Order = "gpu"
    share_cores: bool = False


class RankBinding(msgspec.Struct, frozen=True, kw_only=True):
    """The cores, memory and GPUs of one local rank."""

    local_rank: int
    cpus: tuple[int, ...]
    gpus: tuple[int, ...] = ()
    numa: tuple[int, ...] = ()
    l3: tuple[int, ...] = ()
    nic: str | None = None


class NodeBinding(msgspec.Struct, frozen=True, kw_only=True):
    """The binding of one node: one entry per local rank, in order."""

    ranks: tuple[RankBinding, ...]
    notes: tuple[str, ...] = ()


def rank_table(
    ranks: Sequence[RankBinding], heading: str, last_column: Sequence[str], width: int | None = None
) -> str:
    """Return one line per rank, ``-`` for nothing or unknown; ``last_column`` has one cell per rank."""
    rows = [
        (
            str(rank.local_rank),
            format_cpu_list(rank.cpus) or "-",
            format_cpu_list(rank.numa) or "-",
            format_cpu_list(rank.l3) or "-",
            ",".join(map(str, rank.gpus)) or "-",
            last,
        )
        for rank, last in zip(ranks, last_column, strict=True)
    ]
    return text_table(rows, ("rank", "CPUs", "NUMA", "L3", "GPU", heading), width=width, drop=("L3", "NUMA"))


class Locality:
    """Look-ups in one node; each takes time in proportion to the CPUs that it is called with."""

    def __init__(self, topology: NodeTopology) -> None:
        self.topology = topology
        self.cpus = topology.cpus
        self.granted = self.cpus if topology.allowed is None else topology.allowed
        self.usable = topology.usable
        self._core_of = {cpu: at for at, core in enumerate(topology.cores) for cpu in core.cpus}

    def cores(self, cpus: Iterable[int]) -> list[int]:
        """Return the indices of the cores that CPUs belong to; CPUs that do not exist have none."""
        return sorted({self._core_of[cpu] for cpu in cpus if cpu in self._core_of})

    def numa(self, cpus: Iterable[int]) -> tuple[int, ...]:
        """Return the NUMA nodes of CPUs, those known, ascending."""
        nodes = {self.topology.cores[at].numa for at in self.cores(cpus)}
        return tuple(sorted(node for node in nodes if node is not None))

    def l3(self, cpus: Iterable[int]) -> tuple[int, ...]:
        """Return the L3 groups of CPUs, those known, ascending."""
        groups = {self.topology.cores[at].l3 for at in self.cores(cpus)}
        return tuple(sorted(group for group in groups if group is not None))

    def is_near(self, gpu: Gpu, cpus: Iterable[int]) -> bool:
        """Tell whether CPUs are near a GPU, as far as is known; a GPU of unknown place is near all CPUs."""
        cpus = frozenset(cpus)
        if gpu.cpus and gpu.cpus & self.usable:
            return not gpu.cpus.isdisjoint(cpus)
        nodes = self.numa(cpus)
        return gpu.numa is None or not nodes or gpu.numa in nodes


def cpus_in_words(cpus: Iterable[int]) -> str:
    """Write "CPU 0" or "CPUs 0-3"."""
    listed = format_cpu_list(cpus)
    return f"CPU {listed}" if listed.isdigit() else f"CPUs {listed}"


T = TypeVar("T")


def idle_note(gpus: Iterable[int], shares: Iterable[Sequence[int]]) -> tuple[str, ...]:
    """Return the note on the GPUs of a node that no rank has; nothing where each has one."""
    idle = sorted({*gpus}.difference(*shares))
    return (f"{counted(len(idle), 'GPU stays', 'GPUs stay')} idle: {format_cpu_list(idle)}",) if idle else ()


def share_gpus(gpus: Sequence[T], tasks: int, each: int | None) -> list[tuple[T, ...]]:
    """Return each rank's GPUs: floor(rG/T) to floor((r+1)G/T)-1, or floor(rG/T) with more ranks than GPUs.

    So every GPU has a rank, and neighbours share one where they must. ``each`` overrides this: rank r gets
    the GPUs rN to rN+N-1. Raises BadInputError where there are too few.
    """
    count = len(gpus)
    if each is None:
        least = 1 if tasks > count else 0
        cuts = [rank * count // tasks for rank in range(tasks + 1)]
        return [tuple(gpus[cuts[rank] : max(cuts[rank + 1], cuts[rank] + least)]) for rank in range(tasks)]
    if tasks * each > count:
        raise BadInputError(
            f"{counted(tasks, 'rank')} of {counted(each, 'GPU')} need {tasks * each}; this node has {count}",
            "omit gpus_per_task to let ranks share GPUs" if count else None,
        )
    return [tuple(gpus[rank * each : (rank + 1) * each]) for rank in range(tasks)]
