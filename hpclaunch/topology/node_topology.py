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


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as the runtime numbers it; on MI250X each GCD is one, with MIG each instance."""

    index: int
    numa: int | None = None
    cpus: CpuSet | None = None
    """CPUs local to it, where a source states more than its NUMA node (/sys local_cpulist, hwloc)."""
    bus_id: str | None = None
    """PCI address, lower case, such as 0000:c1:00.0: the only name that is the same inside every job."""
    model: str | None = None
    vendor: str | None = None
    """NVIDIA, AMD or Intel."""
    uuid: str | None = None
    """NVIDIA's name of it; CUDA_VISIBLE_DEVICES takes MIG instances by nothing else."""

    @property
    def visible_name(self) -> str:
        """The name that the variables of visible GPUs take: the number, or the UUID of a MIG instance."""
        return self.uuid if self.uuid and self.uuid.startswith("MIG-") else str(self.index)


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """One network interface of the high-speed network."""

    name: str
    numa: int | None = None
    cpus: CpuSet | None = None
    bus_id: str | None = None


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
    """CPUs that the site reserves for the system (all threads of a reserved core)."""
    allowed: CpuSet | None = None
    """CPUs granted to this process (cgroup, sched_getaffinity); None: unknown, all count as granted."""
    hwloc_order: tuple[int, ...] = ()
    """First CPU of each core in the order of hwloc's logical numbers; empty where hwloc was not read."""
    sources: tuple[str, ...] = ()
    """The sources that were read, in order."""
    notes: tuple[str, ...] = ()
    """Contradictions between sources and facts that are unknown, as sentences."""

    @property
    def cpus(self) -> CpuSet:
        """All online CPUs."""
        return frozenset(cpu for core in self.cores for cpu in core.cpus)

    @property
    def usable(self) -> CpuSet:
        """Online CPUs that are granted and not reserved."""
        granted = self.cpus if self.allowed is None else self.cpus & self.allowed
        return granted - self.reserved
