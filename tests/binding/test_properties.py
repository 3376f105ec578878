"""Properties that hold on every node, tested on generated machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.binding.compute import bind
from hpclaunch.binding.dialects import mask_cpu
from hpclaunch.binding.judge_masks import judge
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding, Order
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import Core, NodeTopology
from tests.binding.machines import machine, machines, usable_cores
from tests.how_much import examples

pytestmark = pytest.mark.slow
checked = settings(max_examples=examples(60), deadline=None)

ORDERS: st.SearchStrategy[Order] = st.sampled_from(["gpu", "numa"])


def tasks_for(topology: NodeTopology, number: int) -> int:
    """Return a number of ranks that the node holds."""
    return 1 + number % len(usable_cores(topology))


def cores_of(topology: NodeTopology, cpus: tuple[int, ...]) -> set[int]:
    return {at for at, core in enumerate(topology.cores) if set(core.cpus) & set(cpus)}


def bound_or_refused(topology: NodeTopology, request: BindingRequest) -> NodeBinding | BadInputError:
    try:
        return bind(topology, request)
    except BadInputError as error:
        return error


@checked
@given(machines(), st.integers(0, 200), ORDERS)
def test_ranks_get_different_cores_inside_the_cpuset(
    topology: NodeTopology, number: int, order: Order
) -> None:
    tasks = tasks_for(topology, number)
    binding = bind(topology, BindingRequest(tasks_per_node=tasks, order=order))
    assert [rank.local_rank for rank in binding.ranks] == list(range(tasks))
    taken: set[int] = set()
    for rank in binding.ranks:
        assert rank.cpus
        assert list(rank.cpus) == sorted(set(rank.cpus))
        assert set(rank.cpus) <= topology.usable
        cores = cores_of(topology, rank.cpus)
        assert not cores & taken
        taken |= cores
        assert rank.numa == tuple(sorted({topology.cores[at].numa or 0 for at in cores}))


@checked
@given(machines(), st.integers(0, 200), ORDERS)
def test_a_rank_is_on_the_numa_node_of_its_gpu_whenever_the_node_has_room(
    topology: NodeTopology, number: int, order: Order
) -> None:
    tasks = tasks_for(topology, number)
    binding = bind(topology, BindingRequest(tasks_per_node=tasks, order=order))
    home = {gpu.index: gpu.numa for gpu in topology.gpus}
    room = {
        numa: sum(core.numa == numa for core in usable_cores(topology)) for numa in {*home.values()} - {None}
    }
    wanted = {
        rank.local_rank: {home[gpu] for gpu in rank.gpus if room.get(home[gpu])} for rank in binding.ranks
    }
    crowded = {numa for numa in room if sum(numa in homes for homes in wanted.values()) > (room[numa] or 0)}
    for rank in binding.ranks:
        homes = wanted[rank.local_rank]
        if homes and not homes & crowded:
            assert set(rank.numa) <= homes


@checked
@given(machines(), st.integers(0, 200), st.none() | st.integers(1, 4))
def test_a_rank_spans_l3_groups_only_where_it_must_or_shares_would_differ(
    topology: NodeTopology, number: int, width: int | None
) -> None:
    tasks = tasks_for(topology, number)
    binding = bound_or_refused(topology, BindingRequest(tasks_per_node=tasks, cpus_per_task=width))
    if isinstance(binding, BadInputError) or any(core.l3 is None for core in topology.cores):
        return
    sizes = Counter((core.numa, core.l3) for core in usable_cores(topology))
    ranks_of = Counter(rank.numa for rank in binding.ranks)
    for rank in binding.ranks:
        if len(rank.numa) == 1 and len(rank.gpus) < 2 and len(rank.l3) > 1:
            held = [size for (numa, _), size in sizes.items() if numa == rank.numa[0]]
            mine = len(cores_of(topology, rank.cpus))
            # No group alone holds as many cores; or not all groups together hold the ranks of the NUMA node
            # equally; or a group smaller than a share would be idle.
            fit = sum(size // mine for size in held)
            assert max(held) < mine or fit < ranks_of[rank.numa] or min(held) < mine


@checked
@given(machines(), st.integers(1, 40))
def test_gpus_are_assigned_by_the_rule(topology: NodeTopology, tasks: int) -> None:
    count = len(topology.gpus)
    binding = bind(topology, BindingRequest(tasks_per_node=tasks, share_cores=True))
    for rank in binding.ranks:
        first, end = rank.local_rank * count // tasks, (rank.local_rank + 1) * count // tasks
        if tasks > count:
            end = first + 1 if count else first
        assert rank.gpus == tuple(range(first, end))


@checked
@given(st.integers(1, 6), st.integers(1, 12), st.sampled_from([1, 2, 4]), st.integers(0, 100), st.booleans())
def test_all_cores_are_used_on_an_even_node_without_reservation(
    nodes: int, cores: int, threads: int, number: int, gpus: bool
) -> None:
    topology = machine([cores] * nodes, threads=threads, gpu_numa=tuple(range(nodes))[::-1] if gpus else ())
    tasks = tasks_for(topology, number)
    if gpus and -(-tasks // nodes) > cores:
        return
    binding = bind(topology, BindingRequest(tasks_per_node=tasks, threads_per_core=threads))
    assert {cpu for rank in binding.ranks for cpu in rank.cpus} == topology.cpus


@checked
@given(machines(), st.integers(0, 200), st.integers(1, 3), ORDERS)
def test_cpus_per_task_is_exact_or_refused(
    topology: NodeTopology, number: int, width: int, order: Order
) -> None:
    request = BindingRequest(tasks_per_node=tasks_for(topology, number), cpus_per_task=width, order=order)
    binding = bound_or_refused(topology, request)
    if isinstance(binding, BadInputError):
        assert str(width) in binding.message
        return
    assert {len(cores_of(topology, rank.cpus)) for rank in binding.ranks} == {width}


def renumbered(topology: NodeTopology, new: Callable[[int], int]) -> NodeTopology:
    """Return the node with other CPU numbers."""

    def cpus(old: frozenset[int] | None) -> frozenset[int] | None:
        return None if old is None else frozenset(new(cpu) for cpu in old)

    replace = msgspec.structs.replace
    return replace(
        topology,
        cores=tuple(replace(core, cpus=tuple(new(cpu) for cpu in core.cpus)) for core in topology.cores),
        numa_nodes=tuple(replace(node, cpus=cpus(node.cpus)) for node in topology.numa_nodes),
        gpus=tuple(replace(gpu, cpus=cpus(gpu.cpus)) for gpu in topology.gpus),
        reserved=cpus(topology.reserved),
        allowed=cpus(topology.allowed),
    )


@checked
@given(machines(), st.integers(0, 200), ORDERS, st.integers(1, 5), st.integers(0, 9000))
def test_other_cpu_numbers_in_the_same_order_give_the_same_cores(
    topology: NodeTopology, number: int, order: Order, step: int, start: int
) -> None:
    request = BindingRequest(tasks_per_node=tasks_for(topology, number), order=order)
    plain = bind(topology, request)
    moved = bind(renumbered(topology, lambda cpu: start + step * cpu), request)
    for one, other in zip(plain.ranks, moved.ranks, strict=True):
        assert tuple(start + step * cpu for cpu in one.cpus) == other.cpus
        assert (one.gpus, one.numa, one.l3, one.nic) == (other.gpus, other.numa, other.l3, other.nic)


@checked
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([None, 4]),
    st.integers(0, 100),
    st.lists(st.integers(0, 4), max_size=6),
)
def test_the_numbering_of_sibling_threads_does_not_matter(
    cores: list[int], threads: int, l3_size: int | None, number: int, gpu_numa: list[int]
) -> None:
    gpus = [numa % len(cores) for numa in gpu_numa]
    spread = machine(cores, threads=threads, l3_size=l3_size, gpu_numa=gpus)
    adjacent = machine(cores, threads=threads, l3_size=l3_size, gpu_numa=gpus, adjacent=True)
    request = BindingRequest(tasks_per_node=tasks_for(spread, number), threads_per_core=threads)

    def by_core(topology: NodeTopology, binding: NodeBinding) -> list[set[int]]:
        return [cores_of(topology, rank.cpus) for rank in binding.ranks]

    assert by_core(spread, bind(spread, request)) == by_core(adjacent, bind(adjacent, request))


@checked
@given(machines(), st.integers(0, 200), st.integers(1, 8))
def test_threads_per_core_takes_the_first_granted_threads(
    topology: NodeTopology, number: int, threads: int
) -> None:
    request = BindingRequest(tasks_per_node=tasks_for(topology, number), threads_per_core=threads)
    most = max(len(topology.usable.intersection(core.cpus)) for core in usable_cores(topology))
    binding = bound_or_refused(topology, request)
    if isinstance(binding, BadInputError):
        assert threads > most
        return
    # Where no core has siblings, known or not, every CPU is a core: there is nothing to refuse.
    assert threads <= most or max(len(core.cpus) for core in topology.cores) == 1
    used = {cpu for rank in binding.ranks for cpu in rank.cpus}
    for core in topology.cores:
        granted = [cpu for cpu in core.cpus if cpu in topology.usable]
        if used.intersection(core.cpus):
            assert used.intersection(core.cpus) == set(granted[:threads])


@checked
@given(machines(), st.integers(0, 200))
def test_numa_order_lists_ranks_by_their_cores(topology: NodeTopology, number: int) -> None:
    request = BindingRequest(tasks_per_node=tasks_for(topology, number), order="numa")
    first = [min(rank.cpus) for rank in bind(topology, request).ranks]
    if all(core.cpus == tuple(sorted(core.cpus)) for core in topology.cores) and topology.allowed is None:
        assert first == sorted(first)


@checked
@given(machines(), st.integers(1, 60), st.sampled_from([None, 1, 2]))
def test_shared_cores_stay_inside_the_cpuset(topology: NodeTopology, tasks: int, width: int | None) -> None:
    request = BindingRequest(tasks_per_node=tasks, cpus_per_task=width, share_cores=True)
    binding = bound_or_refused(topology, request)
    if isinstance(binding, BadInputError):
        assert width
        return
    for rank in binding.ranks:
        assert rank.cpus
        assert set(rank.cpus) <= topology.usable


@checked
@given(
    machines(),
    st.builds(
        BindingRequest,
        tasks_per_node=st.integers(-1, 70),
        cpus_per_task=st.none() | st.integers(-1, 20),
        gpus_per_task=st.none() | st.integers(-1, 9),
        threads_per_core=st.integers(-1, 9),
        order=ORDERS,
        share_cores=st.booleans(),
    ),
)
def test_any_request_is_answered_or_refused_with_a_message(
    topology: NodeTopology, request: BindingRequest
) -> None:
    binding = bound_or_refused(topology, request)
    if isinstance(binding, BadInputError):
        assert binding.message
        return
    assert len(binding.ranks) == request.tasks_per_node
    assert all(rank.cpus and set(rank.cpus) <= topology.usable for rank in binding.ranks)


@checked
@given(machines(), st.integers(0, 200), ORDERS)
def test_a_computed_binding_is_right(topology: NodeTopology, number: int, order: Order) -> None:
    binding = bind(topology, BindingRequest(tasks_per_node=tasks_for(topology, number), order=order))
    assert judge(topology, "mask", mask_cpu(binding), order=order).findings == ()


def test_a_large_node_with_many_cpus() -> None:
    topology = machine([64] * 16, threads=2, l3_size=8, gpu_numa=[numa % 16 for numa in range(64)])
    assert max(topology.cpus) == 2047
    binding = bind(topology, BindingRequest(tasks_per_node=256, threads_per_core=2))
    assert {cpu for rank in binding.ranks for cpu in rank.cpus} == topology.cpus
    assert all(len(rank.l3) == 1 for rank in binding.ranks)


def test_sparse_cpu_numbers_above_1024() -> None:
    cores = tuple(Core(cpus=(cpu,), numa=0) for cpu in (3, 1024, 1025, 4000))
    binding = bind(NodeTopology(cores=cores), BindingRequest(tasks_per_node=2))
    assert [rank.cpus for rank in binding.ranks] == [(3, 1024), (1025, 4000)]
