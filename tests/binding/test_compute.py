"""Bindings of known nodes."""

from __future__ import annotations

import msgspec
import pytest

from hpclaunch.binding.compute import bind, bind_gpus_only
from hpclaunch.binding.dialects import map_cpu, mask_cpu
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding, share_gpus
from hpclaunch.binding.reserved_cores import reserve
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NodeTopology, NumaNode
from tests.binding.machines import bound, lists, lumi_like, machine, with_near_cpus
from tests.in_one_test import in_one_test

LUMI_MASKS = "0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000"


def gpus(binding: NodeBinding) -> list[tuple[int, ...]]:
    return [rank.gpus for rank in binding.ranks]


LUMI_KINDS = [
    pytest.param(lumi_like(), id="L3 groups known"),
    pytest.param(lumi_like(l3_known=False), id="L3 groups unknown"),
    pytest.param(with_near_cpus(lumi_like()), id="GPUs know their CPUs"),
]


@pytest.mark.parametrize("node", LUMI_KINDS)
def test_eight_ranks_on_lumi_g_get_the_documented_masks(node: NodeTopology) -> None:
    binding = bound(node, 8)
    assert mask_cpu(binding) == LUMI_MASKS
    assert map_cpu(binding) == "49,57,17,25,1,9,33,41"
    assert gpus(binding) == [(gpu,) for gpu in range(8)]


@pytest.mark.parametrize("node", LUMI_KINDS)
@pytest.mark.parametrize("cpus_per_task", [None, 3])
def test_sixteen_ranks_on_lumi_g_leave_core_4_of_each_group_idle(
    node: NodeTopology, cpus_per_task: int | None
) -> None:
    binding = bound(node, 16, cpus_per_task=cpus_per_task)
    assert lists(binding) == [
        "49-51", "53-55", "57-59", "61-63", "17-19", "21-23", "25-27", "29-31",
        "1-3", "5-7", "9-11", "13-15", "33-35", "37-39", "41-43", "45-47",
    ]  # fmt: skip
    assert "8 usable cores stay idle: 4,12,20,28,36,44,52,60" in binding.notes


def test_numa_order_reorders_the_gpus() -> None:
    binding = bound(lumi_like(), 4, order="numa")
    assert lists(binding) == ["1-7,9-15", "17-23,25-31", "33-39,41-47", "49-55,57-63"]
    assert gpus(binding) == [(4, 5), (2, 3), (6, 7), (0, 1)]


def test_swapped_numa_nodes_give_swapped_masks() -> None:
    node = lumi_like()
    turned = msgspec.structs.replace(
        node, gpus=tuple(Gpu(index=gpu.index, numa=3 - (gpu.numa or 0)) for gpu in node.gpus)
    )
    assert map_cpu(bound(turned, 8)) == "1,9,33,41,49,57,17,25"


def test_reversed_gpus_reverse_the_cpu_list() -> None:
    node = machine([8] * 4, threads=2, gpu_numa=(3, 2, 1, 0))
    assert lists(bound(node, 4)) == ["24-31", "16-23", "8-15", "0-7"]
    assert lists(bound(node, 4, threads_per_core=2)) == [
        "24-31,56-63",
        "16-23,48-55",
        "8-15,40-47",
        "0-7,32-39",
    ]
    assert lists(bound(node, 8, cpus_per_task=2))[:3] == ["24-25", "28-29", "16-17"]


def test_masks_of_more_than_64_bits() -> None:
    node = machine([72] * 4, gpu_numa=range(4))
    first = "0x" + "f" * 18
    assert mask_cpu(bound(node, 4)).split(",") == [first + "0" * 18 * place for place in range(4)]


@in_one_test("tasks, size", [(12, 8), (6, 17), (48, 2), (96, 1)])
@in_one_test("gpu_numa", [(), (0, 0, 0, 1, 1, 1)])
def test_aurora_packs_equal_ranks_and_leaves_the_end_idle(
    tasks: int, size: int, gpu_numa: tuple[int, ...]
) -> None:
    node = machine([52, 52], l3_size=52, gpu_numa=gpu_numa, reserved_cores=(0, 52))
    half = tasks // 2
    wanted = [
        format_cpu_list(range(first + place * size, first + (place + 1) * size))
        for first in (1, 53)
        for place in range(half)
    ]
    assert lists(bound(node, tasks)) == wanted


