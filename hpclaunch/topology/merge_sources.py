"""Several sources become one NodeTopology.

Each fact is taken from the best source for it, and compared with the other sources. Small
differences (a part is hidden, a column is cut off) go to ``notes`` with both sources by name. Sources that
cannot describe one node are refused. Nothing is averaged and nothing is guessed. GPUs are matched by PCI
address, else by number.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.package_data import package_constants
from hpclaunch.topology.derive import l3_blocks, number_l3, pair_threads
from hpclaunch.topology.node_topology import Core, Gpu, GpuFact, NodeTopology, NumaNode, Partial, numa_differs
from hpclaunch.topology.source_kinds import SOURCE_KINDS

_WORD = package_constants("topology/forms.json", "merge_sources")
_NO_LSCPU = Partial(kind="lscpu", origin="")


def merge(partials: Sequence[Partial]) -> NodeTopology:
    """Join what several sources state about one node.

    What no source states stays None or empty, and ``notes`` mentions it. Raises BadInputError when nothing
    is given, or when two sources cannot be of the same node (other CPUs, a CPU in another NUMA node).
    """
    if not partials:
        raise BadInputError("no source of a topology", "give at least one file, such as --lscpu FILE")
    ranked = sorted(partials, key=lambda partial: SOURCE_KINDS[partial.kind].precedence)
    notes = [note for partial in partials for note in partial.notes]
    nodes = _numa_nodes(ranked, notes)
    cores = _cores(ranked, nodes, notes)
    nodes = _online_only(nodes, cores)
    gpus = merge_gpus(ranked, nodes, notes)
    nodes = _with_gpu_memory(nodes, ranked)
    _note_missing_nodes(ranked, nodes, notes)
    _note_unknowns(cores, nodes, notes)
    granted = [partial.allowed for partial in partials if partial.allowed is not None]
    return NodeTopology(
        cores=cores,
        numa_nodes=nodes,
        gpus=gpus,
        nics=_first(ranked, "nics"),
        hwloc_order=_first(ranked, "hwloc_order"),
        allowed=frozenset.intersection(*granted) if granted else None,
        sources=tuple(partial.name for partial in partials),
        notes=tuple(dict.fromkeys(notes)),
    )


def _first(ranked: Sequence[Partial], fact: str) -> tuple[Any, ...]:
    return next(filter(None, (getattr(partial, fact) for partial in ranked)), ())


def _numa_nodes(ranked: Sequence[Partial], notes: list[str]) -> tuple[NumaNode, ...]:
    """Return the nodes of the best source, with memory sizes and further nodes from the other sources."""
    stated = [(partial, _separate(partial, notes)) for partial in ranked if partial.numa_nodes]
    if not stated:
        return _from_gpu_columns(ranked, notes)
    best, nodes = stated[0]
    merged = {node.id: node for node in nodes}
    owner = {cpu: node.id for node in nodes for cpu in node.cpus}
    for other, theirs in stated[1:]:
        _enter_owners(owner, best, theirs, other)
        for node_id in _add_nodes(merged, theirs):
            notes.append(f"NUMA node {node_id} is in {other.name} but not in {best.name}")
    return tuple(merged[node_id] for node_id in sorted(merged))


def _enter_owners(owner: dict[int, int], best: Partial, nodes: Sequence[NumaNode], other: Partial) -> None:
    """Enter the node of each CPU into ``owner``; refuse a CPU that has another node there already."""
    for node in nodes:
        for cpu in sorted(node.cpus):
            if owner.setdefault(cpu, node.id) != node.id:
                places = f"puts CPU {cpu} on NUMA node {owner[cpu]}, {other.name} on {node.id}"
                raise BadInputError(f"{best.name} {places}", _WORD.one_node)


def _add_nodes(merged: dict[int, NumaNode], nodes: Sequence[NumaNode]) -> list[int]:
    """Add missing nodes and memory sizes; return the ids of the added nodes that have CPUs."""
    added = []
    for node in nodes:
        known = merged.get(node.id)
        if known is None:
            merged[node.id] = node
            if node.cpus:
                added.append(node.id)
        elif known.memory_bytes is None:
            merged[node.id] = msgspec.structs.replace(known, memory_bytes=node.memory_bytes)
    return added


def _separate(partial: Partial, notes: list[str]) -> tuple[NumaNode, ...]:
    """Assign each CPU to one node: the smallest that lists it, of equal ones that with the lowest number.

    Nodes that share CPUs are memory of another kind next to the same cores (hwloc shows HBM, non-volatile and
    GPU memory so), the kernel's numa=fake, or faulty firmware.
    """
    nodes = partial.numa_nodes or ()
    taken: set[int] = set()
    result: list[NumaNode] = []
    shared: list[int] = []
    for node in sorted(nodes, key=lambda node: (len(node.cpus), node.id)):
        if node.cpus & taken:
            shared.append(node.id)
        result.append(msgspec.structs.replace(node, cpus=node.cpus - taken))
        taken |= node.cpus
    if shared and partial.kind != "hwloc":
        listed = ", ".join(str(node) for node in sorted(shared))
        notes.append(note_text("NUMA nodes: shared CPUs", source=partial.name, listed=listed))
    return tuple(sorted(result, key=lambda node: node.id))


def _from_gpu_columns(ranked: Sequence[Partial], notes: list[str]) -> tuple[NumaNode, ...]:
    """Build nodes from nvidia-smi's two columns where no other source lists NUMA nodes.

    Of a list such as ``0,5-11`` the lowest number is the one with CPUs: the kernel numbers GPU memory last.
    """
    found: dict[int, CpuSet] = {}
    for numa, cpus in _gpu_cpus(ranked):
        found[numa] = found.get(numa, frozenset()) | cpus
    if not found:
        return ()
    if sum(len(cpus) for cpus in found.values()) != len(frozenset().union(*found.values())):
        notes.append(note_text("NUMA nodes: overlap"))
        return ()
    notes.append(note_text("NUMA nodes: by GPUs"))
    return tuple(NumaNode(id=node, cpus=cpus) for node, cpus in sorted(found.items()))


def _gpu_cpus(ranked: Sequence[Partial]) -> Iterator[tuple[int, CpuSet]]:
    for gpu in (gpu for partial in ranked for gpu in partial.gpus or ()):
        numa = gpu.numa if gpu.numa is not None else min(gpu.numa_candidates, default=None)
        if numa is not None and gpu.cpus:
            yield numa, gpu.cpus


def _cores(ranked: Sequence[Partial], nodes: tuple[NumaNode, ...], notes: list[str]) -> tuple[Core, ...]:
    """Return the online cores with their NUMA nodes, in order of their first CPU."""
    online = _online(ranked, nodes, notes)
    numa_of = {cpu: node.id for node in nodes for cpu in node.cpus}
    cores = []
    for core in _stated_or_derived_cores(ranked, online, nodes, notes):
        cpus = tuple(cpu for cpu in core.cpus if cpu in online)
        if cpus:
            cores.append(msgspec.structs.replace(core, cpus=cpus, numa=numa_of.get(cpus[0], core.numa)))
    return number_l3(sorted(cores, key=lambda core: core.cpus[0]))


def _stated_or_derived_cores(
    ranked: Sequence[Partial], online: CpuSet, nodes: tuple[NumaNode, ...], notes: list[str]
) -> tuple[Core, ...]:
    """Return the cores of the best source that knows them, else derive them from the numbering."""
    known = [partial for partial in ranked if partial.cores]
    if not known:
        return _derived_cores(ranked, online, nodes, notes)
    _compare_cores(known, notes)
    return known[0].cores or ()


def _online(ranked: Sequence[Partial], nodes: tuple[NumaNode, ...], notes: list[str]) -> CpuSet:
    """Return the CPUs that every source which lists all CPUs has; refuse sources of different machines."""
    sets = [(partial, cpus) for partial in ranked if (cpus := _listed(partial))]
    if not sets:
        return _partly_listed(ranked, nodes)
    (best, online), *others = sets
    for other, cpus in others:
        if not (cpus <= online or online <= cpus):
            left, right = format_cpu_list(online - cpus), format_cpu_list(cpus - online)
            raise BadInputError(
                f"only {best.name} has CPUs {left}, only {other.name} has {right}", _WORD.one_node
            )
        larger = other
        if cpus < online:
            larger, best = best, other
        if cpus != online:
            more = format_cpu_list(cpus ^ online)
            notes.append(f"{larger.name} has CPUs {more} that {best.name} lacks; they are left out")
        online &= cpus
    return online


def _partly_listed(ranked: Sequence[Partial], nodes: tuple[NumaNode, ...]) -> CpuSet:
    """Return the CPUs of the NUMA nodes, else those near the GPUs, where no source lists all CPUs."""
    listed = frozenset(cpu for node in nodes for cpu in node.cpus)
    gpus = [gpu for partial in ranked for gpu in partial.gpus or ()]
    return listed or frozenset(cpu for gpu in gpus for cpu in gpu.cpus or ())


def _listed(partial: Partial) -> CpuSet:
    """Return all CPUs that a source shows; empty for a source that shows only some (GPU tools)."""
    if partial.online is not None:
        return partial.online
    if partial.cores:
        return frozenset(cpu for core in partial.cores for cpu in core.cpus)
    if partial.kind in ("lscpu", "numactl"):
        return frozenset(cpu for node in partial.numa_nodes or () for cpu in node.cpus)
    return frozenset()


def _compare_cores(known: Sequence[Partial], notes: list[str]) -> None:
    """Note where sources disagree about which CPUs share a core."""
    cores = ((core, frozenset(core.cpus)) for core in known[0].cores or ())
    siblings = {cpu: threads for core, threads in cores for cpu in core.cpus}
    for other in known[1:]:
        if difference := _first_difference(siblings, other.cores or ()):
            mine, theirs = map(format_cpu_list, difference)
            notes.append(note_text("cores: differ", first=known[0], other=other, mine=mine, theirs=theirs))


def _first_difference(siblings: Mapping[int, CpuSet], cores: Sequence[Core]) -> tuple[CpuSet, CpuSet] | None:
    """Return the first pair of cores that overlap without one holding the other."""
    for core in cores:
        mine = siblings.get(core.cpus[0])
        theirs = frozenset(cpu for cpu in core.cpus if cpu in siblings)
        if mine is not None and not (mine <= theirs or theirs <= mine):
            return mine, theirs
    return None


def _derived_cores(
    ranked: Sequence[Partial], online: CpuSet, nodes: tuple[NumaNode, ...], notes: list[str]
) -> tuple[Core, ...]:
    """Derive cores from the numbering of the CPUs, and L3 groups from lscpu's count of caches."""
    if not online:
        return ()
    lscpu = next((partial for partial in ranked if partial.kind == "lscpu"), _NO_LSCPU)
    cpu_sets = [node.cpus & online for node in nodes]
    derived = pair_threads(
        online,
        cpu_sets,
        lscpu.threads_per_core,
        architecture=None if lscpu.virtual else lscpu.architecture,
        complete=_counts_agree(lscpu, len(online)),
    )
    groups: Mapping[int, int] = {}
    l3_note = None
    if derived.certain and lscpu.cpu_count in (None, len(online)):
        groups, l3_note = l3_blocks(derived.cores, lscpu.l3_instances, cpu_sets)
    notes += filter(None, (derived.note, l3_note))
    return tuple(Core(cpus=cpus, l3=groups.get(cpus[0])) for cpus in derived.cores)


