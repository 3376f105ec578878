"""Where a topology comes from: files of captured output, a saved folder, or the live node."""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.topology import sysfs
from hpclaunch.topology.derive import number_l3
from hpclaunch.topology.merge_sources import merge
from hpclaunch.topology.node_topology import Core, Gpu, NodeTopology, Partial, numa_differs
from hpclaunch.topology.source_kinds import SOURCE_KINDS
from hpclaunch.topology.tool_text import MAX_CHARS


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
        values = {"cpu": moved[0], "here": mine[moved[0]], "there": theirs[moved[0]]}
        notes.append(note_text("site: other NUMA node of a CPU", count=len(moved), **values))
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
        notes.append(note_text("site: other NUMA node of a GPU", gpu=gpu, site_gpu=site_gpu))
        return gpu
    if gpu.cpus is not None and site_gpu.cpus is not None and gpu.cpus != site_gpu.cpus:
        here, there = format_cpu_list(gpu.cpus), format_cpu_list(site_gpu.cpus)
        notes.append(f"GPU {gpu.index} is near CPUs {here} here, near {there} in the site profile")
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


def _read(kind: str, text: str, origin: str) -> Partial:
    """Load the module of the reader, since the live node needs none of them, and read."""
    module = importlib.import_module(f"hpclaunch.topology.{kind}")
    return cast("Partial", module.read(text, origin))


KINDS: Mapping[str, Callable[[str, str], Partial]] = {
    name: partial(_read, name) for name in SOURCE_KINDS if name != sysfs.KIND
}
"""Readers of text by option name; ``sysfs`` takes a folder and is not among them."""


def read_files(files: Mapping[str, Path | Sequence[Path]]) -> NodeTopology:
    """Read captured output, one or several files per kind (for ``sysfs`` folders), and join it.

    Raises BadInputError for an unknown kind, an unreadable or damaged file, or sources of different nodes.
    """
    named = {kind: [paths] if isinstance(paths, Path) else paths for kind, paths in files.items()}
    return merge([_read_one(kind, path) for kind, paths in named.items() for path in paths])


def _read_one(kind: str, path: Path) -> Partial:
    if kind == sysfs.KIND:
        return sysfs.read(path)
    if kind not in KINDS:
        raise BadInputError(f"unknown source {kind!r}", f"known sources: {', '.join(KINDS)} and sysfs")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CHARS + 1)
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror or error}", "name a readable file") from None
    if len(data) > MAX_CHARS:
        raise BadInputError(f"{path}: more than {MAX_CHARS} bytes", "give the output of a topology tool")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return KINDS[kind](data.decode(encoding, "replace"), str(path))


def read_live() -> NodeTopology:
    """Read this node from /sys and /proc below ``HPCLAUNCH_SYSROOT``, else ``/``. Raises BadInputError."""
    return merge([sysfs.read(sysfs.default_root())])


def read_folder(folder: Path) -> NodeTopology:
    """Read a folder that ``hpclaunch topology --save`` wrote. Raises BadInputError, as ``read_files``."""
    places = {name: folder / (kind.file or name) for name, kind in SOURCE_KINDS.items()}
    files = {name: path for name, path in places.items() if path.exists()}
    if not files:
        known = ", ".join(path.name for path in places.values())
        raise BadInputError(f"{folder}: not a saved topology", f"a saved topology holds some of {known}")
    return read_files(files)