def test_first_blocks_get_one_more() -> None:
    node = machine([8], gpu_numa=(0, 0, 0))
    assert lists(bound(node, 3)) == ["0-2", "3-5", "6-7"]
    assert lists(bound(machine([8]), 3)) == ["0-2", "3-5", "6-7"]


def test_no_gpu_spreads_ranks_over_numa_nodes() -> None:
    node = machine([4, 4])
    assert lists(bound(node, 1)) == ["0-7"]
    assert lists(bound(node, 2)) == ["0-3", "4-7"]
    assert lists(bound(node, 3)) == ["0-1", "2-3", "4-7"]
    assert lists(bound(machine([2] * 4), 3)) == ["0-2", "3-5", "6-7"]


def test_fewer_ranks_than_numa_nodes_get_whole_ones_where_that_is_equal() -> None:
    assert [len(rank.numa) for rank in bound(machine([2] * 24), 8).ranks] == [3] * 8
    assert sorted(len(rank.cpus) for rank in bound(machine([2] * 24), 7).ranks) == [6, *[7] * 6]


def test_small_l3_groups_do_not_make_ranks_unequal() -> None:
    assert lists(bound(machine([10], l3_size=2), 2)) == ["0-4", "5-9"]
    assert lists(bound(machine([24], l3_size=8), 2)) == ["0-11", "12-23"]
    assert lists(bound(machine([64], l3_size=8), 3)) == ["0-21", "22-42", "43-63"]


def test_uneven_numa_nodes_get_ranks_by_their_cores() -> None:
    assert lists(bound(machine([8, 4]), 6)) == ["0-1", "2-3", "4-5", "6-7", "8-9", "10-11"]


def test_gpus_of_unknown_place_are_spread_with_a_note() -> None:
    node = machine([4, 4], gpu_numa=(None, None))
    binding = bound(node, 2)
    assert lists(binding) == ["0-3", "4-7"]
    assert binding.notes == ("GPU 0-1: NUMA node unknown; ranks are spread over the node's cores",)
    assert lists(bound(node, 1)) == ["0-7"]


def test_a_gpu_on_a_memory_only_node_is_noted() -> None:
    node = machine([4], gpu_numa=(1,))
    node = msgspec.structs.replace(node, numa_nodes=(*node.numa_nodes, NumaNode(id=1)))
    binding = bound(node, 1)
    assert lists(binding) == ["0-3"]
    assert binding.notes == ("GPU 0: NUMA node 1 has no CPUs; ranks get cores of other NUMA nodes",)


def test_a_cpuset_without_the_gpus_cores_is_noted() -> None:
    node = msgspec.structs.replace(machine([4, 4], gpu_numa=(1,)), allowed=frozenset({0, 1}))
    binding = bound(node, 1)
    assert lists(binding) == ["0-1"]
    assert binding.notes == ("GPU 0: no core of NUMA node 1 is usable; ranks get cores of other NUMA nodes",)


def test_offline_cpus_do_not_count_and_half_a_core_may_be_granted() -> None:
    cores = (Core(cpus=(4,), numa=1), Core(cpus=(5, 9), numa=1), Core(cpus=(6, 10)))
    node = NodeTopology(cores=cores, allowed=frozenset({4, 9, 6, 10}))
    assert lists(bound(node, 1, threads_per_core=2)) == ["4,6,9-10"]
    assert lists(bound(node, 3)) == ["4", "9", "6"]


def test_a_rank_with_cpus_per_task_stays_in_one_l3_group() -> None:
    node = machine([8], l3_size=4)
    node = msgspec.structs.replace(node, allowed=frozenset(range(2, 8)))
    assert lists(bound(node, 1, cpus_per_task=3)) == ["4-6"]
    assert lists(bound(node, 1, cpus_per_task=5)) == ["2-6"]


def test_ranks_that_share_a_core_get_different_threads() -> None:
    node = machine([2], threads=2)
    shared = bound(node, 4, share_cores=True, threads_per_core=2)
    assert lists(shared) == ["0", "2", "1", "3"]
    assert "cores 0-1 are shared by several ranks" in shared.notes
    assert lists(bound(node, 3, share_cores=True)) == ["0", "0", "1"]


def test_the_nearest_nics_are_assigned_in_order() -> None:
    node = msgspec.structs.replace(
        machine([4, 4]),
        nics=(Nic(name="a", numa=0), Nic(name="b", numa=0), Nic(name="c", cpus=frozenset({6}))),
    )
    assert [rank.nic for rank in bound(node, 4).ranks] == ["a", "b", None, "c"]