def _counts_agree(lscpu: Partial, online: int) -> bool:
    """Tell whether sockets x cores x threads, where stated, is the CPUs: not if hybrid or partly offline."""
    if lscpu.cpu_count is None:
        return True
    if lscpu.cpu_count != online:
        return False
    if lscpu.sockets is None or lscpu.cores_per_socket is None or lscpu.threads_per_core is None:
        return True
    return lscpu.sockets * lscpu.cores_per_socket * lscpu.threads_per_core == online


def _online_only(nodes: tuple[NumaNode, ...], cores: tuple[Core, ...]) -> tuple[NumaNode, ...]:
    """Drop CPUs that are offline from the nodes' lists (s390 and some hypervisors list them)."""
    online = frozenset(cpu for core in cores for cpu in core.cpus)
    return tuple(
        msgspec.structs.replace(node, cpus=node.cpus & online) if node.cpus - online else node
        for node in nodes
    )


def _with_gpu_memory(nodes: tuple[NumaNode, ...], ranked: Sequence[Partial]) -> tuple[NumaNode, ...]:
    """Add the CPU-less nodes that GPUs name as their own memory."""
    known = {node.id for node in nodes}
    named = {gpu.memory_numa for one in ranked for gpu in one.gpus or () if gpu.memory_numa is not None}
    return tuple(sorted((*nodes, *(NumaNode(id=node) for node in named - known)), key=lambda node: node.id))


