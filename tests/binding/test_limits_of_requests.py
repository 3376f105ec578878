"""Requests at the edge of what a node has, and the words in which the other side of it is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hpclaunch.binding.compute import bind, bind_gpus_only
from hpclaunch.binding.core_shares import balanced_counts
from hpclaunch.binding.judge_masks import Kind, judge, report
from hpclaunch.binding.node_binding import BindingRequest
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import Gpu, Nic, NodeTopology, NumaNode
from tests.binding.machines import bound, lists, lumi_like, machine
from tests.in_one_test import in_one_test


def refused(node: NodeTopology, **request: Any) -> tuple[str, str | None]:
    """The message and the hint of a refusal."""
    with pytest.raises(BadInputError) as caught:
        bind(node, BindingRequest(**request))
    return caught.value.message, caught.value.hint


def test_numbers_have_a_least_value() -> None:
    node = machine([4], gpu_numa=(0,))
    least = {"tasks_per_node": 1, "cpus_per_task": 1, "threads_per_core": 1, "gpus_per_task": 0}
    for name, number in least.items():
        request: dict[str, Any] = {"tasks_per_node": 1, name: number}
        bind(node, BindingRequest(**request))
        said = "it must be at least 1" if number else "it must be 0 or more"
        assert refused(node, **{"tasks_per_node": 1, name: number - 1}) == (f"{name} is {number - 1}", said)
    assert [rank.gpus for rank in bind_gpus_only(node, BindingRequest(tasks_per_node=1)).ranks] == [(0,)]
    with pytest.raises(BadInputError, match="tasks_per_node is 0"):
        bind_gpus_only(node, BindingRequest(tasks_per_node=0))


def test_ranks_with_cores_need_as_many_as_there_are_and_the_hint_says_what_fits() -> None:
    node = machine([8], reserved_cores=(0, 1))
    has = "this node has 6 usable cores (8 in all, 2 reserved, 0 not granted)"
    assert len(bound(node, 6).ranks) == 6
    assert refused(node, tasks_per_node=7) == (
        f"7 ranks need 7 cores; {has}",
        "at most 6 such ranks fit; --share-cores lets ranks share cores",
    )
    assert len(bound(node, 2, cpus_per_task=3).ranks) == 2
    message, hint = refused(node, tasks_per_node=3, cpus_per_task=3)
    assert message == f"3 ranks of 3 cores need 9 cores; {has}"
    assert hint == "at most 2 such ranks fit; --share-cores lets ranks share cores"
    assert refused(node, tasks_per_node=2, cpus_per_task=4)[1] == (
        "at most 1 such rank fits; --share-cores lets ranks share cores"
    )
    assert refused(node, tasks_per_node=1, cpus_per_task=7) == (
        f"1 rank of 7 cores needs 7 cores; {has}",
        "request at most 6 cores per rank",
    )
    assert refused(node, tasks_per_node=4, cpus_per_task=7)[1] == "request at most 1 core per rank"
    assert refused(node, tasks_per_node=7, cpus_per_task=7)[1] == "request at most 1 core per rank"
    granted = msgspec.structs.replace(machine([8]), allowed=frozenset(range(5)))
    assert "(8 in all, 0 reserved, 3 not granted)" in refused(granted, tasks_per_node=6)[0]
    nothing = msgspec.structs.replace(machine([2]), allowed=frozenset())
    assert refused(nothing, tasks_per_node=1)[0].startswith("no core can be used: this node has 0 usable")


def test_threads_per_core_are_those_of_the_node_and_of_the_grant() -> None:
    node = machine([4], threads=2)
    assert lists(bound(node, 2, threads_per_core=2)) == ["0-1,4-5", "2-3,6-7"]
    assert refused(node, tasks_per_node=1, threads_per_core=3)[0] == (
        "threads_per_core is 3; this node has 2 threads per core"
    )
    granted = msgspec.structs.replace(node, allowed=frozenset(range(4)))
    message, hint = refused(granted, tasks_per_node=1, threads_per_core=2)
    assert message == "threads_per_core is 2, but no core has that many granted threads"
    assert "0-3" in (hint or "")
    assert lists(bound(granted, 2)) == ["0-1", "2-3"]
    one = bound(machine([4]), 2, threads_per_core=2)
    assert one.notes == ("no core is known to have 2 threads; ranks get all CPUs of their share",)
    half = msgspec.structs.replace(node, allowed=frozenset(range(5)))
    assert lists(bound(half, 2, threads_per_core=2)) == ["0-1,4", "2-3"], "one core has both threads"


def test_ranks_that_share_cores_get_their_width_where_it_is_there() -> None:
    """Three ranks on two cores; four ranks of three cores on six: their starts are spread evenly."""
    assert lists(bound(machine([2]), 3, share_cores=True)) == ["0", "0", "1"]
    assert lists(bound(machine([6]), 4, share_cores=True, cpus_per_task=3)) == ["0-2", "1-3", "3-5", "3-5"]
    assert lists(bound(machine([6]), 2, share_cores=True, cpus_per_task=3)) == ["0-2", "3-5"]
    shared = bound(machine([2]), 3, share_cores=True)
    assert shared.notes == ("cores 0 are shared by several ranks",)
    threads = bound(machine([1], threads=4), 2, share_cores=True, threads_per_core=4)
    assert lists(threads) == ["0-1", "2-3"], "of a shared core each has its own threads"
    assert lists(bound(machine([1], threads=2), 3, share_cores=True, threads_per_core=2)) == ["0", "0", "1"]


@in_one_test(
    "capacity, count, load, wanted",
    [
        ([8, 8], 2, None, [1, 1]),
        ([8, 8], 3, None, [2, 1]),
        ([16, 4], 3, None, [3, 0]),  # five cores each; the small part could not serve one
        ([16, 4], 5, None, [4, 1]),
        ([8, 8], 1, [1, 0], [0, 1]),
        ([8, 8], 2, [2, 0], [0, 2]),
        ([4, 4, 4], 2, None, [1, 1, 0]),
        ([1, 9], 2, None, [0, 2]),
    ],
)
def test_ranks_are_dealt_where_the_smallest_share_is_largest(
    capacity: list[int], count: int, load: list[int] | None, wanted: list[int]
) -> None:
    assert balanced_counts(capacity, count, load) == wanted


def test_neighbouring_nodes_are_cut_where_it_is_nearest_to_equal() -> None:
    of_five = bound(machine([4] * 5), 2, cpus_per_task=8)
    assert lists(of_five) == ["0-7", "12-19"], "of two equally near borders the later one"
    assert lists(bound(machine([4] * 5), 2)) == ["0-9", "10-19"], "whole nodes would be too unequal"
    assert lists(bound(machine([6, 2, 2, 2]), 2)) == ["0-5", "6-11"]
    assert lists(bound(machine([2, 2, 2, 6]), 2)) == ["0-5", "6-11"]


def test_gpus_of_unknown_or_empty_nodes_are_said_with_their_numbers() -> None:
    node = machine([4, 4], gpu_numa=(0, None, 7))
    notes = bound(node, 3).notes
    assert "GPU 1: NUMA node unknown; ranks are spread over the node's cores" in notes
    assert "GPU 2: NUMA node 7 has no CPUs; ranks get cores of other NUMA nodes" in notes
    denied = msgspec.structs.replace(machine([4, 4], gpu_numa=(0, 1)), allowed=frozenset(range(4)))
    assert (
        "GPU 1: no core of NUMA node 1 is usable; ranks get cores of other NUMA nodes"
        in bound(denied, 2).notes
    )
    idle = bound(machine([4, 4], gpu_numa=(0, 1)), 1, gpus_per_task=1)
    assert lists(idle) == ["0-3"]
    assert "4 usable cores stay idle: 4-7" in idle.notes
    one = bound(machine([3]), 1, cpus_per_task=2)
    assert one.notes == ("1 usable core stays idle: 2",)


def test_more_ranks_than_a_node_has_cores_get_some_elsewhere() -> None:
    node = machine([2, 4], gpu_numa=(0, 0, 0, 1))
    binding = bound(node, 4)
    assert (
        "NUMA node 0 has 2 usable cores for 3 ranks: ranks 2 (in GPU order) get cores of other NUMA nodes"
        in (binding.notes)
    )
    assert [rank.numa for rank in binding.ranks] == [(0,), (0,), (1,), (1,)]


def test_gpus_that_know_their_cores_keep_ranks_near_them_where_there_are_enough() -> None:
    """Two L3 groups of four cores in one NUMA node; a GPU is near the second one, another near the first."""

    def node(*near: range, reserved: tuple[int, ...] = ()) -> NodeTopology:
        gpus = tuple(Gpu(index=at, numa=0, cpus=frozenset(cpus)) for at, cpus in enumerate(near))
        return msgspec.structs.replace(machine([8], l3_size=4, reserved_cores=reserved), gpus=gpus)

    crossed = node(range(4, 8), range(4))
    assert lists(bound(crossed, 2)) == ["4-7", "0-3"]
    assert lists(bound(crossed, 2, order="numa")) == ["0-3", "4-7"]
    assert lists(bound(node(range(4, 8), range(4, 8)), 2)) == ["4-5", "6-7"]
    few = node(range(4, 5), range(4, 5))
    assert lists(bound(few, 2)) == ["0-3", "4-7"], "one core for two ranks: they divide the node"
    gone = node(range(4, 8), range(4), reserved=(4, 5, 6, 7))
    assert lists(bound(gone, 2)) == ["0-1", "2-3"], "no core near the first GPU may be used"


def test_a_rank_with_gpus_on_two_nodes_leaves_one_to_a_rank_without() -> None:
    """Four GPUs on two nodes of two cores; two ranks have two each, a third none."""
    node = machine([2, 2], gpu_numa=(0, 1, 0, 1))
    both = bound(node, 2, gpus_per_task=2)
    assert [rank.numa for rank in both.ranks] == [(0, 1), (0, 1)]
    alone = bound(machine([1, 1, 1], gpu_numa=(0, 1)), 2, gpus_per_task=1)
    assert [rank.cpus for rank in alone.ranks] == [(0,), (1,)]


def test_a_nic_is_that_of_the_ranks_cpus_else_of_its_node() -> None:
    nics = (Nic(name="a", numa=0), Nic(name="b", numa=0), Nic(name="c", numa=1))
    node = msgspec.structs.replace(machine([4, 4]), nics=nics)
    assert [rank.nic for rank in bound(node, 4).ranks] == ["a", "b", "c", "c"]
    assert [rank.nic for rank in bound(node, 8).ranks] == ["a", "a", "b", "b", *"cccc"]
    near = (Nic(name="a", numa=0, cpus=frozenset((2, 3))), *nics[1:])
    node = msgspec.structs.replace(machine([4]), nics=near)
    assert [rank.nic for rank in bound(node, 2).ranks] == ["b", "a"] or [
        rank.nic for rank in bound(node, 2).ranks
    ] == ["a", "a"]
    assert [rank.nic for rank in bound(msgspec.structs.replace(machine([4]), nics=nics[2:]), 2).ranks] == [
        None
    ] * 2


def test_cores_of_unknown_node_count_as_one_more_part() -> None:
    """Firmware that omits CPUs from all nodes: they are a part of their own."""
    node = machine([4, 4])
    cores = tuple(
        core if at < 6 else msgspec.structs.replace(core, numa=None) for at, core in enumerate(node.cores)
    )
    nodes = (node.numa_nodes[0], NumaNode(id=1, cpus=frozenset((4, 5))))
    odd = msgspec.structs.replace(node, cores=cores, numa_nodes=nodes)
    assert lists(bound(odd, 4)) == ["0-1", "2-3", "4-5", "6-7"]


# --- lists by hand ----------------------------------------------------------------------------------------


def said(node: NodeTopology, kind: Kind, text: str, **more: Any) -> list[str]:
    return [finding.message for finding in judge(node, kind, text, **more).findings]


def test_lists_of_another_length_than_the_ranks_are_said_with_what_slurm_does() -> None:
    node = machine([8])
    assert said(node, "map", "0,1", tasks=2) == []
    assert said(node, "map", "0,1", tasks=4) == [
        "2 entries for 4 ranks: Slurm starts over, rank 2 gets rank 0's CPUs"
    ]
    assert said(node, "map", "0,1,2,3", tasks=1) == ["4 entries for 1 rank: the last 3 are never used"]
    judge(node, "map", "0", tasks=1)
    with pytest.raises(BadInputError, match="tasks_per_node is 0"):
        judge(node, "map", "0", tasks=0)


def test_entries_are_read_as_srun_reads_them() -> None:
    node = machine([16])
    for kind, text, cpus in (
        ("mask", "0xf,0xf0", [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ("map", "0x7,'1'".replace("'", ""), [(7,), (1,)]),
        ("map", "0xF", [(15,)]),
        ("map", " 3 , 4 ", [(3,), (4,)]),
        ("map", "'map_cpu:3,4'", [(3,), (4,)]),
        ("map", "5*1,6", [(5,), (6,)]),
        ("mask", "0x3*2", [(0, 1), (0, 1)]),
    ):
        found = judge(node, kind, text)  # type: ignore[arg-type]
        assert [rank.cpus for rank in found.ranks] == cpus, text
    for text in ("0x", "0xg", "0x1234567", "1234567", "-1", "3*", "3*0", "3*x", "3*9000"):
        (message, *_) = said(node, "map", text)
        assert message.startswith(f"'{text}' cannot be read: "), text
    assert [rank.cpus for rank in judge(node, "map", "0x000003").ranks] == [(3,)]


def test_decimal_numbers_in_masks_are_taken_for_cpus_only_where_all_of_them_are() -> None:
    node = lumi_like()
    hint = "the entries look like CPU numbers, but masks are hexadecimal"
    assert said(node, "mask", "49,57,17,25,1,9,33,41")[0] == hint
    assert hint not in said(node, "mask", "49"), "one entry"
    assert hint not in said(node, "mask", "49,999"), "this node has no CPU 999"
    assert hint not in said(node, "map", "48,57")


def test_cores_in_more_groups_than_would_hold_them_are_said() -> None:
    """One NUMA node with two L3 groups of four cores."""
    node = machine([8], l3_size=4)
    assert said(node, "mask", "0xf") == []
    assert said(node, "mask", "0x1f") == [], "five cores need two groups"
    assert said(node, "mask", "0x33,0xcc") == [
        "CPUs 0-1,4-5 lie in 2 L3 groups though fewer would hold them",
        "CPUs 2-3,6-7 lie in 2 L3 groups though fewer would hold them",
    ]
    assert said(node, "mask", "0x1f,0xe0") == [], "five cores, and three of the other group"
    two = machine([4, 4], l3_size=4)
    assert said(two, "mask", "0x33,0xcc")[0] == "CPUs 0-1,4-5 lie on NUMA nodes 0-1"
    assert said(two, "mask", "0xff") == [], "one rank on a node has both"


def test_cores_that_ranks_share_are_said_with_the_first_that_has_them() -> None:
    node = machine([4])
    assert said(node, "mask", "0x3,0x2,0xc") == ["shares core 1 with rank 0"]
    assert said(node, "mask", "0x3,0x3") == ["shares cores 0-1 with rank 0"]
    assert said(node, "mask", "0x1,0x2,0x3") == ["shares core 0 with rank 0", "shares core 1 with rank 1"]


def test_a_report_says_what_would_be_right_and_counts_ranks() -> None:
    node = msgspec.structs.replace(machine([4, 4]), gpus=(Gpu(index=0, numa=0), Gpu(index=1, numa=1)))
    assert report(judge(node, "map", "0,4")).endswith("right: 2 ranks, each on its own cores near its GPU")
    assert report(judge(machine([4]), "map", "0")).endswith("right: 1 rank, each on its own cores")
    wrong = report(judge(node, "map", "4,0"))
    assert "rank 0: CPU 4 (NUMA node 1): not near GPU 0 (NUMA node 0)\n" in wrong
    assert "CPU 0 would be right" in wrong
    assert "right: " not in wrong
    mask = report(judge(node, "mask", "0xf0,0xf"))
    assert "CPUs 0-3 (0xf) would be right" in mask
