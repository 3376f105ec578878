"""One source's statements about a node, before sources are joined: nothing guessed, nothing derived."""

from collections.abc import Mapping

import msgspec

from hpclaunch.cpuset import CpuSet
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NumaNode, numa_differs
from hpclaunch.topology.tool_text import Line, numa_id


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