@in_one_test(
    "tasks, gpus, each, wanted",
    [
        (3, 8, None, [(0, 1), (2, 3, 4), (5, 6, 7)]),
        (5, 2, None, [(0,), (0,), (0,), (1,), (1,)]),
        (2, 8, 1, [(0,), (1,)]),
        (2, 8, 0, [(), ()]),
        (2, 0, None, [(), ()]),
    ],
)
def test_gpus_are_shared_by_one_rule(
    tasks: int, gpus: int, each: int | None, wanted: list[tuple[int, ...]]
) -> None:
    assert share_gpus(range(gpus), tasks, each) == wanted


def test_gpus_per_task_overrides_the_rule() -> None:
    node = lumi_like()
    assert gpus(bound(node, 2, gpus_per_task=1)) == [(0,), (1,)]
    assert gpus(bound(node, 2, gpus_per_task=0)) == [(), ()]


REFUSALS = [
    ({"tasks_per_node": 0}, "tasks_per_node is 0"),
    ({"tasks_per_node": 57}, "57 ranks need 57 cores; this node has 56 usable cores (64 in all, 8 reserved"),
    ({"tasks_per_node": 8, "cpus_per_task": 8}, "8 ranks of 8 cores need 64 cores"),
    (
        {"tasks_per_node": 2, "gpus_per_task": 1, "cpus_per_task": 20},
        "rank 0 needs 20 cores, but its share is 7 cores near GPU 0",
    ),
    ({"tasks_per_node": 8, "gpus_per_task": 2}, "8 ranks of 2 GPUs need 16; this node has 8"),
    ({"tasks_per_node": 1, "threads_per_core": 4}, "threads_per_core is 4; this node has 2 threads per core"),
    ({"tasks_per_node": 1, "cpus_per_task": 0}, "cpus_per_task is 0"),
    ({"tasks_per_node": 1, "gpus_per_task": -1}, "gpus_per_task is -1"),
]


@in_one_test("request_, message", REFUSALS)
def test_refusals_give_the_numbers(request_: dict[str, int], message: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        bind(lumi_like(), msgspec.convert(request_, BindingRequest))
    assert refusal.value.message.startswith(message)


def test_a_small_cpuset_is_refused_with_what_is_missing() -> None:
    node = msgspec.structs.replace(lumi_like(), allowed=frozenset({1, 2}))
    with pytest.raises(
        BadInputError, match=r"8 ranks need 8 cores; this node has 2 usable cores.*54 not granted"
    ):
        bound(node, 8)


def test_gpus_of_a_node_without_cpus_are_assigned() -> None:
    node = NodeTopology(cores=(), gpus=(Gpu(index=0, numa=1), Gpu(index=1)))
    binding = bind_gpus_only(node, BindingRequest(tasks_per_node=2))
    assert [(rank.gpus, rank.numa, rank.cpus) for rank in binding.ranks] == [((0,), (1,), ()), ((1,), (), ())]
    alone = bind_gpus_only(node, BindingRequest(tasks_per_node=1))
    assert [rank.gpus for rank in alone.ranks] == [(0, 1)]
    with pytest.raises(BadInputError, match="it must be at least 1"):
        bind_gpus_only(node, BindingRequest(tasks_per_node=0))
    with pytest.raises(BadInputError, match="no source lists the CPUs"):
        bound(node, 1)


def test_reserving_the_first_core_of_each_l3_group() -> None:
    free = msgspec.structs.replace(lumi_like(), reserved=frozenset())
    assert reserve(free, "first-core-per-l3") == lumi_like()
    unknown = msgspec.structs.replace(lumi_like(l3_known=False), reserved=frozenset())
    guessed = reserve(unknown, "first-core-per-l3")
    assert guessed.reserved == lumi_like().reserved
    assert "one per GPU is assumed (8 groups" in guessed.notes[-1]


def test_all_threads_of_a_reserved_core_are_reserved() -> None:
    assert reserve(machine([4], threads=2), "1").reserved == {1, 5}


@in_one_test(
    "what, message",
    [
        ("64", "cannot reserve CPUs 64: the node has 0-7"),
        (
            "first-core-per-l3",
            "the L3 groups of this node are unknown, and NUMA node 0 has 8 cores for 0 GPUs",
        ),
        ("1-", "bad CPU list"),
    ],
)
def test_impossible_reservations_are_refused(what: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        reserve(machine([8]), what)
