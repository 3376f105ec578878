"""A node as one request sees it: which cores may be used, and where each of them is. Pure.

Here a core is its index in ``NodeTopology.cores``, and a *block* is a list of such indices in the order of
the machine: by socket, in it by NUMA node, in it by L3 group. A block holds the cores that may be used and
the reserved ones between them, which mark where slots begin.
"""

from collections.abc import Hashable, Iterable, Sequence

import msgspec

from hpclaunch.binding.node_binding import BindingRequest
from hpclaunch.topology.node_topology import Core, NodeTopology

Block = list[int]

SOCKET, NUMA, L3 = range(3)
"""The levels of a machine, from the largest parts to the smallest."""


class Machine(msgspec.Struct, frozen=True):
    """The node as this request sees it."""

    topology: NodeTopology
    request: BindingRequest
    threads: tuple[tuple[int, ...], ...]
    """CPUs to use on each core; empty: the core is reserved or not granted."""
    reserved: frozenset[int]
    numa: tuple[int | None, ...]
    part_of: tuple[tuple[int, ...], ...]
    """Per level the number of each core's part, counted in the order of the first cores; -1: unknown."""
    notes: list[str] = []

    @property
    def cores(self) -> tuple[Core, ...]:
        """All cores of the node."""
        return self.topology.cores

    @property
    def width(self) -> int:
        """Cores that a rank needs at least."""
        return self.request.cpus_per_task or 1

    def usable(self, block: Iterable[int]) -> Block:
        """Return the cores of a block that may be used."""
        return [core for core in block if self.threads[core]]

    def block(self) -> Block:
        """Return all cores that may be used, and the reserved ones."""
        places = sorted(zip(*self.part_of, range(len(self.cores)), strict=True))
        return [core for *_, core in places if self.threads[core] or core in self.reserved]

    def parts(self, block: Block, level: int) -> list[Block]:
        """Return the parts of a block that have a usable core; the block itself where they are unknown."""
        part_of = self.part_of[level]
        parts: dict[int, Block] = {}
        for core in block:
            parts.setdefault(part_of[core], []).append(core)
        if -1 in parts:
            return [block]
        return [part for part in parts.values() if any(self.threads[core] for core in part)] or [block]


def machine_for(topology: NodeTopology, request: BindingRequest) -> Machine:
    """Return the node as a request sees it."""
    usable = topology.usable
    numa_of_cpu = {cpu: node.id for node in reversed(topology.numa_nodes) for cpu in node.cpus}
    threads, reserved, numa = [], set(), []
    for index, core in enumerate(topology.cores):
        if topology.reserved.intersection(core.cpus):
            reserved.add(index)
        cpus = () if index in reserved else tuple(cpu for cpu in core.cpus if cpu in usable)
        threads.append(cpus[: max(request.threads_per_core, 1)])
        numa.append(core.numa if core.numa is not None else numa_of_cpu.get(core.cpus[0]))
    return Machine(
        topology, request, tuple(threads), frozenset(reserved), tuple(numa), _part_of(topology.cores, numa)
    )


def _part_of(cores: Sequence[Core], numa: Sequence[int | None]) -> tuple[tuple[int, ...], ...]:
    """Number each core's socket, NUMA node and L3 group; a part of a larger part that is split is split too.

    CPUs without a NUMA node on a node that has some (its firmware omits them) count as one more.
    """
    sockets = _numbered([core.socket for core in cores])
    nodes = _numbered(list(zip(sockets, numa, strict=True)))
    groups = _numbered(
        [None if core.l3 is None else (at, core.l3) for at, core in zip(nodes, cores, strict=True)]
    )
    return sockets, nodes, groups


def _numbered(names: Sequence[Hashable | None]) -> tuple[int, ...]:
    numbers: dict[Hashable | None, int] = {None: -1}
    return tuple(numbers.setdefault(name, len(numbers) - 1) for name in names)