def _note_missing_nodes(ranked: Sequence[Partial], nodes: tuple[NumaNode, ...], notes: list[str]) -> None:
    for partial in ranked:
        if partial.numa_count is not None and partial.numa_count > len(nodes):
            notes.append(f"{partial.name} counts {partial.numa_count} NUMA nodes, {len(nodes)} are listed")


def _note_unknowns(cores: tuple[Core, ...], nodes: tuple[NumaNode, ...], notes: list[str]) -> None:
    if not cores:
        notes.append("no source lists the CPUs: cores are unknown")
        return
    if not nodes:
        notes.append("no source lists the NUMA nodes: they are unknown")
    without_node = [cpu for core in cores if core.numa is None for cpu in core.cpus]
    if nodes and without_node:
        notes.append(f"CPUs {format_cpu_list(without_node)} belong to no known NUMA node")
    if all(core.l3 is None for core in cores):
        notes.append("no source states which cores share an L3 cache")


def merge_gpus(ranked: Sequence[Partial], nodes: tuple[NumaNode, ...], notes: list[str]) -> tuple[Gpu, ...]:
    """Join the GPUs of all sources; differences go to ``notes`` with both sources by name.

    Numbers come from the vendor's tool where there is one. The NUMA node and the local CPUs come from the
    kernel (/sys, hwloc) where the same GPU is found there by its PCI address.
    """
    lists = [partial for partial in ranked if partial.gpus is not None]
    _note_absent(lists, notes)
    shown = [partial for partial in lists if partial.gpus]
    if not shown:
        return ()
    base, *others = sorted(shown, key=lambda one: (not one.gpu_order, _WORD.gpu_sources.index(one.kind)))
    joined = _joined(base, _of_one_vendor(base, others, notes), nodes, notes)
    _note_empty_nodes(base, joined, nodes, ranked, notes)
    _note_unknown_nodes(joined, notes)
    known = ({name: getattr(gpu, name) for name in Gpu.__struct_fields__} for gpu in joined)
    return tuple(Gpu(**{**each, "vendor": base.gpu_vendor}) for each in known)


