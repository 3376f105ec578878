"""AMD's two NUMA columns, the driver's node and the kernel's affinity, joined into one NUMA node."""

from hpclaunch.topology.node_topology import numa_differs


def settle_numa(
    node: int | None, affinity: int | None, *, has_affinity: bool, gpu: str, notes: list[str]
) -> int | None:
    """Return a GPU's NUMA node, None where it is unknown or the columns contradict each other.

    ``node`` is "Numa Node" (the driver's topology), ``affinity`` "Numa Affinity" (/sys numa_node),
    ``has_affinity`` whether the output has the second column. Where that is unknown (-1), the first is only
    the driver's default of 0. Both columns are known to be wrong at once on partitioned MI300A (ROCm 6.1.0
    release notes), so a contradiction is noted and left unknown.
    """
    if has_affinity and affinity is None:
        notes.append(f"{gpu}: the kernel does not know its NUMA node (affinity -1 or N/A)")
        return None
    if numa_differs(node, affinity):
        notes.append(f"{gpu}: NUMA node {node} but NUMA affinity {affinity}; it stays unknown")
        return None
    return affinity if node is None else node
