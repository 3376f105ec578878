"""The JSON documents that ``hpclaunch topology`` prints; schemas: docs/reference/json."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from typing import Literal

import msgspec

from hpclaunch.json_document import Document
from hpclaunch.topology.node_topology import Core


class ListedRank(msgspec.Struct, frozen=True, kw_only=True):
    """The CPUs that one entry of a hand-written list names."""

    local_rank: int
    cpus: tuple[int, ...]
    cpu_list: str
    gpus: tuple[int, ...]
    numa: tuple[int, ...]
    l3: tuple[int, ...]
    nic: str | None


class RankDocument(ListedRank, frozen=True, kw_only=True):
    """The cores, memory and GPUs of one local rank."""

    cpu_mask: str
    gpu_bus_ids: tuple[str | None, ...]


class NumaNodeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One NUMA node."""

    id: int
    cpus: str
    memory_bytes: int | None


class GpuDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as the runtime numbers it."""

    index: int
    numa: int | None
    cpus: str | None
    bus_id: str | None
    model: str | None
    uuid: str | None


class NicDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One network interface of the high-speed network."""

    name: str
    numa: int | None
    cpus: str | None
    bus_id: str | None


class NodeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One node; what no source states is null or empty."""

    cores: tuple[Core, ...]
    numa_nodes: tuple[NumaNodeDocument, ...]
    gpus: tuple[GpuDocument, ...]
    nics: tuple[NicDocument, ...]
    reserved: str
    allowed: str | None


class TopologyDocument(Document, frozen=True, kw_only=True):
    """A node and the binding of its ranks."""

    tasks_per_node: int
    ranks: tuple[RankDocument, ...]
    map_cpu: str | None
    mask_cpu: str | None
    node: NodeDocument
    sources: tuple[str, ...]
    notes: tuple[str, ...]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One error of a hand-written list."""

    rank: int | None
    problem: str
    message: str
    remedy: str


class ListDocument(Document, frozen=True, kw_only=True):
    """The verdict on a hand-written list of masks or CPU numbers."""

    right: bool
    kind: Literal["mask", "map"]
    ranks: tuple[ListedRank, ...]
    findings: tuple[Finding, ...]