def _of_one_vendor(base: Partial, others: Sequence[Partial], notes: list[str]) -> list[Partial]:
    """Return the sources that do not show another vendor's GPUs; note which do: no number joins the two."""
    same = []
    for other in others:
        if base.gpu_vendor and other.gpu_vendor and other.gpu_vendor != base.gpu_vendor:
            notes.append(note_text("GPUs: other vendor", base=base, other=other, count=len(other.gpus or ())))
        else:
            same.append(other)
    return same


def _note_absent(lists: Sequence[Partial], notes: list[str]) -> None:
    """Note when one source shows GPUs and another source of GPUs shows none."""
    with_gpus = [partial for partial in lists if partial.gpus]
    for partial in lists:
        if not partial.gpus and with_gpus:
            count = counted(len(with_gpus[0].gpus or ()), "GPU")
            notes.append(f"{with_gpus[0].name} shows {count}, {partial.name} shows none")


def _joined(
    base: Partial, others: Sequence[Partial], nodes: tuple[NumaNode, ...], notes: list[str]
) -> list[GpuFact]:
    """Return the GPUs of ``base``, each completed by what the other sources state about it."""
    matches = [(other, _match(base, other, notes)) for other in others]
    joined = []
    for gpu in base.gpus or ():
        fact = _resolve(base, gpu, nodes, notes)
        for other, match_of in matches:
            if (match := match_of.get(gpu.index)) is not None:
                fact = _join(base, fact, other, _resolve(other, match, nodes, notes), notes)
        joined.append(fact)
    return joined


