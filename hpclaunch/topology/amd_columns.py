"""AMD's two NUMA columns: the driver's node and the kernel's affinity, joined into one answer."""

from __future__ import annotations

from hpclaunch.topology.node_topology import numa_differs


def settle_numa(
    node: int | None, affinity: int | None, *, asked: bool, gpu: str, notes: list[str]
) -> int | None:
    """Return a GPU's NUMA node, None where it is unknown or the columns contradict each other.

    ``node`` is "Numa Node" (the driver's topology), ``affinity`` "Numa Affinity" (/sys numa_node), ``asked``
    tells whether the second column is there at all. Where it is there and unknown (-1), the first is only the
    driver's default of 0. Both columns are known to be wrong at once on partitioned MI300A (ROCm 6.1.0
    release notes), so a contradiction is noted and left unknown.
    """
    if asked and affinity is None:
        notes.append(f"{gpu}: the kernel knows no NUMA node (affinity -1 or N/A)")
        return None
    if numa_differs(node, affinity):
        notes.append(f"{gpu}: NUMA node {node} but NUMA affinity {affinity}; left unknown")
        return None
    return affinity if node is None else node
