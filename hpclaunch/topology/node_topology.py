"""NodeTopology: cores, NUMA nodes, L3 groups, GPUs and NICs of one compute node.

Plain data. What no source states is None or empty; nothing is guessed.
"""

import msgspec

from hpclaunch.cpuset import CpuSet


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """One physical core."""

    cpus: tuple[int, ...]
    numa: int | None = None
    l3: int | None = None
    socket: int | None = None


class NumaNode(msgspec.Struct, frozen=True, kw_only=True):
    """One NUMA node; ``cpus`` is empty for memory-only nodes (GPU memory on GH200, HBM on Xeon Max)."""

    id: int
    cpus: CpuSet = frozenset()
    memory_bytes: int | None = None


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a device in its node."""

    numa: int | None = None
    cpus: CpuSet | None = None
    bus_id: str | None = None


class Gpu(Device, frozen=True, kw_only=True):
    """One GPU as the runtime numbers it; on MI250X each GCD is one, with MIG each instance."""

    index: int
    model: str | None = None
    vendor: str | None = None
    uuid: str | None = None

    @property
    def visible_name(self) -> str:
        """The name that the variables of visible GPUs take: the number, or the UUID of a MIG instance."""
        return self.uuid if self.uuid and self.uuid.startswith("MIG-") else str(self.index)


class Nic(Device, frozen=True, kw_only=True):
    """One network interface of the high-speed network."""

    name: str


def numa_differs(one: int | None, other: int | None) -> bool:
    """Tell whether two statements name different NUMA nodes; an unknown node differs from none."""
    return one is not None and other is not None and one != other


class NodeTopology(msgspec.Struct, frozen=True, kw_only=True):
    """One node. ``cores`` holds the online cores in ascending order of their first CPU."""

    cores: tuple[Core, ...]
    numa_nodes: tuple[NumaNode, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    nics: tuple[Nic, ...] = ()
    reserved: CpuSet = frozenset()
    allowed: CpuSet | None = None
    hwloc_order: tuple[int, ...] = ()
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cpus(self) -> CpuSet:
        """All online CPUs."""
        return frozenset(cpu for core in self.cores for cpu in core.cpus)

    @property
    def usable(self) -> CpuSet:
        """Online CPUs that are granted and not reserved."""
        granted = self.cpus if self.allowed is None else self.cpus & self.allowed
        return granted - self.reserved
