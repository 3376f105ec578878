"""The rule for the shares of ranks (docs/explanation/binding.md), on machines of any shape."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.binding.compute import bind
from hpclaunch.binding.node_binding import BindingRequest
from hpclaunch.site.profile_node import site_topology
from hpclaunch.topology.node_topology import Core, NodeTopology
from tests.binding.machines import bound, lists, machine, usable_cores
from tests.how_much import examples
from tests.in_one_test import in_one_test
from tests.profiles import shipped

checked = settings(max_examples=examples(40), deadline=None)

Sizes = list[list[list[int]]]
"""Cores of each L3 group of each NUMA node of each socket."""


def shaped(sizes: Sizes, *, reserved: tuple[int, ...] = (), interleaved: bool = False) -> NodeTopology:
    """Build a node of this shape; interleaved: core numbers go round the NUMA nodes, as do node numbers."""
    nodes = [(socket, numa) for socket, each in enumerate(sizes) for numa in range(len(each))]
    if interleaved:
        nodes.sort(key=lambda node: (node[1], node[0]))
    places = []
    for numa, (socket, at) in enumerate(nodes):
        for group, size in enumerate(sizes[socket][at]):
            places += [(place, numa, group, socket) for place in range(size)]
    if interleaved:
        places.sort()
    cores = tuple(
        Core(cpus=(cpu,), numa=numa, l3=100 * numa + group, socket=socket)
        for cpu, (_, numa, group, socket) in enumerate(places)
    )
    return NodeTopology(cores=cores, reserved=frozenset(reserved))


@st.composite
def shapes(draw: st.DrawFn) -> NodeTopology:
    """Generate nodes: regular or not, numbers in blocks or interleaved, cut by a cpuset, reserved cores."""
    groups = st.lists(st.integers(1, 8), min_size=1, max_size=4)
    if draw(st.booleans()):
        sizes = [[draw(groups)] * draw(st.integers(1, 4))] * draw(st.integers(1, 3))
    else:
        sizes = draw(st.lists(st.lists(groups, min_size=1, max_size=4), min_size=1, max_size=3))
    node = shaped(sizes, interleaved=draw(st.booleans()))
    cpus = sorted(node.cpus)
    reserved = draw(st.frozensets(st.sampled_from(cpus), max_size=3))
    allowed = draw(st.none() | st.frozensets(st.sampled_from(cpus), min_size=1))
    cut = msgspec.structs.replace(node, reserved=reserved, allowed=allowed)
    return cut if cut.usable else node


class Shares:
    """What the ranks of a node got, by socket and NUMA node."""

    def __init__(self, topology: NodeTopology, tasks: int) -> None:
        self.core_of = {core.cpus[0]: core for core in usable_cores(topology)}
        self.ranks = [[self.core_of[cpu] for cpu in rank.cpus] for rank in bound(topology, tasks).ranks]
        self.sockets = Counter(core.socket for core in self.core_of.values())
        self.numa = Counter(core.numa for core in self.core_of.values())
        self.smallest = min(map(len, self.ranks))

    def ranks_on(self, socket: int | None) -> list[list[Core]]:
        return [cores for cores in self.ranks if any(core.socket == socket for core in cores)]


def tasks_for(topology: NodeTopology, number: int) -> int:
    return 1 + number % len(usable_cores(topology))


@pytest.mark.slow
@checked
@given(shapes(), st.integers(0, 200))
def test_no_rank_is_on_two_sockets_that_need_not_be(topology: NodeTopology, number: int) -> None:
    tasks = tasks_for(topology, number)
    shares = Shares(topology, tasks)
    touched = [{core.socket for core in cores} for cores in shares.ranks]
    if tasks >= len(shares.sockets):
        assert all(len(sockets) == 1 for sockets in touched)
    else:  # no socket is divided
        assert sum(map(len, touched)) == len(shares.sockets)


@pytest.mark.slow
@checked
@given(shapes(), st.integers(0, 200))
def test_a_rank_stays_on_one_numa_node_where_its_socket_has_enough_ranks(
    topology: NodeTopology, number: int
) -> None:
    tasks = tasks_for(topology, number)
    shares = Shares(topology, tasks)
    for socket in shares.sockets if tasks >= len(shares.sockets) else ():
        nodes = {core.numa for core in shares.core_of.values() if core.socket == socket}
        ranks = shares.ranks_on(socket)
        if len(ranks) >= len(nodes):
            assert all(len({core.numa for core in cores}) == 1 for cores in ranks)


@pytest.mark.slow
@checked
@given(shapes(), st.integers(0, 200))
def test_shares_of_one_numa_node_or_socket_differ_by_at_most_one_core(
    topology: NodeTopology, number: int
) -> None:
    """Ranks inside a NUMA node divide it; else the ranks of a socket divide that."""
    tasks = tasks_for(topology, number)
    shares = Shares(topology, tasks)
    if tasks < len(shares.sockets):
        return
    inside: dict[tuple[str, int | None], list[int]] = {}
    for socket in shares.sockets:
        ranks = shares.ranks_on(socket)
        divided = len(ranks) >= len({core.numa for cores in ranks for core in cores})
        for cores in ranks:
            key = ("NUMA node", cores[0].numa) if divided else ("socket", socket)
            inside.setdefault(key, []).append(len(cores))
    for sizes in inside.values():
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.slow
@checked
@given(shapes(), st.integers(0, 200))
def test_no_socket_numa_node_or_l3_group_is_idle_that_could_serve(
    topology: NodeTopology, number: int
) -> None:
    """An idle socket or NUMA node is smaller than the smallest share: of all ranks, or of its socket's."""
    shares = Shares(topology, tasks_for(topology, number))
    used = {core.cpus[0] for cores in shares.ranks for core in cores}
    for level in ("socket", "numa", "l3"):
        parts: dict[int, list[Core]] = {}
        for core in shares.core_of.values():
            parts.setdefault(getattr(core, level), []).append(core)
        for cores in parts.values():
            if not used.intersection(core.cpus[0] for core in cores):
                others = shares.ranks_on(cores[0].socket) or shares.ranks
                assert len(cores) < min(map(len, others))


