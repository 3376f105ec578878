"""Parts of a layout on a node of 64 cores and 4 GPUs: shares of a node, threads, allocations, restarts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.binding.node_binding import NodeBinding, RankBinding
from hpclaunch.errors import BadInputError
from hpclaunch.plan import layout
from hpclaunch.plan.layout import JobPlace, check_fit, cost_of, node_share, threads_line
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.request_rules import QueueChoice
from hpclaunch.scheduler.scheduler_interface import Allocation
from hpclaunch.site.schema import Billing, FrameworkCores, Node, Queue, SiteGpu, SiteProfile, Threads
from hpclaunch.topology.node_topology import Core, NodeTopology, NumaNode
from tests.in_one_test import in_one_test
from tests.profiles import shipped

PART = QueueChoice(name="shared", queue=Queue(whole_node=False), reason="")


def request(**asked: Any) -> JobRequest:
    return JobRequest(site="x", command=Command(argv=("./a",)), **{"exclusive": False, **asked})


def profile(gpus: int = 4, **more: Any) -> SiteProfile:
    base = shipped("generic-slurm")
    facts: dict[str, Any] = {"memory_request": "512G", **more}
    node = Node(cpu_model="x", cores=64, gpus=tuple(SiteGpu() for _ in range(gpus)), **facts)
    return replace(base, node=node, binding=replace(base.binding, cpu="at_start", confined=True))


@in_one_test(
    "asked, tasks, gpus, cores, memory",
    [
        ({}, 1, 1, 16, "131072M"),  # one GPU of four: a quarter
        ({}, 2, 2, 16, "262144M"),
        ({"gpus_per_task": 2}, 1, 2, 32, "262144M"),
        ({"gpus_per_task": 2}, 2, 4, 32, "524288M"),
        ({"cpus_per_task": 48}, 1, 1, 48, "393216M"),  # its cores are more than a quarter
        ({"cpus_per_task": 99}, 1, 1, 99, "524288M"),
        ({"gpus_per_task": 0}, 2, 0, 1, "16384M"),  # two cores of 64
        ({"memory": "1G"}, 1, 1, 16, None),
        ({"exclusive": True}, 2, 4, 32, "524288M"),
        ({"exclusive": True, "gpus_per_task": 0}, 2, 0, 32, "524288M"),
    ],
)
def test_a_part_of_a_node_is_that_of_its_gpus_or_of_its_cores(
    asked: dict[str, Any], tasks: int, gpus: int, cores: int, memory: str | None
) -> None:
    share = node_share(request(**asked), profile(), PART, tasks, by_local_rank=False)
    assert share is not None
    assert (share.gpus, share.cores, share.memory) == (gpus, cores, memory)


def test_ranks_bind_themselves_where_no_other_job_has_their_cores() -> None:
    def binds(confined: bool, **asked: Any) -> bool:
        here = profile()
        here = replace(here, binding=replace(here.binding, confined=confined))
        share = node_share(request(**asked), here, PART, 1, by_local_rank=False)
        assert share is not None
        return share.at_start is not None

    assert binds(True)
    assert not binds(True, binding="off")
    assert not binds(False)
    assert binds(False, exclusive=True)
    assert binds(False, cpus_per_task=64), "all its cores"
    assert not binds(False, cpus_per_task=63)
    some = node_share(request(), profile(), PART, 1, by_local_rank=False)
    whole = node_share(request(exclusive=True), profile(), PART, 1, by_local_rank=False)
    none = node_share(request(gpus_per_task=0), profile(), PART, 1, by_local_rank=False)
    assert [one and one.at_start and one.at_start.some_gpus for one in (some, whole, none)] == [
        True,
        False,
        False,
    ]
    off = replace(profile(), binding=replace(profile().binding, cpu="cores"))
    assert node_share(request(), off, PART, 1, by_local_rank=False) is None


def test_slices_of_a_gpu_serve_one_rank_of_a_framework_that_counts_local_ranks() -> None:
    sliced = profile(gpu_slices=True, gpu_type="1g.10gb")
    for asked, tasks, by_local_rank, fine in (
        ({"framework": "torch"}, 2, True, False),
        ({"framework": "torch"}, 1, True, True),
        ({"framework": "torch"}, 2, False, True),
        ({"framework": "torch", "gpus_per_task": 0}, 2, True, True),
        ({}, 2, True, True),
    ):
        if fine:
            assert node_share(request(**asked), sliced, PART, tasks, by_local_rank=by_local_rank)
        else:
            with pytest.raises(BadInputError, match="2 ranks"):
                node_share(request(**asked), sliced, PART, tasks, by_local_rank=by_local_rank)


def test_threads_that_a_site_documents_hold_where_a_rank_has_more_cores() -> None:
    here = profile()
    here = replace(
        here, binding=replace(here.binding, threads_for={"torch": Threads(value=8, reason="ours")})
    )
    for asked, cores, threads, reason in (
        ({"framework": "torch"}, 9, 8, "threads for each rank: ours"),
        ({"framework": "torch"}, 8, 8, "as there are cores"),
        ({"framework": "torch"}, 4, 4, "as there are cores"),
        ({"framework": "torch", "cpus_per_task": 9}, 9, 9, "as there are cores"),
        ({"framework": "jax"}, 9, 9, "as there are cores"),
        ({}, 0, 1, "as there are cores"),
    ):
        line = threads_line(request(**asked), here, cores, "as there are cores")
        assert (line.text, line.reason) == (f"export OMP_NUM_THREADS={threads}", reason)


def test_cores_that_a_site_documents_hold_for_its_number_of_ranks() -> None:
    here = profile()
    documented = FrameworkCores(cores=("0-3", "8,12"), reason="ours")
    here = replace(here, binding=replace(here.binding, cores_for={"torch": documented}))
    assert layout.documented_cores(request(framework="torch"), here, 2) == documented
    assert layout.documented_cores(request(framework="torch"), here, 1) is None
    assert layout.documented_cores(request(framework="jax"), here, 2) is None
    for asked in ({"cpus_per_task": 4}, {"threads_per_core": 2}):
        assert layout.documented_cores(request(framework="torch", **asked), here, 2) is None
    node = NodeTopology(
        cores=tuple(Core(cpus=(cpu,), numa=cpu // 8, l3=cpu // 4) for cpu in range(16)),
        numa_nodes=tuple(NumaNode(id=at, cpus=frozenset(range(8 * at, 8 * at + 8))) for at in range(2)),
    )
    ranks = NodeBinding(
        ranks=tuple(RankBinding(local_rank=at, cpus=(0,), gpus=(at,), numa=(0,)) for at in (0, 1))
    )
    moved = layout.with_documented_cores(ranks, documented, node)
    assert [(rank.cpus, rank.gpus, rank.numa, rank.l3) for rank in moved.ranks] == [
        ((0, 1, 2, 3), (0,), (0,), (0,)),
        ((8, 12), (1,), (1,), (2, 3)),
    ]
    assert layout.with_documented_cores(ranks, None, node) == ranks


def test_an_allocation_has_room_or_says_what_it_has() -> None:
    has = Allocation(job_id="77", nodes=2, cpus_per_node=16)
    check_fit(has, request(cpus_per_task=4, threads_per_core=2), 2, 2)
    with pytest.raises(BadInputError, match="3 nodes requested; the allocation 77 has 2"):
        check_fit(has, request(), 3, 1)
    with pytest.raises(
        BadInputError, match=r"17 CPUs per node requested \(17 ranks\); the allocation 77 has 16"
    ):
        check_fit(has, request(), 1, 17)
    with pytest.raises(BadInputError, match="32 CPUs per node"):
        check_fit(has, request(cpus_per_task=4, threads_per_core=2), 1, 4)
    check_fit(replace(has, cpus_per_node=None), request(), 1, 99)
    for asked in ({"after": ("1",)}, {"begin": "2026-12-01"}, {"array": "0-3"}, {"max_restarts": 1}):
        with pytest.raises(
            BadInputError, match="is for jobs in the queue, this one runs in the allocation 77"
        ):
            check_fit(has, request(**asked), 1, 1)


def test_a_cost_is_a_product_whose_factors_are_said() -> None:
    rule = Billing(unit="node-hours", per_node_hour=2.0)
    cost = cost_of(rule, 3, 5400, {"runs": 2, "jobs": 1})
    assert cost.amount == 3 * 1.5 * 2.0 * 2
    assert cost.text == "18 node-hours: 3 nodes x 01:30:00 x 2 node-hours per node and hour x 2 runs"
    assert cost_of(rule, 1, 3600).amount == 2.0


def supervised(time: str | None = "01:00:00", site: str = "generic-pbs", **asked: Any) -> Any:
    """The supervision of a job; PBS sends no signal before the limit, so the script counts itself."""
    wanted = JobRequest(site=site, command=Command(argv=("./a",)), nodes=1, time=time, **asked)
    return make_plan(wanted, shipped(site), None, JobPlace()).supervision


def test_a_job_is_supervised_where_it_restarts_or_may_be_idle() -> None:
    assert supervised() is None
    idle = supervised(idle_timeout="10m")
    assert (idle.max_restarts, idle.idle_s, idle.timer_s) == (0, 600, None)
    again = supervised(max_restarts=2, warn_before="5m")
    assert (again.max_restarts, again.idle_s, again.timer_s) == (2, None, 3300)
    assert supervised(site="generic-slurm", max_restarts=2, warn_before="5m").timer_s is None
    assert supervised(None, "local", max_restarts=2, warn_before="5m").timer_s is None, "it has no limit"
    assert supervised("00:05:01", max_restarts=1, warn_before="5m").timer_s == 1
    with pytest.raises(BadInputError, match="5m"):
        supervised("00:05:00", max_restarts=1, warn_before="5m")
    with pytest.raises(BadInputError, match="must be at least 0"):
        supervised(max_restarts=-1)


def test_settings_that_were_left_open_are_listed_with_where_they_come_from() -> None:
    def origins(**asked: Any) -> dict[str, tuple[str, str]]:
        wanted = JobRequest(site="generic-slurm", command=Command(argv=("./a",)), **asked)
        plan = make_plan(wanted, shipped("generic-slurm"), None, JobPlace())
        return {one.name: (str(one.value), one.origin) for one in plan.settings}

    open_ones = origins()
    assert open_ones["time"] == ("00:30:00", "default")
    assert open_ones["nodes"][0] == "1"
    assert "time" not in origins(time="01:00:00")
    assert "nodes" not in origins(nodes=2)
