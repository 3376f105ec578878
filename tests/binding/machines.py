"""Nodes to bind on: a few known ones, and a strategy that generates any."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import strategies as st

from hpclaunch.binding.compute import bind
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NodeTopology, NumaNode


def machine(
    cores_of_numa: Sequence[int],
    *,
    threads: int = 1,
    adjacent: bool = False,
    l3_size: int | None = None,
    gpu_numa: Sequence[int | None] = (),
    reserved_cores: Sequence[int] = (),
) -> NodeTopology:
    """Build a node: cores in blocks by NUMA node, L3 groups of ``l3_size`` cores inside each.

    Thread t of core c is CPU c + t x cores, or c x threads + t where ``adjacent``.
    """
    total = sum(cores_of_numa)
    cores: list[Core] = []
    l3_start = 0
    for numa, count in enumerate(cores_of_numa):
        for place in range(count):
            c = len(cores)
            cpus = tuple(c * threads + t if adjacent else c + t * total for t in range(threads))
            l3 = None if l3_size is None else l3_start + place // l3_size
            cores.append(Core(cpus=cpus, numa=numa, l3=l3, socket=0))
        l3_start += -(-count // l3_size) if l3_size else 0
    nodes = tuple(
        NumaNode(id=numa, cpus=frozenset(cpu for core in cores if core.numa == numa for cpu in core.cpus))
        for numa in range(len(cores_of_numa))
    )
    return NodeTopology(
        cores=tuple(cores),
        numa_nodes=nodes,
        gpus=tuple(Gpu(index=index, numa=numa) for index, numa in enumerate(gpu_numa)),
        reserved=frozenset(cpu for c in reserved_cores for cpu in cores[c].cpus),
    )


def lumi_like(*, l3_known: bool = True) -> NodeTopology:
    """Four NUMA nodes of 16 cores, two GPUs each, the first core of each L3 group reserved."""
    return machine(
        [16] * 4,
        threads=2,
        l3_size=8 if l3_known else None,
        gpu_numa=(3, 3, 1, 1, 0, 0, 2, 2),
        reserved_cores=range(0, 64, 8),
    )


def with_near_cpus(topology: NodeTopology) -> NodeTopology:
    """Give each GPU an L3 group as its local CPUs: the GPUs of a NUMA node get its groups in order."""
    taken: dict[int | None, int] = {}
    gpus = []
    for gpu in topology.gpus:
        groups = list(dict.fromkeys(core.l3 for core in topology.cores if core.numa == gpu.numa))
        place = taken.get(gpu.numa, 0)
        taken[gpu.numa] = place + 1
        if not groups:
            gpus.append(gpu)
            continue
        group = groups[place % len(groups)]
        cpus = frozenset(cpu for core in topology.cores if core.l3 == group for cpu in core.cpus)
        gpus.append(msgspec.structs.replace(gpu, cpus=cpus))
    return msgspec.structs.replace(topology, gpus=tuple(gpus))


@st.composite
def machines(draw: st.DrawFn) -> NodeTopology:
    """Generate nodes: uneven, cut by a cpuset, reserved cores, GPUs of unknown place, memory-only nodes."""
    cores_of_numa = draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    total = sum(cores_of_numa)
    memory_only = len(cores_of_numa)
    places = st.sampled_from([None, *range(memory_only + 1)])
    topology = machine(
        cores_of_numa,
        threads=draw(st.sampled_from([1, 2, 4, 8])),
        adjacent=draw(st.booleans()),
        l3_size=draw(st.sampled_from([None, 1, 3, 4, 8])),
        gpu_numa=draw(st.lists(places, max_size=8)),
        reserved_cores=draw(st.lists(st.integers(0, total - 1), max_size=3, unique=True)),
    )
    if draw(st.booleans()) and all(core.l3 is not None for core in topology.cores):
        topology = with_near_cpus(topology)
    allowed = None
    if draw(st.booleans()):
        allowed = draw(st.frozensets(st.sampled_from(sorted(topology.cpus)), min_size=1))
    nics = tuple(
        Nic(name=f"hsn{index}", numa=numa) for index, numa in enumerate(draw(st.lists(places, max_size=4)))
    )
    topology = msgspec.structs.replace(
        topology,
        allowed=allowed,
        nics=nics,
        numa_nodes=(*topology.numa_nodes, NumaNode(id=memory_only)),
    )
    return (
        topology if topology.usable else msgspec.structs.replace(topology, allowed=None, reserved=frozenset())
    )


def usable_cores(topology: NodeTopology) -> list[Core]:
    """Return the cores a rank may get: granted, and no thread of them reserved."""
    return [
        core
        for core in topology.cores
        if topology.usable.intersection(core.cpus) and not topology.reserved.intersection(core.cpus)
    ]


def bound(topology: NodeTopology, tasks: int, **options: object) -> NodeBinding:
    return bind(topology, msgspec.convert({"tasks_per_node": tasks, **options}, BindingRequest))


def lists(binding: NodeBinding) -> list[str]:
    return [format_cpu_list(rank.cpus) for rank in binding.ranks]
