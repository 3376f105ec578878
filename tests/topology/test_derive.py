"""Cores from the numbering of CPUs, and what is merged from several sources, on small machines by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hpclaunch.cpuset import CpuSet
from hpclaunch.errors import BadInputError
from hpclaunch.topology import merge_sources
from hpclaunch.topology.derive import l3_blocks, number_l3, pair_threads
from hpclaunch.topology.merge_sources import merge
from hpclaunch.topology.node_topology import Core, NodeTopology, NumaNode, Partial
from tests.in_one_test import in_one_test

HALVES = [frozenset((0, 1, 4, 5)), frozenset((2, 3, 6, 7))]
"""Two nodes of an x86 machine with two threads per core: 0-1,4-5 and 2-3,6-7."""
QUARTERS = [frozenset(range(4)), frozenset(range(4, 8))]


def cpus(count: int) -> CpuSet:
    return frozenset(range(count))


@in_one_test(
    "nodes, threads, architecture, pairs",
    [
        ([], 2, "x86_64", [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ([], 2, "ppc64le", [(0, 1), (2, 3), (4, 5), (6, 7)]),
        ([], 4, "ppc64", [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ([], 2, "aarch64", None),  # either way
        ([], 2, None, None),
        ([], 3, "x86_64", None),  # 8 CPUs are no multiple
        ([], None, "x86_64", None),
        (HALVES, None, None, [(0, 4), (1, 5), (2, 6), (3, 7)]),  # each node lists two equal ranges
        (HALVES, 2, None, [(0, 4), (1, 5), (2, 6), (3, 7)]),
        (HALVES, 4, None, None),  # the ranges are of two threads
        (QUARTERS, 2, "x86_64", [(0, 1), (2, 3), (4, 5), (6, 7)]),  # spread would cross the nodes
        (QUARTERS, 2, None, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        (QUARTERS, None, None, None),
        ([*HALVES, frozenset()], None, None, [(0, 4), (1, 5), (2, 6), (3, 7)]),  # one of memory only
        ([frozenset((0, 4)), frozenset((1, 5)), frozenset((2, 6)), frozenset((3, 7))], None, None, None),
        ([HALVES[0]], None, None, None),  # CPUs 2, 3, 6 and 7 are in no node
    ],
)
def test_threads_are_paired_only_where_one_numbering_is_possible(
    nodes: Sequence[CpuSet], threads: int | None, architecture: str | None, pairs: Any
) -> None:
    found = pair_threads(cpus(8), nodes, threads, architecture=architecture, complete=True)
    assert found.certain == (pairs is not None)
    assert list(found.cores) == (pairs or [(cpu,) for cpu in range(8)])
    assert (found.note or "").startswith("cores derived from the numbering") == (pairs is not None)


def test_four_and_eight_threads_per_core_show_as_ranges_too() -> None:
    """Sixteen cores of four threads in two nodes: 0-7,16-23,32-39,48-55, and the CPUs eight above."""
    nodes = [frozenset(start + at + 16 * i for i in range(4) for at in range(8)) for start in (0, 8)]
    found = pair_threads(cpus(64), nodes, None, architecture=None, complete=True)
    assert found.cores[:2] == ((0, 16, 32, 48), (1, 17, 33, 49))
    nodes = [frozenset(start + at + 4 * i for i in range(8) for at in range(2)) for start in (0, 2)]
    assert pair_threads(cpus(32), nodes, None, architecture=None, complete=True).cores[0] == tuple(
        range(0, 32, 4)
    )


def test_nothing_is_paired_on_a_part_of_a_machine_and_one_thread_needs_no_pair() -> None:
    part = pair_threads(cpus(8), HALVES, 2, architecture="x86_64", complete=False)
    assert (part.certain, part.cores[0]) == (False, (0,))
    gap = pair_threads(cpus(9) - {3}, [], 2, architecture="x86_64", complete=True)
    assert (gap.certain, gap.cores[3]) == (False, (4,))
    one = pair_threads(cpus(9) - {3}, [], 1, architecture=None, complete=False)
    assert (one.certain, one.note, one.cores[3]) == (True, None, (4,))


def test_l3_groups_are_equal_blocks_that_keep_to_the_nodes() -> None:
    spread = [(cpu, cpu + 4) for cpu in range(4)]
    adjacent = [(cpu, cpu + 1) for cpu in range(0, 8, 2)]
    assert l3_blocks(spread, 2, HALVES)[0] == {0: 0, 1: 0, 2: 1, 3: 1}
    assert l3_blocks(adjacent, 2, QUARTERS)[0] == {0: 0, 2: 0, 4: 1, 6: 1}
    assert l3_blocks(spread, 4, [])[0] == {0: 0, 1: 1, 2: 2, 3: 3}
    assert l3_blocks(spread, 1, HALVES)[0] == dict.fromkeys(range(4), 0), "one cache for two nodes"
    note = l3_blocks(spread, 2, HALVES)[1]
    assert note is not None
    assert "0-1" in note
    for cores, instances, nodes in (
        (spread, None, []),
        (spread, 0, []),
        ([], 2, []),
        (spread, 3, []),
        ([(0, 4), (1,), (2, 6), (3, 7)], 2, []),
        ([(0, 4), (1, 5), (3, 6), (2, 7)], 2, []),
        (spread, 2, [frozenset((0, 2)), frozenset((1, 3))]),
    ):
        assert l3_blocks(cores, instances, nodes) == ({}, None), (cores, instances)


def test_l3_groups_are_numbered_in_the_order_of_cores() -> None:
    cores = [Core(cpus=(cpu,), l3=group) for cpu, group in enumerate((7, None, 7, 0, 3))]
    assert [core.l3 for core in number_l3(cores)] == [0, None, 0, 1, 2]


# --- several sources --------------------------------------------------------------------------------------


def lscpu(count: int = 8, **more: Any) -> Partial:
    facts = {"online": cpus(count), "cpu_count": count, "threads_per_core": 2, "architecture": "x86_64"}
    return Partial(kind="lscpu", origin="a", **{**facts, **more})


def nodes_of(*sets: CpuSet, **more: Any) -> tuple[NumaNode, ...]:
    return tuple(NumaNode(id=number, cpus=one, **more) for number, one in enumerate(sets))


def test_counts_of_lscpu_that_do_not_agree_pair_nothing() -> None:
    """Sockets x cores x threads: 1 x 4 x 2 is 8; with 6 there are hybrid cores, or some are offline."""

    def paired(**facts: Any) -> bool:
        return len(merge([lscpu(**facts)]).cores) == 4

    assert paired()
    assert paired(sockets=1, cores_per_socket=4)
    assert paired(sockets=3)
    assert paired(cores_per_socket=3)
    assert paired(cpu_count=None, sockets=7, cores_per_socket=7)
    assert not paired(sockets=1, cores_per_socket=6)
    assert not paired(sockets=2, cores_per_socket=4)
    assert not paired(cpu_count=10)
    assert not paired(virtual=True), "a virtual machine is numbered either way"


def test_caches_are_counted_to_groups_only_where_cores_are_certain() -> None:
    groups = [core.l3 for core in merge([lscpu(l3_instances=2)]).cores]
    assert groups == [0, 0, 1, 1]
    assert {core.l3 for core in merge([lscpu(l3_instances=2, virtual=True)]).cores} == {None}
    counted = lscpu(l3_instances=2, cpu_count=None)
    assert [core.l3 for core in merge([counted]).cores] == [0, 0, 1, 1]


def test_a_node_or_its_memory_that_only_the_second_source_has_is_added() -> None:
    first = Partial(kind="hwloc", origin="a", online=cpus(8), numa_nodes=nodes_of(*QUARTERS))
    more = (*nodes_of(*QUARTERS, memory_bytes=1 << 30), NumaNode(id=7, memory_bytes=1 << 34))
    second = Partial(kind="numactl", origin="b", numa_nodes=more)
    found = merge([first, second])
    assert [(node.id, node.memory_bytes) for node in found.numa_nodes] == [
        (0, 1 << 30),
        (1, 1 << 30),
        (7, 1 << 34),
    ]
    assert not any("NUMA node 7" in note for note in found.notes), "it has no CPUs that somebody may miss"
    one = Partial(kind="hwloc", origin="a", online=cpus(8), numa_nodes=nodes_of(QUARTERS[0]))
    assert any("NUMA node 1 is in numactl (b) but not in" in note for note in merge([one, second]).notes)
    own = Partial(kind="hwloc", origin="a", online=cpus(8), numa_nodes=nodes_of(*QUARTERS, memory_bytes=1))
    assert [node.memory_bytes for node in merge([own, second]).numa_nodes[:2]] == [1, 1]


def test_of_nodes_that_share_cpus_the_smallest_has_them() -> None:
    """Those of hwloc are memory of another kind next to the same cores, so that nothing is to be said."""
    for kind, said in (("hwloc", False), ("numactl", True)):
        shared = Partial(kind=kind, origin="a", online=cpus(8), numa_nodes=nodes_of(cpus(8), QUARTERS[1]))
        found = merge([shared])
        assert [sorted(node.cpus) for node in found.numa_nodes] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert any("NUMA nodes 0 list" in note for note in found.notes) == said
    same = Partial(kind="numactl", origin="a", online=cpus(4), numa_nodes=nodes_of(cpus(4), cpus(4)))
    assert [len(node.cpus) for node in merge([same]).numa_nodes] == [4, 0]


def test_cpus_that_are_offline_or_in_no_node_are_said() -> None:
    listed = Partial(kind="sysfs", origin="a", online=cpus(4), numa_nodes=nodes_of(cpus(6)))
    assert merge([listed]).numa_nodes[0].cpus == cpus(4)
    less = Partial(kind="sysfs", origin="a", online=cpus(4), numa_nodes=nodes_of(cpus(3)))
    assert "CPUs 3 belong to no known NUMA node" in merge([less]).notes
    none = Partial(kind="sysfs", origin="a", online=cpus(4))
    assert "no source lists the NUMA nodes: they are unknown" in merge([none]).notes
    assert not any("belong to no known" in note for note in merge([none]).notes)
    empty = merge([Partial(kind="lscpu", origin="a", numa_count=2)])
    assert "no source lists the CPUs: cores are unknown" in empty.notes
    assert "lscpu (a) counts 2 NUMA nodes, 0 are listed" in empty.notes
    counted = Partial(kind="lscpu", origin="a", online=cpus(4), numa_nodes=nodes_of(cpus(4)), numa_count=1)
    assert not any("counts" in note for note in merge([counted]).notes)


def test_of_sources_with_other_cpus_the_common_ones_stay_or_none() -> None:
    def both(first: CpuSet, second: CpuSet) -> NodeTopology:
        sources = [
            Partial(kind="sysfs", origin="a", online=first),
            Partial(kind="hwloc", origin="b", online=second),
        ]
        return merge(sources)

    assert not any("left out" in note for note in both(cpus(4), cpus(4)).notes)
    for large, small, names in ((0, 1, ("sysfs (a)", "hwloc (b)")), (1, 0, ("hwloc (b)", "sysfs (a)"))):
        sets = [cpus(4), cpus(4)]
        sets[large], sets[small] = cpus(6), cpus(4)
        found = both(*sets)
        assert found.cpus == cpus(4)
        assert f"{names[0]} has CPUs 4-5 that {names[1]} lacks; they are left out" in found.notes
    with pytest.raises(BadInputError) as caught:
        both(cpus(4), frozenset((3, 4)))
    assert {"CPUs 0-2", "CPUs 4"} <= {piece.strip(",") for piece in _pieces(caught.value.message)}


def _pieces(text: str) -> list[str]:
    """Each ``CPUs LIST`` of a message."""
    words = text.replace(" has ", " ").replace(",", "").split()
    return [f"CPUs {words[at + 1]}" if word == "CPUs" else word for at, word in enumerate(words)] + [
        f"CPUs {words[-1]}"
    ]


def test_what_lists_all_cpus() -> None:
    """GPU tools show those near their GPUs only."""
    nodes = nodes_of(cpus(4))
    for kind, listed in (("lscpu", cpus(4)), ("numactl", cpus(4)), ("nvidia-smi", frozenset())):
        assert merge_sources._listed(Partial(kind=kind, origin="", numa_nodes=nodes)) == listed
    cores = (Core(cpus=(0, 2)), Core(cpus=(1,)))
    assert merge_sources._listed(Partial(kind="hwloc", origin="", cores=cores)) == cpus(3)
    assert merge_sources._listed(Partial(kind="hwloc", origin="", cores=cores, online=cpus(2))) == cpus(2)
