"""What a site profile adds to a measured node: only what the sources cannot know."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.topology.node_topology import Core, Gpu, NodeTopology


def apply_site(topology: NodeTopology, site_node: NodeTopology) -> NodeTopology:
    """Return ``topology`` with the reserved cores of ``site_node`` and what its sources left open.

    From the profile come: reserved CPUs always; cores, NUMA nodes and NICs where no source lists any; L3
    groups where no source tells them; NUMA node and CPUs of a GPU where unknown. Where both know something,
    the sources win and the difference is noted. L3 groups and GPUs are taken only from a profile that agrees
    with the sources about the NUMA nodes: otherwise it describes another machine.
    """
    notes = list(topology.notes)
    cores, nodes = topology.cores, topology.numa_nodes
    if not cores and site_node.cores:
        cores = site_node.cores
        notes.append("cores are the site profile's: no source lists them")
    if not nodes and site_node.numa_nodes and not topology.cores:
        nodes = site_node.numa_nodes
        notes.append("NUMA nodes are the site profile's: no source lists them")
    same = _same_machine(topology, site_node, notes)
    if same:
        cores = _with_l3(cores, site_node, notes)
    return msgspec.structs.replace(
        topology,
        cores=cores,
        numa_nodes=nodes,
        gpus=_with_gpu_facts(topology, site_node, notes) if same else topology.gpus,
        nics=topology.nics or (site_node.nics if same else ()),
        reserved=topology.reserved | _reserved(cores, site_node, notes),
        notes=tuple(dict.fromkeys(notes)),
    )


def _same_machine(topology: NodeTopology, site: NodeTopology, notes: list[str]) -> bool:
    """Compare CPUs and their NUMA nodes; a CPU in another node means another machine or firmware mode."""
    theirs = {cpu: core.numa for core in site.cores for cpu in core.cpus}
    mine = {cpu: core.numa for core in topology.cores for cpu in core.cpus}
    if not theirs or not mine:
        return True
    moved = [cpu for cpu in mine.keys() & theirs.keys() if None not in (mine[cpu], theirs[cpu])]
    moved = sorted(cpu for cpu in moved if mine[cpu] != theirs[cpu])
    if moved:
        notes.append(
            f"CPU {moved[0]} is on NUMA node {mine[moved[0]]} here, on {theirs[moved[0]]} in the site "
            f"profile ({len(moved)} CPUs differ); of the profile only the reserved cores are used"
        )
        return False
    if extra := mine.keys() - theirs.keys():
        notes.append(f"CPUs {format_cpu_list(extra)} are here, but not in the site profile")
    if lacking := theirs.keys() - mine.keys():
        notes.append(f"CPUs {format_cpu_list(lacking)} are in the site profile, but not here")
    return True


def _with_l3(cores: tuple[Core, ...], site: NodeTopology, notes: list[str]) -> tuple[Core, ...]:
    """Add L3 groups where no core has one; note where both know and group the cores differently."""
    theirs = {cpu: core.l3 for core in site.cores for cpu in core.cpus}
    if any(core.l3 is not None for core in cores):
        if _groups(cores, {}) != _groups(cores, theirs) and any(l3 is not None for l3 in theirs.values()):
            notes.append("the L3 groups differ from the site profile's; those of this node are used")
        return cores
    found = [theirs.get(core.cpus[0]) for core in cores]
    if all(l3 is None for l3 in found):
        return cores
    notes.append("L3 groups are the site profile's: no source tells them")
    order = {l3: i for i, l3 in enumerate(dict.fromkeys(l3 for l3 in found if l3 is not None))}
    return tuple(
        msgspec.structs.replace(core, l3=None if l3 is None else order[l3])
        for core, l3 in zip(cores, found, strict=True)
    )


def _groups(cores: tuple[Core, ...], l3_of: Mapping[int, int | None]) -> set[CpuSet]:
    """Return the cores' first CPUs grouped by L3, by their own numbers or by those of ``l3_of``."""
    groups: dict[int | None, set[int]] = {}
    for core in cores:
        groups.setdefault(l3_of.get(core.cpus[0]) if l3_of else core.l3, set()).add(core.cpus[0])
    return {frozenset(group) for group in groups.values()}


def _with_gpu_facts(topology: NodeTopology, site: NodeTopology, notes: list[str]) -> tuple[Gpu, ...]:
    """Add NUMA node and CPUs of GPUs where unknown, matched by PCI address, else by number and count."""
    if not site.gpus or not topology.gpus:
        if site.gpus:
            notes.append(f"the site profile has {len(site.gpus)} GPUs, no source shows any")
        return topology.gpus
    by_bus = {gpu.bus_id: gpu for gpu in site.gpus if gpu.bus_id}
    by_index = {gpu.index: gpu for gpu in site.gpus} if len(site.gpus) == len(topology.gpus) else {}
    if len(site.gpus) != len(topology.gpus):
        notes.append(f"the site profile has {len(site.gpus)} GPUs, here are {len(topology.gpus)}")
    joined = []
    for gpu in topology.gpus:
        twin = by_bus.get(gpu.bus_id) if gpu.bus_id and by_bus else by_index.get(gpu.index)
        joined.append(_with_twin(gpu, twin, notes) if twin else gpu)
    return tuple(joined)


def _with_twin(gpu: Gpu, twin: Gpu, notes: list[str]) -> Gpu:
    if None not in (gpu.numa, twin.numa) and gpu.numa != twin.numa:
        notes.append(f"GPU {gpu.index} is on NUMA node {gpu.numa} here, on {twin.numa} in the site profile")
        return gpu
    if gpu.cpus is not None and twin.cpus is not None and gpu.cpus != twin.cpus:
        notes.append(
            f"GPU {gpu.index} is near CPUs {format_cpu_list(gpu.cpus)} here, "
            f"near {format_cpu_list(twin.cpus)} in the site profile"
        )
    if gpu.numa is None and twin.numa is not None:
        notes.append(f"the NUMA node of GPU {gpu.index} is the site profile's: no source tells it")
    return msgspec.structs.replace(
        gpu,
        numa=twin.numa if gpu.numa is None else gpu.numa,
        cpus=twin.cpus if gpu.cpus is None else gpu.cpus,
        model=gpu.model or twin.model,
    )


def _reserved(cores: tuple[Core, ...], site: NodeTopology, notes: list[str]) -> CpuSet:
    """Return all threads of the reserved cores that this node has."""
    present = frozenset(cpu for core in cores for cpu in core.cpus)
    here = frozenset(cpu for core in cores if site.reserved.intersection(core.cpus) for cpu in core.cpus)
    if lacking := site.reserved - present:
        notes.append(f"the site reserves CPUs {format_cpu_list(lacking)}, which are not here")
    return here
