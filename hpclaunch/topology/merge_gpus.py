"""GPUs of several sources become one list: matched by PCI address, else by number."""

from collections.abc import Mapping, Sequence

import msgspec

from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.package_data import note_text
from hpclaunch.plural import counted
from hpclaunch.topology.node_topology import Gpu, NumaNode, numa_differs
from hpclaunch.topology.partial import GpuFact, Partial

# Sources whose GPU numbers are the runtime's, best first: the vendors' tools, then hwloc and /sys (KFD).
_GPU_SOURCES = ("rocm_smi", "amd_smi", "nvidia_smi", "hwloc", "sysfs")
# nvidia-smi prints CPU affinity into a column of about this width and cuts off the rest.
_CUT_WIDTH = 10


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
    base, *others = sorted(shown, key=lambda one: (not one.gpu_order, _GPU_SOURCES.index(one.kind)))
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
    if len(gpu.cpus_text) >= _CUT_WIDTH and whole.startswith(gpu.cpus_text):
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