def _match(base: Partial, other: Partial, notes: list[str]) -> Mapping[int, GpuFact]:
    """Return the other source's GPU for each number of ``base``: by PCI address, else by number."""
    mine, theirs = base.gpus or (), other.gpus or ()
    if len(set(map(_number, mine))) != len(theirs):
        count = counted(len(mine), "GPU")
        notes.append(f"{base.name} shows {count}, {other.name} shows {len(theirs)}; the first are used")
    by_bus: dict[str | None, GpuFact] = {gpu.bus_id: gpu for gpu in theirs if gpu.bus_id}
    if by_bus and all(gpu.bus_id for gpu in mine):
        return _match_by_bus(base, other, by_bus, notes)
    return _match_by_number(base, other, notes)


def _match_by_bus(
    base: Partial, other: Partial, by_bus: Mapping[str | None, GpuFact], notes: list[str]
) -> Mapping[int, GpuFact]:
    found: dict[int, GpuFact] = {}
    lacking: list[str] = []
    for gpu in base.gpus or ():
        if gpu.bus_id in by_bus:
            found[gpu.index] = by_bus[gpu.bus_id]
        else:
            lacking.append(str(gpu.bus_id))
    if renumbered := [str(index) for index, gpu in found.items() if gpu.index != index]:
        numbers = ", ".join(renumbered)
        notes.append(f"{other.name} numbers GPU {numbers} of {base.name} differently; PCI addresses match")
    if lacking:
        notes.append(f"{other.name} does not show the GPU at {', '.join(lacking)} of {base.name}")
    return found


def _match_by_number(base: Partial, other: Partial, notes: list[str]) -> Mapping[int, GpuFact]:
    """Match by number if counts are the same and no NUMA node contradicts: a job may see fewer GPUs."""
    mine, theirs = base.gpus or (), other.gpus or ()
    if len(set(map(_number, mine))) != len(theirs):
        return {}
    by_index = {gpu.index: gpu for gpu in theirs}
    for gpu in mine:
        match = by_index.get(_number(gpu))
        if match is None or numa_differs(gpu.numa, match.numa):
            stated = "another number" if match is None else f"NUMA node {match.numa}"
            notes.append(note_text("GPUs: not matched", gpu=gpu, base=base, other=other, stated=stated))
            return {}
    return {gpu.index: by_index[_number(gpu)] for gpu in mine}


def _number(gpu: GpuFact) -> int:
    """Return a GPU's number; of a MIG instance that of its GPU."""
    return gpu.index if gpu.device is None else gpu.device


