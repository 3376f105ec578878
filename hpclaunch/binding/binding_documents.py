"""The JSON documents that ``hpclaunch topology`` prints; schemas: docs/reference/json."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from typing import Literal

import msgspec

from hpclaunch.json_document import Document
from hpclaunch.topology.node_topology import Core


class RankDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The cores, memory and GPUs of one local rank."""

    local_rank: int
    cpus: tuple[int, ...]
    cpu_list: str
    """The same as the kernel writes it, such as ``1-7``."""
    cpu_mask: str
    """The same as a hexadecimal number."""
    gpus: tuple[int, ...]
    gpu_bus_ids: tuple[str | None, ...]
    """PCI address of each of these GPUs, null where unknown."""
    numa: tuple[int, ...]
    """NUMA nodes of its CPUs."""
    l3: tuple[int, ...]
    """L3 groups of its CPUs."""
    nic: str | None


class NumaNodeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One NUMA node."""

    id: int
    cpus: str
    """As the kernel writes a list; empty for memory without CPUs."""
    memory_bytes: int | None


class GpuDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as the runtime numbers it."""

    index: int
    numa: int | None
    cpus: str | None
    """CPUs local to it; null where unknown."""
    bus_id: str | None
    model: str | None
    uuid: str | None
    """NVIDIA's name of it, of a MIG instance too; null where unknown."""


class NicDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One network interface of the high-speed network."""

    name: str
    numa: int | None
    cpus: str | None
    """CPUs local to it; null where unknown."""
    bus_id: str | None


class NodeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One node; what no source states is null or empty."""

    cores: tuple[Core, ...]
    numa_nodes: tuple[NumaNodeDocument, ...]
    gpus: tuple[GpuDocument, ...]
    nics: tuple[NicDocument, ...]
    reserved: str
    """CPUs that the site reserves for the system."""
    allowed: str | None
    """CPUs granted to this process; null: all, or unknown."""


class TopologyDocument(Document, frozen=True, kw_only=True):
    """A node and the binding of its ranks."""

    tasks_per_node: int
    ranks: tuple[RankDocument, ...]
    map_cpu: str | None
    """Value of srun's ``--cpu-bind=map_cpu:``; null without a binding."""
    mask_cpu: str | None
    """Value of srun's ``--cpu-bind=mask_cpu:``; null without a binding."""
    node: NodeDocument
    sources: tuple[str, ...]
    """The sources that were read, in order."""
    notes: tuple[str, ...]


class ListedRank(msgspec.Struct, frozen=True, kw_only=True):
    """The CPUs that one entry of a hand-written list names."""

    local_rank: int
    cpus: tuple[int, ...]
    cpu_list: str
    gpus: tuple[int, ...]
    numa: tuple[int, ...]
    l3: tuple[int, ...]
    nic: str | None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One error of a hand-written list."""

    rank: int | None
    """null: the error concerns the whole list."""
    problem: str
    """One of: unparsable, empty, outside, reserved, not-granted, shared, crosses-numa, crosses-l3, wrong-gpu,
    count."""
    message: str
    remedy: str


class ListDocument(Document, frozen=True, kw_only=True):
    """The verdict on a hand-written list of masks or CPU numbers."""

    right: bool
    kind: Literal["mask", "map"]
    ranks: tuple[ListedRank, ...]
    findings: tuple[Finding, ...]


DOCUMENTS = {"topology": TopologyDocument, "topology-check": ListDocument}
"""Name of the schema -> its type."""
