"""What a site profile adds to a measured node: only what the sources cannot know."""

from collections.abc import Iterable

import msgspec

from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.plural import counted
from hpclaunch.topology.derive import number_l3
from hpclaunch.topology.node_topology import Core, Gpu, NodeTopology, numa_differs


def apply_site(topology: NodeTopology, site_node: NodeTopology) -> NodeTopology:
    """Return ``topology`` with the reserved cores of ``site_node`` and what its sources do not state.

    From the profile come: reserved CPUs always; cores, NUMA nodes and NICs where no source lists any; L3
    groups where no source states them; NUMA node and CPUs of a GPU where unknown. Where both know something,
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
    theirs, mine = _numa_of_cpus(site.cores), _numa_of_cpus(topology.cores)
    if not theirs or not mine:
        return True
    moved = sorted(cpu for cpu in mine.keys() & theirs.keys() if numa_differs(mine[cpu], theirs[cpu]))
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


def _numa_of_cpus(cores: tuple[Core, ...]) -> dict[int, int | None]:
    return {cpu: core.numa for core in cores for cpu in core.cpus}


def _with_l3(cores: tuple[Core, ...], site: NodeTopology, notes: list[str]) -> tuple[Core, ...]:
    """Add L3 groups where no core has one; note where both know and group the cores differently."""
    l3_of = {cpu: core.l3 for core in site.cores for cpu in core.cpus}
    site_cores = [msgspec.structs.replace(core, l3=l3_of.get(core.cpus[0])) for core in cores]
    if _knows_l3(cores):
        if _knows_l3(site.cores) and _l3_groups(cores) != _l3_groups(site_cores):
            notes.append("the L3 groups differ from the site profile's; those of this node are used")
        return cores
    if not _knows_l3(site_cores):
        return cores
    notes.append("L3 groups are the site profile's: no source states them")
    return number_l3(site_cores)


def _knows_l3(cores: Iterable[Core]) -> bool:
    return any(core.l3 is not None for core in cores)


def _l3_groups(cores: Iterable[Core]) -> set[CpuSet]:
    """Return the cores' first CPUs grouped by L3."""
    groups: dict[int | None, set[int]] = {}
    for core in cores:
        groups.setdefault(core.l3, set()).add(core.cpus[0])
    return {frozenset(group) for group in groups.values()}


def _with_gpu_facts(topology: NodeTopology, site: NodeTopology, notes: list[str]) -> tuple[Gpu, ...]:
    """Add NUMA node and CPUs of GPUs where unknown, matched by PCI address, else by number and count."""
    if not site.gpus:
        return topology.gpus
    if not topology.gpus:
        notes.append(f"the site profile has {counted(len(site.gpus), 'GPU')}, no source shows any")
        return ()
    if len(site.gpus) != len(topology.gpus):
        count = counted(len(site.gpus), "GPU")
        notes.append(f"the site profile has {count}, this node has {len(topology.gpus)}")
    matches = _matches(topology.gpus, site.gpus)
    return tuple(
        _completed(gpu, match, notes) if match else gpu
        for gpu, match in zip(topology.gpus, matches, strict=True)
    )


def _matches(gpus: tuple[Gpu, ...], site_gpus: tuple[Gpu, ...]) -> list[Gpu | None]:
    """Return the profile's GPU for each GPU, None where none matches."""
    by_bus = {gpu.bus_id: gpu for gpu in site_gpus if gpu.bus_id}
    by_index = {gpu.index: gpu for gpu in site_gpus} if len(gpus) == len(site_gpus) else {}
    return [by_bus.get(gpu.bus_id) if gpu.bus_id and by_bus else by_index.get(gpu.index) for gpu in gpus]


def _completed(gpu: Gpu, site_gpu: Gpu, notes: list[str]) -> Gpu:
    """Fill one GPU's unknowns from the profile, unless the two name different NUMA nodes."""
    if numa_differs(gpu.numa, site_gpu.numa):
        notes.append(
            f"GPU {gpu.index} is on NUMA node {gpu.numa} here, on {site_gpu.numa} in the site profile"
        )
        return gpu
    if gpu.cpus is not None and site_gpu.cpus is not None and gpu.cpus != site_gpu.cpus:
        notes.append(
            f"GPU {gpu.index} is near CPUs {format_cpu_list(gpu.cpus)} here, "
            f"near {format_cpu_list(site_gpu.cpus)} in the site profile"
        )
    if gpu.numa is None and site_gpu.numa is not None:
        notes.append(f"the NUMA node of GPU {gpu.index} is the site profile's: no source states it")
    return msgspec.structs.replace(
        gpu,
        numa=site_gpu.numa if gpu.numa is None else gpu.numa,
        cpus=site_gpu.cpus if gpu.cpus is None else gpu.cpus,
        model=gpu.model or site_gpu.model,
    )


def _reserved(cores: tuple[Core, ...], site: NodeTopology, notes: list[str]) -> CpuSet:
    """Return all threads of the reserved cores that this node has."""
    present = frozenset(cpu for core in cores for cpu in core.cpus)
    here = frozenset(cpu for core in cores if site.reserved.intersection(core.cpus) for cpu in core.cpus)
    if lacking := site.reserved - present:
        notes.append(f"the site reserves CPUs {format_cpu_list(lacking)}, which are not here")
    return here