def _join(base: Partial, mine: GpuFact, other: Partial, theirs: GpuFact, notes: list[str]) -> GpuFact:
    """Fill one GPU's unknowns; where the PCI address is the same the kernel's NUMA node wins."""
    numa, cpus = mine.numa, mine.cpus
    if numa_differs(numa, theirs.numa):
        kernel = other.kind in ("sysfs", "hwloc")
        values = {"gpu": mine, "base": base, "other": other, "there": theirs}
        notes.append(note_text("GPUs: two NUMA nodes", used="second" if kernel else "first", **values))
        if kernel:
            numa, cpus = theirs.numa, theirs.cpus
    elif theirs.cpus is not None and (cpus is None or theirs.cpus < cpus):
        cpus = theirs.cpus
    return msgspec.structs.replace(
        mine,
        numa=theirs.numa if numa is None else numa,
        cpus=cpus,
        bus_id=mine.bus_id or theirs.bus_id,
        model=mine.model or theirs.model,
    )


def _resolve(partial: Partial, gpu: GpuFact, nodes: tuple[NumaNode, ...], notes: list[str]) -> GpuFact:
    """Settle one GPU's node and CPUs against the NUMA nodes: lists of nodes, missing nodes, cut columns."""
    numa = _deduced_node(gpu, nodes) if gpu.numa is None else gpu.numa
    node_cpus = next((node.cpus for node in nodes if node.id == numa), frozenset[int]())
    cpus = gpu.cpus
    if cpus is not None and node_cpus:
        cpus = _settle_cpus(partial, gpu, cpus, node_cpus, numa, notes)
    return msgspec.structs.replace(gpu, numa=numa, cpus=cpus)


def _deduced_node(gpu: GpuFact, nodes: tuple[NumaNode, ...]) -> int | None:
    """Return the one candidate with CPUs, else the one node that holds all CPUs local to the GPU.

    On a machine with one NUMA node all is local; Linux then says -1 of a device (seen in a virtual machine).
    """
    with_cpus = {node.id: node.cpus for node in nodes if node.cpus}
    found = [node for node in with_cpus if node in gpu.numa_candidates]
    if len(found) != 1:
        found = [node for node, cpus in with_cpus.items() if (gpu.cpus or cpus) <= cpus]
    return found[0] if len(found) == 1 else None


def _settle_cpus(
    partial: Partial, gpu: GpuFact, cpus: CpuSet, node_cpus: CpuSet, numa: int | None, notes: list[str]
) -> CpuSet | None:
    """Return the CPUs local to a GPU where they are a part of its node, None where they are all of it."""
    if cpus == node_cpus:
        return None
    if gpu.cpus_text is None:
        return cpus
    whole = format_cpu_list(node_cpus)
    if len(gpu.cpus_text) >= _WORD.cut_width and whole.startswith(gpu.cpus_text):
        notes.append(note_text("GPU CPUs: cut off", partial=partial, gpu=gpu, numa=numa, whole=whole))
        return None
    if cpus < node_cpus:
        notes.append(note_text("GPU CPUs: of a job", partial=partial, gpu=gpu, numa=numa, whole=whole))
        return cpus
    notes.append(note_text("GPU CPUs: other node", partial=partial, gpu=gpu, numa=numa, whole=whole))
    return None


def _note_empty_nodes(
    base: Partial,
    gpus: Sequence[GpuFact],
    nodes: tuple[NumaNode, ...],
    ranked: Sequence[Partial],
    notes: list[str],
) -> None:
    """Note when a GPU's NUMA node has no CPUs, or is not listed, in the best source of NUMA nodes."""
    lister = next((partial for partial in ranked if partial.numa_nodes), None)
    with_cpus = {node.id for node in nodes if node.cpus}
    if lister is None or not with_cpus:
        return
    for gpu in gpus:
        if gpu.numa is not None and gpu.numa not in with_cpus:
            notes.append(f"GPU {gpu.index}: NUMA node {gpu.numa} ({base.name}) has no CPUs in {lister.name}")


def _note_unknown_nodes(gpus: Sequence[GpuFact], notes: list[str]) -> None:
    unknown = [str(gpu.index) for gpu in gpus if gpu.numa is None and gpu.cpus is None]
    if unknown:
        notes.append(f"the NUMA node of GPU {', '.join(unknown)} is unknown")
