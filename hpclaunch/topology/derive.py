"""Cores and L3 groups where a source gives only CPU lists and counts: which numberings are unambiguous.

Linux numbers CPUs in one of two ways on the machines in use. *Spread*: the first thread of every core,
then the second threads, so that the siblings of CPU i are i, i+n/t, i+2n/t, ... (x86 servers, firmware order
of the ACPI MADT). *Adjacent*: the t threads of core i are t*i ... t*i+t-1 (POWER, and most virtual machines).
A pairing is derived only where the architecture, the ranges in the NUMA lists, or the fact that the other
numbering would put a core into two NUMA nodes decides between the two.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.errors import note_text
from hpclaunch.topology.node_topology import Core

_Pairing = tuple[tuple[int, ...], ...]
_THREADS = (2, 4, 8)
_NUMBERING = {"x86_64": "spread", "ppc64le": "adjacent", "ppc64": "adjacent"}


class Derived(NamedTuple):
    """The hardware threads of each core, and a sentence about how they were found."""

    cores: _Pairing
    note: str | None
    certain: bool
    """False where it is unknown which CPUs share a core, so that each CPU counts as one."""


def pair_threads(
    online: CpuSet, nodes: Sequence[CpuSet], threads: int | None, *, architecture: str | None, complete: bool
) -> Derived:
    """Group CPUs into cores from the numbering.

    ``nodes`` are the CPU sets of the NUMA nodes, ``threads`` the threads per core where stated,
    ``architecture`` that of a real machine (None for virtual ones, which are numbered either way),
    ``complete`` whether ``online`` holds every CPU. Where no pairing is certain each CPU is its own core.
    """
    singles = tuple((cpu,) for cpu in sorted(online))
    if threads == 1:
        return Derived(singles, None, True)
    pairing, reason = _pairing(online, [node for node in nodes if node], threads, architecture, complete)
    if pairing:
        cpus = " and ".join(map(str, pairing[0]))
        note = f"cores derived from the numbering ({reason}): CPUs {cpus} share a core, and so on"
        return Derived(pairing, note, True)
    if threads is None:
        return Derived(singles, "threads per core are not stated: each CPU is counted as a core", False)
    return Derived(singles, note_text("cores: unknown", threads=threads), False)


def _pairing(
    online: CpuSet, nodes: Sequence[CpuSet], threads: int | None, architecture: str | None, complete: bool
) -> tuple[_Pairing, str]:
    """Return the pairing that is certain and why; an empty one where none is.

    Looked for in this order: the architecture's numbering, where the NUMA lists allow it; nodes that list t
    equal ranges; the one numbering of the two that the NUMA lists allow.
    """
    if not complete or online != frozenset(range(len(online))):
        return (), ""
    allowed = _allowed_pairings(online, nodes, threads)
    usual = _NUMBERING.get(architecture or "")
    if usual in allowed:
        return allowed[usual], f"{threads} threads per core, {architecture}"
    runs = _runs_of_siblings(online, nodes)
    if runs and threads in (None, runs):
        return _spread(online, runs), f"each NUMA node lists {runs} equal ranges"
    if len(allowed) == 1:
        return next(iter(allowed.values())), f"{threads} threads per core, and the NUMA nodes allow no other"
    return (), ""


def _allowed_pairings(online: CpuSet, nodes: Sequence[CpuSet], threads: int | None) -> dict[str, _Pairing]:
    """Return the pairings by numbering that put no core into two NUMA nodes."""
    if not threads or len(online) % threads:
        return {}
    adjacent = tuple(tuple(range(cpu, cpu + threads)) for cpu in range(0, len(online), threads))
    pairings = {"spread": _spread(online, threads), "adjacent": adjacent}
    return {
        kind: pairing
        for kind, pairing in pairings.items()
        if all(node.isdisjoint(core) or node.issuperset(core) for core in pairing for node in nodes)
    }


def _runs_of_siblings(online: CpuSet, nodes: Sequence[CpuSet]) -> int | None:
    """Return t when every node is t ranges of one length, n/t apart; else None. ``online``: 0 to n-1."""
    total = len(online)
    if not nodes or frozenset().union(*nodes) != online:
        return None
    for threads in _THREADS:
        if total % threads == 0 and all(_is_runs(node, threads, total // threads) for node in nodes):
            return threads
    return None


def _is_runs(node: CpuSet, threads: int, step: int) -> bool:
    first, length = min(node), len(node) // threads
    runs = [frozenset(range(first + i * step, first + i * step + length)) for i in range(threads)]
    # One CPU per range would fit any machine whose CPUs are assigned to the nodes in turn.
    return 1 < length < step and node == frozenset().union(*runs)


def _spread(online: CpuSet, threads: int) -> _Pairing:
    step = len(online) // threads
    return tuple(tuple(cpu + i * step for i in range(threads)) for cpu in range(step))


def l3_blocks(
    cores: Sequence[tuple[int, ...]], instances: int | None, nodes: Sequence[CpuSet]
) -> tuple[Mapping[int, int], str | None]:
    """Group cores by L3 from the number of caches alone: first CPU of a core -> group, and a note.

    Done only where the cores' first CPUs are 0 to c-1 (or multiples of the thread count), c divides evenly
    and no group would hold a part of one node and a part of another. Empty where that does not hold.
    """
    if not instances or not cores or len(cores) % instances or not _regularly_numbered(cores):
        return {}, None
    size = len(cores) // instances
    first_cpus = [core[0] for core in cores]
    groups = [frozenset(first_cpus[i : i + size]) for i in range(0, len(first_cpus), size)]
    if not _fit_nodes(groups, [node.intersection(first_cpus) for node in nodes]):
        return {}, None
    note = note_text("L3 groups: derived", instances=instances, size=size, first=format_cpu_list(groups[0]))
    return {cpu: i // size for i, cpu in enumerate(first_cpus)}, note


def _regularly_numbered(cores: Sequence[tuple[int, ...]]) -> bool:
    """Tell whether all cores have t CPUs and their first CPUs are 0, 1, 2, ... or 0, t, 2t, ..."""
    threads = len(cores[0])
    first_cpus = [core[0] for core in cores]
    spread, adjacent = range(len(cores)), range(0, len(cores) * threads, threads)
    return all(len(core) == threads for core in cores) and first_cpus in (list(spread), list(adjacent))


def _fit_nodes(groups: Sequence[CpuSet], nodes: Sequence[CpuSet]) -> bool:
    """Tell whether no group holds a part of one node and a part of another."""
    return all(group.isdisjoint(node) or group <= node or node <= group for group in groups for node in nodes)


def number_l3(cores: Sequence[Core]) -> tuple[Core, ...]:
    """Number L3 groups in the order of the given cores, so that all sources number alike."""
    known = dict.fromkeys(core.l3 for core in cores if core.l3 is not None)
    number = {l3: i for i, l3 in enumerate(known)}
    return tuple(
        msgspec.structs.replace(core, l3=number[core.l3]) if core.l3 is not None else core for core in cores
    )
