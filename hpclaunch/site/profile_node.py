"""The topology of a site's node, from its profile."""

from collections.abc import Iterable
from functools import lru_cache

from hpclaunch.cpuset import CpuSet, parse_cpu_list
from hpclaunch.site.schema import Node, SiteGpu, SiteProfile
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NodeTopology, NumaNode

_GIB = 1 << 30

VISIBLE = {"amd": "ROCR_VISIBLE_DEVICES", "nvidia": "CUDA_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}
"""Vendor of GPUs -> the variable that shows some of them to a process."""


def site_topology(profile: SiteProfile) -> NodeTopology | None:
    """Return the node of a profile, all threads of reserved cores in ``reserved``; None: it has none."""
    return None if profile.node is None else _topology(profile.node, profile.name)


@lru_cache(maxsize=64)  # lint needs it once per script, port several times
def _topology(node: Node, site: str) -> NodeTopology:
    return NodeTopology(
        cores=_cores(node),
        numa_nodes=tuple(
            NumaNode(
                id=domain.id,
                cpus=_threads(node, parse_cpu_list(domain.cores)),
                memory_bytes=None if domain.memory_gib is None else domain.memory_gib * _GIB,
            )
            for domain in sorted(node.numa, key=lambda domain: domain.id)
        ),
        gpus=tuple(_gpu(node, index, gpu) for index, gpu in enumerate(node.gpus)),
        nics=tuple(Nic(name=nic.name, numa=nic.numa) for nic in node.nics),
        reserved=_threads(node, parse_cpu_list(node.reserved_cores)),
        sources=(f"site profile {site}",),
    )


def _cores(node: Node) -> tuple[Core, ...]:
    numa_of = {core: domain.id for domain in node.numa for core in parse_cpu_list(domain.cores)}
    l3_of = {core: number for number, group in enumerate(node.l3_groups) for core in parse_cpu_list(group)}
    cores_per_socket = node.cores // node.sockets
    return tuple(
        Core(
            cpus=threads_of(node, core),
            numa=numa_of.get(core),
            l3=l3_of.get(core),
            socket=core // cores_per_socket,
        )
        for core in range(node.cores)
    )


def _threads(node: Node, cores: Iterable[int]) -> CpuSet:
    return frozenset(cpu for core in cores for cpu in threads_of(node, core))


def threads_of(node: Node, core: int) -> tuple[int, ...]:
    """Return the CPUs of one core, the first thread first."""
    count = node.threads_per_core
    if node.numbering == "adjacent":
        return tuple(range(core * count, (core + 1) * count))
    return tuple(core + thread * node.cores for thread in range(count))


def _gpu(node: Node, index: int, gpu: SiteGpu) -> Gpu:
    near = None if gpu.cores is None else _threads(node, parse_cpu_list(gpu.cores))
    return Gpu(index=index, numa=gpu.numa, cpus=near, bus_id=gpu.bus_id, model=node.gpu_model)
