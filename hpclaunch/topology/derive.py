"""Cores and L3 groups where a source gives only CPU lists and counts: which numberings are unambiguous.

Linux numbers CPUs in one of two ways on the machines in use. *Spread*: the first thread of every core,
then the second threads, so that the siblings of CPU i are i, i+n/t, i+2n/t, ... (x86 servers, firmware order
of the ACPI MADT). *Adjacent*: the t threads of core i are t*i ... t*i+t-1 (POWER, and most virtual machines).
A pairing is derived only where the NUMA lists allow one of the two alone, or the architecture decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hpclaunch.cpuset import CpuSet, format_cpu_list

_Pairing = tuple[tuple[int, ...], ...]
_THREADS = (2, 4, 8)


class Derived(NamedTuple):
    """The hardware threads of each core, and a sentence about how they were found."""

    cores: _Pairing
    note: str | None
    certain: bool
    """False where siblings stayed unknown and each CPU stands as a core."""


def pair_threads(
    online: CpuSet,
    nodes: Sequence[CpuSet],
    threads: int | None,
    *,
    architecture: str | None,
    virtual: bool,
    complete: bool,
) -> Derived:
    """Group CPUs into cores from the numbering.

    ``nodes`` are the CPU sets of the NUMA nodes, ``threads`` the threads per core where stated, ``complete``
    whether ``online`` holds every CPU of the machine. Where no pairing is certain each CPU is its own core.
    """
    singles = tuple((cpu,) for cpu in sorted(online))
    nodes = [node for node in nodes if node]
    if threads == 1:
        return Derived(singles, None, True)
    runs = _runs_of_siblings(online, nodes)
    if runs and threads in (None, runs):
        pairing = _spread(online, runs)
        return Derived(pairing, _note(pairing[0], f"each NUMA node lists {runs} equal ranges"), True)
    if threads is None:
        return Derived(singles, "threads per core are not stated: each CPU is counted as a core", False)
    if complete and len(online) % threads == 0 and online == frozenset(range(len(online))):
        spread, adjacent = _spread(online, threads), _adjacent(online, threads)
        kinds = [pairing for pairing in (spread, adjacent) if _inside_nodes(pairing, nodes)]
        if len(kinds) == 2 and architecture and not virtual:
            kinds = {"x86_64": [spread], "ppc64le": [adjacent], "ppc64": [adjacent]}.get(architecture, kinds)
        if len(kinds) == 1:
            return Derived(kinds[0], _note(kinds[0][0], f"{threads} threads per core"), True)
    return Derived(
        singles,
        f"{threads} threads per core, but not which CPUs share one: each CPU is counted as a core "
        "(lscpu -p=CPU,CORE,SOCKET,NODE,CACHE would tell)",
        False,
    )


def _note(first: tuple[int, ...], reason: str) -> str:
    cpus = " and ".join(str(cpu) for cpu in first)
    return f"cores derived from the numbering ({reason}): CPUs {cpus} share a core, and so on"


def _runs_of_siblings(online: CpuSet, nodes: Sequence[CpuSet]) -> int | None:
    """Return t when every node is t ranges of one length, n/t apart, of CPUs 0 to n-1; else None."""
    total = len(online)
    if online != frozenset(range(total)) or not nodes or frozenset().union(*nodes) != online:
        return None
    for threads in _THREADS:
        if total % threads == 0 and all(_is_runs(node, threads, total // threads) for node in nodes):
            return threads
    return None


def _is_runs(node: CpuSet, threads: int, step: int) -> bool:
    first, length = min(node), len(node) // threads
    runs = [frozenset(range(first + i * step, first + i * step + length)) for i in range(threads)]
    return 0 < length < step and node == frozenset().union(*runs)


def _spread(online: CpuSet, threads: int) -> _Pairing:
    step = len(online) // threads
    return tuple(tuple(cpu + i * step for i in range(threads)) for cpu in range(step))


def _adjacent(online: CpuSet, threads: int) -> _Pairing:
    return tuple(tuple(range(cpu, cpu + threads)) for cpu in range(0, len(online), threads))


def _inside_nodes(pairing: _Pairing, nodes: Sequence[CpuSet]) -> bool:
    """Tell whether no core lies in two nodes."""
    return all(not node.intersection(core) or node.issuperset(core) for core in pairing for node in nodes)


def l3_blocks(
    cores: Sequence[tuple[int, ...]], instances: int, nodes: Sequence[CpuSet]
) -> tuple[Mapping[int, int], str] | None:
    """Group cores by L3 from the number of caches alone: first CPU of a core -> group, and a note.

    Done only where the cores' first CPUs are 0 to c-1 (or multiples of the thread count), c divides evenly
    and no group would hold a part of one node and a part of another. None where that does not hold.
    """
    firsts = [core[0] for core in cores]
    width = len(cores[0]) if cores else 0
    stride = 1 if firsts == list(range(len(firsts))) else width
    if not cores or instances < 1 or len(cores) % instances or any(len(core) != width for core in cores):
        return None
    if firsts != list(range(0, len(firsts) * stride, stride)):
        return None
    size = len(cores) // instances
    groups = [frozenset(firsts[i : i + size]) for i in range(0, len(firsts), size)]
    for group in groups:
        for node in nodes:
            here = node.intersection(firsts)
            if group & here and not (group <= here or here <= group):
                return None
    note = (
        f"L3 groups derived from the number of caches: {instances} of {size} cores each, "
        f"the first is CPUs {format_cpu_list(groups[0])}"
    )
    return {cpu: i for i, group in enumerate(groups) for cpu in group}, note