def best_smallest(capacities: list[int], tasks: int) -> int:
    """Return the largest smallest share of all ways to give ranks to parts, by trying every one."""
    best = 0
    for bars in combinations(range(tasks + len(capacities) - 1), len(capacities) - 1):
        ends = (-1, *bars, tasks + len(capacities) - 1)
        counts = [end - start - 1 for start, end in pairwise(ends)]
        best = max(
            best, min(cores // ranks for cores, ranks in zip(capacities, counts, strict=True) if ranks)
        )
    return best


@pytest.mark.slow
@checked
@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(0, 7))
def test_the_smallest_share_is_as_large_as_possible(numa: list[int], number: int) -> None:
    tasks = min(len(numa) + number, sum(numa))
    shares = Shares(shaped([[[cores]] for cores in numa]), tasks)
    assert shares.smallest == best_smallest(numa, tasks)


@in_one_test(
    "tasks, wanted",
    [(2, ["1-63", "64-127"]), (4, ["1-31", "32-63", "64-95", "96-127"])],
)
@in_one_test("numa_per_socket", [1, 4])
def test_one_reserved_core_moves_no_borders(numa_per_socket: int, tasks: int, wanted: list[str]) -> None:
    groups = [[16] * (4 // numa_per_socket)] * numa_per_socket
    assert lists(bound(shaped([groups, groups], reserved=(0,)), tasks)) == wanted


def test_one_reserved_core_of_eight_l3_groups() -> None:
    node = shaped([[[8] * 8]], reserved=(0,))
    assert lists(bound(node, 4)) == ["1-15", "16-31", "32-47", "48-63"]


def test_of_equal_choices_no_numa_node_is_left_idle() -> None:
    assert lists(bound(machine([4, 2]), 2)) == ["0-3", "4-5"]
    assert lists(bound(machine([16, 8, 8]), 3)) == ["0-15", "16-23", "24-31"]
    assert lists(bound(shaped([[[4, 2]]]), 2)) == ["0-2", "3-5"]


def test_numa_nodes_in_turn_on_the_sockets_are_joined_by_socket() -> None:
    """Sub-NUMA clusters whose numbers alternate between the sockets."""
    node = shaped([[[4], [4]], [[4], [4]]], interleaved=True)
    assert [rank.numa for rank in bound(node, 2).ranks] == [(0, 2), (1, 3)]
    assert [rank.numa for rank in bound(node, 4).ranks] == [(0,), (2,), (1,), (3,)]


def test_sockets_whose_cpus_alternate_in_one_numa_node_are_not_mixed() -> None:
    cores = tuple(Core(cpus=(cpu,), numa=0, socket=cpu % 2) for cpu in range(8))
    assert lists(bound(NodeTopology(cores=cores), 2)) == ["0,2,4,6", "1,3,5,7"]


def test_equal_shares_come_before_whole_l3_groups() -> None:
    """MI300A: 24 cores in three L3 groups per NUMA node; four ranks on each get six cores."""
    node = machine([24] * 4, l3_size=8, gpu_numa=range(4))
    assert {len(rank.cpus) for rank in bound(node, 16).ranks} == {6}
    node = machine([24], l3_size=8)
    assert lists(bound(node, 3)) == ["0-7", "8-15", "16-23"]
    assert lists(bound(node, 6)) == ["0-3", "4-7", "8-11", "12-15", "16-19", "20-23"]


def test_requested_cores_stay_in_one_l3_group_where_each_rank_finds_them() -> None:
    node = machine([24], l3_size=8)
    request = BindingRequest(tasks_per_node=4, cpus_per_task=4)
    assert [rank.l3 for rank in bind(node, request).ranks] == [(0,), (0,), (1,), (2,)]
    request = BindingRequest(tasks_per_node=3, cpus_per_task=5)
    # A rank crosses NUMA nodes only because none of them holds two such ranks.
    assert lists(bind(machine([8, 8]), request)) == ["0-4", "6-10", "11-15"]


def test_ranks_with_gpus_on_two_sockets_have_equal_shares() -> None:
    node = machine([51, 51], gpu_numa=[0] * 6 + [1] * 6)
    assert lists(bound(node, 3)) == ["0-33", "34-67", "68-101"]


@in_one_test(
    "tasks, wanted",
    [
        (1, "1-51,53-103"),
        (6, "1-17 18-34 35-51 53-69 70-86 87-103"),
        (12, "1-8 9-16 17-24 25-32 33-40 41-48 53-60 61-68 69-76 77-84 85-92 93-100"),
    ],
)
def test_aurora_is_bound_as_alcf_publishes(tasks: int, wanted: str) -> None:
    """Lists of get_cpu_bind_aurora (argonne-lcf/pbs_utils at commit 6880e83)."""
    node = site_topology(shipped("aurora"))
    assert node is not None
    assert lists(bound(node, tasks)) == wanted.split()
