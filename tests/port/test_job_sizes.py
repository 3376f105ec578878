"""Nodes, ranks, GPUs and times on a small machine of which all is known: 64 cores and 4 GPUs per node."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hpclaunch.port import job_sizes
from hpclaunch.port.job_sizes import SourceSizes, TargetSizes, fit_queue, fit_sizes
from hpclaunch.site.schema import Node, NumaDomain, Queue, Route, SiteGpu, SiteProfile
from tests.in_one_test import in_one_test
from tests.profiles import shipped


def target(gpus: int = 4, cores: int = 64, **more: Any) -> SiteProfile:
    node = Node(cpu_model="x", cores=cores, gpus=tuple(SiteGpu() for _ in range(gpus)), **more)
    return replace(shipped("generic-slurm"), node=node)


@in_one_test(
    "source, nodes, per_node, gpus_per_task, least",
    [
        ((2, 16, 16), 4, 4, 1, 4),
        ((2, 16, 32), 8, 2, 2, 8),
        ((2, 16, 8), 2, 8, None, 2),  # two ranks share a GPU, so eight fit on four
        ((1, 16, 6), 2, 8, None, 2),  # three to a GPU would fit twelve
        ((4, 4, 32), 4, 1, 4, 4),  # eight GPUs for a rank are more than a node has
        ((1, 6, 6), 2, 3, 1, 2),
        ((1, 5, 5), 5, 1, 1, 2),
        ((1, 1, 1), 1, 1, 1, 1),
        ((2, 128, None), 2, 64, None, 2),
        ((1, 128, None), 2, 64, None, 2),
        ((3, 128, 0), 4, 32, None, 3),  # 43 per node there
        ((None, 96, None), 2, 48, None, 2),
    ],
)
def test_the_same_ranks_and_gpus_in_equal_numbers_per_node(
    source: tuple[int | None, int, int | None],
    nodes: int,
    per_node: int,
    gpus_per_task: int | None,
    least: int,
) -> None:
    there = SourceSizes(nodes=source[0], ranks=source[1], gpus=source[2])
    found = fit_sizes(there, target())
    assert (found.nodes, found.tasks_per_node, found.gpus_per_task) == (nodes, per_node, gpus_per_task)
    assert (found.least_nodes, found.same) == (least, source[0] == nodes)


def test_a_machine_that_is_not_described_gets_the_ranks_of_a_node_there() -> None:
    unknown = replace(shipped("generic-slurm"), node=None)
    found = fit_sizes(SourceSizes(nodes=2, ranks=16, gpus=16), unknown)
    assert found.known == {"nodes": 2, "tasks_per_node": 8, "gpus_per_task": 1}
    assert fit_sizes(SourceSizes(ranks=8192), unknown).tasks_per_node == 4096
    no_gpus = fit_sizes(SourceSizes(nodes=2, ranks=16, gpus=16), target(gpus=0))
    assert no_gpus.known == {"nodes": 2, "tasks_per_node": 8}


def test_cores_of_a_rank_are_kept_where_a_node_has_them_and_the_job_no_gpus() -> None:
    def cpus(per_rank: int, gpus: int | None, to: SiteProfile) -> int | None:
        return fit_sizes(SourceSizes(nodes=1, ranks=8, gpus=gpus, cpus_per_rank=per_rank), to).cpus_per_task

    assert cpus(4, None, target(gpus=0)) == 4
    assert cpus(8, 0, target(gpus=0)) == 8
    assert cpus(9, None, target(gpus=0)) == 8, "64 cores, eight ranks"
    assert cpus(4, 8, target()) is None, "the share of a GPU"
    assert cpus(4, None, target()) is None, "whether the job has GPUs is not known"
    assert cpus(4, 0, target()) == 4
    assert cpus(99, 8, replace(shipped("generic-slurm"), node=None)) == 99


def test_the_arithmetic_is_said() -> None:
    def said(nodes: int | None, ranks: int, gpus: int | None, to: SiteProfile) -> str:
        return fit_sizes(SourceSizes(nodes=nodes, ranks=ranks, gpus=gpus), to).said

    assert said(2, 16, 16, target()) == (
        "16 ranks on 2 nodes with 16 GPUs = 4 nodes x 4 ranks with 16 GPUs, 4 per node"
    )
    assert said(4, 4, 32, target()) == (
        "4 ranks on 4 nodes with 32 GPUs = 4 nodes x 1 rank with 16 GPUs, 4 per node: not the same number of "
        "GPUs (32 there)"
    )
    assert said(1, 8, None, target()) == "8 ranks on 1 node = 1 node x 8 ranks"
    assert said(None, 8, 8, target(gpus=0)) == "8 ranks with 8 GPUs = 1 node x 8 ranks"


def test_ranks_that_only_the_run_knows_are_one_per_gpu() -> None:
    for gpus, nodes in ((16, 4), (17, 5), (0, 3), (None, 3)):
        found = fit_sizes(SourceSizes(nodes=3, gpus=gpus), target())
        assert (found.nodes, found.tasks_per_node, found.same) == (nodes, None, nodes == 3)
        assert found.said.startswith("the number of ranks is known at run time only")
    assert fit_sizes(SourceSizes(nodes=3, gpus=16), target(gpus=0)).nodes == 3
    assert TargetSizes().known == {}


def test_reserved_cores_are_not_usable() -> None:
    assert job_sizes.usable_cores(target(reserved_cores="0,32")) == 62
    assert job_sizes.usable_cores(replace(shipped("generic-slurm"), node=None)) is None
    found = fit_sizes(SourceSizes(nodes=1, ranks=64), target(gpus=0, reserved_cores="0,32"))
    assert (found.nodes, found.tasks_per_node) == (2, 32)


def bound(*cores: str, **more: Any) -> SiteProfile:
    """A machine whose ranks hpclaunch binds, with these NUMA nodes."""
    domains = tuple(NumaDomain(id=at, cores=one) for at, one in enumerate(cores))
    profile = target(gpus=0, cores=16, numa=domains, **more)
    return replace(profile, binding=replace(profile.binding, cpu="mask_cpu"))


def test_ranks_get_cores_of_one_numa_node_where_an_equal_share_would_lie_on_two() -> None:
    """Four NUMA nodes of four cores: five ranks get three cores each; two of a node do where it has six."""
    whole = bound("0-3", "4-7", "8-11", "12-15")
    assert job_sizes._cores_of_one_numa_node(whole, 3, None) is None, "whole nodes, if several"
    assert job_sizes._cores_of_one_numa_node(whole, 4, None) is None, "each has its own"
    assert job_sizes._cores_of_one_numa_node(whole, 8, None) is None
    off = replace(whole, binding=replace(whole.binding, cpu="none"))
    assert job_sizes._cores_of_one_numa_node(off, 8, None) is None, "hpclaunch does not bind"
    topology, sizes = job_sizes._numa_nodes(whole)
    assert topology is not None
    assert sizes == [4, 4, 4, 4]
    assert job_sizes._stays_on_one(topology, 8, None, 2)
    assert not job_sizes._stays_on_one(topology, 2, None, 5), "a node has four"
    assert not job_sizes._stays_on_one(topology, 8, None, 9), "it cannot be bound"
    assert fit_sizes(SourceSizes(ranks=16), whole).tasks_per_node == 16
    assert job_sizes._numa_nodes(bound("0-3", "4-7", "8-11", "12-15", reserved_cores="0-3"))[1] == [4, 4, 4]


# --- queues -----------------------------------------------------------------------------------------------

QUEUES = {
    "debug": Queue(max_nodes=2, max_walltime="00:30:00"),
    "regular": Queue(min_nodes=4, max_nodes=100, min_walltime="01:00:00", max_walltime="24:00:00"),
}


def queued(
    nodes: int | None, walltime_s: int | None, queues: dict[str, Queue] | None = None
) -> tuple[Any, ...]:
    found = fit_queue(replace(target(), queues=queues or QUEUES), nodes, walltime_s)
    return found.name, found.nodes, found.walltime_s, found.walltime_why


@in_one_test(
    "nodes, walltime_s, wanted",
    [
        (1, 600, ("debug", None, 600, "")),
        (2, 1800, ("debug", None, 1800, "")),
        (None, None, ("debug", None, None, "")),
        (100, 86400, ("regular", None, 86400, "")),
        (1, 7200, ("debug", None, 1800, "02:00:00 does not fit: debug takes 1 node for 00:30:00")),
        (4, 90000, ("regular", None, 86400, "25:00:00 does not fit: regular takes 4 nodes for 24:00:00")),
        (4, 600, ("regular", None, 3600, "00:10:00 does not fit: regular takes 4 nodes for 01:00:00")),
        (4, None, ("regular", None, 3600, "00:30:00 does not fit: regular takes 4 nodes for 01:00:00")),
        (3, 600, ("debug", 2, 600, "")),
        (101, 7200, ("regular", 100, 7200, "")),
    ],
)
def test_the_first_queue_that_takes_the_job_else_the_time_or_the_nodes_that_fit(
    nodes: int | None, walltime_s: int | None, wanted: tuple[Any, ...]
) -> None:
    assert queued(nodes, walltime_s) == wanted


def test_queues_that_are_to_be_named_come_last_and_those_by_request_never() -> None:
    for_me = {"mine": Queue(by_request=True), "spare": Queue(preemptable=True)}
    assert (
        fit_queue(replace(target(), queues=for_me), 1, 600).why == "no queue of the profile takes such a job"
    )
    only = {"small": Queue(max_nodes=1), "named": Queue(automatic=False, min_nodes=2)}
    found = fit_queue(replace(target(), queues=only), 2, 600)
    assert (found.name, found.why) == (
        "named",
        "the first that fits, though it is only used when it is named",
    )
    assert fit_queue(replace(target(), queues=only), 1, 600).name == "small"
    assert fit_queue(replace(target(), queues=for_me), 1, 600).walltime_s == 600


def test_times_and_nodes_at_which_limits_lie() -> None:
    queues = {
        "a": Queue(min_walltime="02:00:00", max_walltime="10:00:00", max_node_minutes=600),
        "b": Queue(max_walltime="05:00:00", routes=(Route(name="c", max_nodes=9, max_walltime="01:00:00"),)),
    }
    profile = replace(target(), queues=queues)
    assert job_sizes._other_times(profile, 3600, 2) == [7200]
    assert job_sizes._other_times(profile, 7200, 10) == [3600], (
        "600 node minutes are an hour of ten nodes, too"
    )
    assert job_sizes._other_times(profile, 36000, 2) == [18000, 3600]
    assert job_sizes._other_times(profile, 18001, 100) == [18000, 3600, 360]
    assert job_sizes._other_times(profile, 7201, 36001) == [3600], "less than a second is none"
    assert job_sizes._other_nodes(replace(target(), queues=QUEUES), 3) == [2, 4]
    assert job_sizes._other_nodes(replace(target(), queues=QUEUES), 200) == [100, 2]
    assert job_sizes._other_nodes(replace(target(), queues=QUEUES), 2) == [4]
    assert job_sizes._other_nodes(replace(target(), queues=QUEUES), 4) == [2]
