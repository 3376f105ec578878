"""NodeTopology: cores, NUMA nodes, L3 groups, GPUs and NICs of one compute node.

Plain data. What no source states is None or empty; nothing is guessed. `Partial` has the statements of one
source, before sources are joined.
"""

from collections.abc import Mapping

import msgspec

from hpclaunch.cpuset import CpuSet
from hpclaunch.topology.tool_text import Line, numa_id


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


class GpuFact(Gpu, frozen=True, kw_only=True):
    """One GPU as a source shows it; whether its number is the runtime's is ``Partial.gpu_order``."""

    numa_candidates: frozenset[int] = frozenset()
    memory_numa: int | None = None
    cpus_text: str | None = None
    device: int | None = None


class Partial(msgspec.Struct, frozen=True, kw_only=True):
    """One source's statements. None: it does not state this; empty: it states that there is none."""

    kind: str
    origin: str
    cores: tuple[Core, ...] | None = None
    online: CpuSet | None = None
    cpu_count: int | None = None
    threads_per_core: int | None = None
    cores_per_socket: int | None = None
    sockets: int | None = None
    architecture: str | None = None
    virtual: bool = False
    l3_instances: int | None = None
    numa_nodes: tuple[NumaNode, ...] | None = None
    numa_count: int | None = None
    gpus: tuple[GpuFact, ...] | None = None
    gpu_vendor: str | None = None
    gpu_order: bool = True
    nics: tuple[Nic, ...] | None = None
    hwloc_order: tuple[int, ...] = ()
    allowed: CpuSet | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Kind and origin, as notes and errors name this source."""
        return f"{self.kind.replace('_', '-')} ({self.origin})"


def settle_numa(
    values: Mapping[str, Line], columns: tuple[str, str], gpu: str, notes: list[str]
) -> int | None:
    """Return a GPU's NUMA node, None where it is unknown or the columns contradict each other.

    Of ``columns`` the first is "Numa Node" (the driver's
    topology), the second "Numa Affinity" (/sys numa_node). Where that is unknown (-1), the first is only
    the driver's default of 0. Both columns are known to be wrong at once on partitioned MI300A (ROCm 6.1.0
    release notes), so a contradiction is noted and left unknown.
    """
    node, affinity = (numa_id(values[key]) if key in values else None for key in columns)
    if columns[1] in values and affinity is None:
        notes.append(f"{gpu}: the kernel does not know its NUMA node (affinity -1 or N/A)")
        return None
    if numa_differs(node, affinity):
        notes.append(f"{gpu}: NUMA node {node} but NUMA affinity {affinity}; it stays unknown")
        return None
    return affinity if node is None else node
