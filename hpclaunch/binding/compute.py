"""From a node and a request to the CPUs, GPUs and NIC of each local rank. Pure: data in, data out.

Ranks go to the NUMA nodes of their GPUs and divide the cores there; ranks without a GPU divide the whole
machine. docs/explanation/binding.md explains the rules and their reasons, ``core_shares`` does the dividing.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from math import gcd, lcm

import msgspec

from hpclaunch.amounts import counted, grouped
from hpclaunch.binding.core_shares import L3, Block, Machine, balanced_counts, machine_for, split
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding, RankBinding, idle_note, share_gpus
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import Gpu, Nic, NodeTopology


@lru_cache(maxsize=64)  # a port and lint ask for the same several times
def bind(topology: NodeTopology, request: BindingRequest) -> NodeBinding:
    """Compute which CPUs, GPUs, memory nodes and NIC each local rank of one node gets.

    The answer lies inside ``topology.usable``; no two ranks share a core unless ``request.share_cores``.
    The time depends on the size of the node only, never on the number of nodes.
    Raises BadInputError, with the numbers, where the request does not fit the node.
    """
    machine = machine_for(topology, request)
    _check(machine, request)
    gpus = list(topology.gpus)
    if request.order == "numa":
        gpus = _sorted_by_cores(machine, gpus)
    gpus_of = share_gpus(gpus, request.tasks_per_node, request.gpus_per_task)
    shares = [sorted(machine.usable(share)) for share in _shares(machine, gpus, gpus_of)]
    chosen = [_limited(machine, rank, share, gpus_of[rank]) for rank, share in enumerate(shares)]
    if request.order == "numa":
        ranking = sorted(range(len(chosen)), key=lambda rank: (chosen[rank], rank))
        chosen, gpus_of = [chosen[rank] for rank in ranking], [gpus_of[rank] for rank in ranking]
    return _node_binding(machine, chosen, gpus_of)


def bind_gpus_only(topology: NodeTopology, request: BindingRequest) -> NodeBinding:
    """Assign the GPUs alone, for a node whose CPUs no source lists. Raises BadInputError: too few GPUs."""
    if request.tasks_per_node < 1:
        raise BadInputError(f"tasks_per_node is {request.tasks_per_node}", "it must be at least 1")
    gpus = list(topology.gpus)
    ranks = tuple(
        RankBinding(
            local_rank=rank,
            cpus=(),
            gpus=tuple(gpu.index for gpu in own),
            numa=_known(gpu.numa for gpu in own),
        )
        for rank, own in enumerate(share_gpus(gpus, request.tasks_per_node, request.gpus_per_task))
    )
    return NodeBinding(ranks=ranks, notes=("no source lists the CPUs of this node: ranks have GPUs only",))


class _RankGroup(msgspec.Struct):
    """Ranks that get cores of one NUMA node together: those of a GPU there, or ranks without a GPU."""

    gpu: Gpu | None
    ranks: list[int]


class _Numa(msgspec.Struct):
    """One NUMA node with usable cores, and the ranks that get cores there."""

    id: int | None
    block: Block
    capacity: int
    """Number of its usable cores."""
    groups: list[_RankGroup] = []

    def ranks(self) -> list[int]:
        """Return the ranks that get cores here, each once, in order of their groups."""
        return _ranks(self.groups)

    def remove(self, ranks: Collection[int]) -> None:
        """Give these ranks no cores here."""
        for group in self.groups:
            group.ranks = [rank for rank in group.ranks if rank not in ranks]


def _ranks(groups: Iterable[_RankGroup]) -> list[int]:
    return list(dict.fromkeys(rank for group in groups for rank in group.ranks))


_LEAST = {"tasks_per_node": 1, "cpus_per_task": 1, "threads_per_core": 1, "gpus_per_task": 0}


def _check(machine: Machine, request: BindingRequest) -> None:
    """Refuse what no node could give, and what this node cannot."""
    _check_numbers(request)
    if not machine.cores:
        raise BadInputError.case("binding: no CPUs")
    usable = [threads for threads in machine.threads if threads]
    if not usable:
        raise BadInputError(f"no core can be used: {_inventory(machine)}")
    _check_threads(machine, max(len(threads) for threads in usable))
    if not request.share_cores:
        _check_cores(machine, request.tasks_per_node, len(usable))


def _check_numbers(request: BindingRequest) -> None:
    for name, least in _LEAST.items():
        value = getattr(request, name)
        if value is not None and value < least:
            raise BadInputError(f"{name} is {value}", f"it must be {'at least 1' if least else '0 or more'}")


def _check_cores(machine: Machine, tasks: int, usable: int) -> None:
    width = machine.width
    if tasks * width <= usable:
        return
    if width <= usable:
        fit = counted(usable // width, "such rank fits", "such ranks fit")
        hint = f"at most {fit}; --share-cores lets ranks share cores"
    else:
        hint = f"request at most {counted(usable // tasks or 1, 'core')} per rank"
    of_cores = f" of {width} cores" if width > 1 else ""
    need = (
        f"{counted(tasks, 'rank')}{of_cores} need{'s' if tasks == 1 else ''} {counted(tasks * width, 'core')}"
    )
    raise BadInputError(f"{need}; {_inventory(machine)}", hint)


def _check_threads(machine: Machine, granted: int) -> None:
    """Refuse more threads per core than there are; where each CPU counts as a core, note it instead."""
    wanted, threads_of_core = machine.request.threads_per_core, max(len(core.cpus) for core in machine.cores)
    if wanted == 1 or wanted <= granted:
        return
    if threads_of_core == 1:
        machine.notes.append(f"no core is known to have {wanted} threads; ranks get all CPUs of their share")
    elif wanted > threads_of_core:
        raise BadInputError(f"threads_per_core is {wanted}; this node has {threads_of_core} threads per core")
    else:
        raise BadInputError.case(
            "binding: threads per core", wanted=wanted, usable=format_cpu_list(machine.topology.usable)
        )


def _inventory(machine: Machine) -> str:
    cores = len(machine.cores)
    usable = sum(1 for threads in machine.threads if threads)
    reserved = len(machine.reserved)
    return (
        f"this node has {counted(usable, 'usable core')} ({cores} in all, {reserved} reserved, "
        f"{cores - usable - reserved} not granted)"
    )


def _sorted_by_cores(machine: Machine, gpus: list[Gpu]) -> list[Gpu]:
    """Sort GPUs by the first core near them; those of unknown place come last."""
    nodes = _numa_nodes(machine)

    def first_core(gpu: Gpu) -> int:
        home = _gpu_node(machine, gpu, nodes)
        if home is None:
            return len(machine.cores)
        return min(_local_cores(machine, gpu, home) or home.block)

    return sorted(gpus, key=lambda gpu: (first_core(gpu), gpus.index(gpu)))


def _numa_nodes(machine: Machine) -> list[_Numa]:
    """Return the NUMA nodes that have usable cores, in the order of the machine."""
    blocks = grouped((machine.numa[core], core) for core in machine.block())
    nodes = [
        _Numa(id=node, block=block, capacity=len(machine.usable(block))) for node, block in blocks.items()
    ]
    return [node for node in nodes if node.capacity]


def _local_cores(machine: Machine, gpu: Gpu, node: _Numa) -> Block:
    """Return the cores of the node that a source calls local to the GPU; empty where it does not say."""
    return [core for core in node.block if gpu.cpus and gpu.cpus.intersection(machine.cores[core].cpus)]


def _gpu_node(machine: Machine, gpu: Gpu, nodes: list[_Numa]) -> _Numa | None:
    """Return the GPU's NUMA node; None: unknown, or it has no usable cores."""
    if gpu.numa is not None:
        return next((node for node in nodes if node.id == gpu.numa), None)
    near = [node for node in nodes if machine.usable(_local_cores(machine, gpu, node))]
    if not near or (len(near) == len(nodes) > 1):
        return None
    # Local to several NUMA nodes (a package): the one with most cores per GPU.
    return max(near, key=lambda node: node.capacity / (len(node.groups) + 1))


def _shares(machine: Machine, gpus: list[Gpu], gpus_of: list[tuple[Gpu, ...]]) -> list[set[int]]:
    """Return each rank's cores: near its GPUs; without known ones, a share of the whole machine."""
    nodes = _numa_nodes(machine)
    unplaced: list[Gpu] = []
    for gpu in gpus:
        ranks = [rank for rank, own in enumerate(gpus_of) if gpu in own]
        if (home := _gpu_node(machine, gpu, nodes)) is not None:
            home.groups.append(_RankGroup(gpu, ranks))
        elif ranks:
            unplaced.append(gpu)
    _note_unplaced(machine, unplaced)
    if not _ranks_on(nodes):
        return [set(share) for share in split(machine, machine.block(), len(gpus_of))]
    if not machine.request.share_cores:
        for node in nodes:
            _remove_excess_ranks(machine, node, nodes)
    _assign_spare_cores(machine, nodes, sorted({*range(len(gpus_of))} - _ranks_on(nodes)))
    return _divided(machine, nodes, len(gpus_of))


def _divided(machine: Machine, nodes: list[_Numa], ranks: int) -> list[set[int]]:
    """Divide the cores of each NUMA node among its ranks; return all cores of each rank."""
    homes = Counter(rank for node in nodes for group in node.groups for rank in group.ranks)
    shares: list[set[int]] = [set() for _ in range(ranks)]
    for block, groups in (pool for node in nodes for pool in _core_pools(machine, node)):
        slots = _slots(machine, block, groups, homes)
        for rank, share in zip(slots, split(machine, block, len(slots)), strict=True):
            shares[rank].update(share)
    return shares


def _ranks_on(nodes: Iterable[_Numa]) -> set[int]:
    return {rank for node in nodes for rank in node.ranks()}


def _assign_spare_cores(machine: Machine, nodes: list[_Numa], ranks: list[int]) -> None:
    """Give each rank the NUMA node where most cores per rank remain."""
    if not machine.request.share_cores:
        _make_room(nodes, len(ranks))
    capacities, loads = [node.capacity for node in nodes], [len(node.ranks()) for node in nodes]
    remaining = iter(ranks)
    for node, count in zip(nodes, balanced_counts(capacities, len(ranks), loads), strict=True):
        node.groups += [_RankGroup(None, [next(remaining)]) for _ in range(count)]


def _note_unplaced(machine: Machine, gpus: list[Gpu]) -> None:
    """Note which GPUs have no NUMA node with usable cores, and why."""
    reasons: dict[str, list[int]] = {}
    for gpu in gpus:
        if gpu.numa is None:
            reason = "NUMA node unknown; ranks are spread over the node's cores"
        elif gpu.numa not in machine.numa:
            reason = f"NUMA node {gpu.numa} has no CPUs; ranks get cores of other NUMA nodes"
        else:
            reason = f"no core of NUMA node {gpu.numa} is usable; ranks get cores of other NUMA nodes"
        reasons.setdefault(reason, []).append(gpu.index)
    for reason, indices in reasons.items():
        machine.notes.append(f"GPU {format_cpu_list(indices)}: {reason}")


def _remove_excess_ranks(machine: Machine, node: _Numa, nodes: list[_Numa]) -> None:
    """Remove the ranks for which the NUMA node has no core, first those that have cores elsewhere too."""
    here = node.ranks()
    if len(here) <= node.capacity:
        return
    elsewhere = {rank for other in nodes if other is not node for rank in other.ranks()}
    leaving = sorted(here, key=lambda rank: (rank not in elsewhere, -rank))[: len(here) - node.capacity]
    node.remove(leaving)
    if moved := sorted(set(leaving) - elsewhere):
        machine.notes.append(
            f"NUMA node {node.id} has {counted(node.capacity, 'usable core')} "
            f"for {counted(len(here), 'rank')}: "
            f"ranks {format_cpu_list(moved)} (in GPU order) get cores of other NUMA nodes"
        )


def _make_room(nodes: list[_Numa], wanted: int) -> None:
    """Take NUMA nodes from ranks that have several until ``wanted`` more ranks have room."""
    room = sum(node.capacity - len(node.ranks()) for node in nodes)
    homes = Counter(rank for node in nodes for rank in node.ranks())
    for node in reversed(nodes):
        for rank in reversed(node.ranks()):
            if room >= wanted:
                return
            if homes[rank] > 1:
                node.remove((rank,))
                homes[rank] -= 1
                room += 1


def _core_pools(machine: Machine, node: _Numa) -> list[tuple[Block, list[_RankGroup]]]:
    """Return blocks of cores with the groups of ranks that divide them: one block where too few are local."""
    members: dict[tuple[int, ...], list[_RankGroup]] = {}
    for group in node.groups:
        local = _local_cores(machine, group.gpu, node) if group.gpu else []
        members.setdefault(tuple(local if machine.usable(local) else node.block), []).append(group)
    pools: list[tuple[Block, list[_RankGroup]]] = []
    taken: set[int] = set()
    for cores in sorted(members, key=lambda cores: (len(cores), cores)):
        block = [core for core in cores if core not in taken]
        needed = 1 if machine.request.share_cores else max(len(_ranks(members[cores])), 1)
        if len(machine.usable(block)) < needed:
            return [(node.block, node.groups)]
        taken.update(block)
        pools.append((block, members[cores]))
    return pools


def _slots(machine: Machine, block: Block, groups: list[_RankGroup], homes: Counter[int]) -> list[int]:
    """Return the rank of each of the equal shares that a block is cut into: usually one share per rank.

    A rank with a half of its GPUs elsewhere (``homes`` counts all of them) gets one share where another rank
    gets two: it has cores there as well.
    """
    here = Counter(rank for group in groups for rank in group.ranks)
    base = lcm(*(homes[rank] for rank in here))
    weights = {rank: count * base // homes[rank] for rank, count in here.items()}
    unit = gcd(*weights.values())
    if machine.request.share_cores or sum(weights.values()) > unit * len(machine.usable(block)):
        return list(here)
    return [rank for rank, weight in weights.items() for _ in range(weight // unit)]


def _limited(machine: Machine, rank: int, cores: Block, gpus: tuple[Gpu, ...]) -> Block:
    """Return ``cpus_per_task`` of a rank's cores: of one L3 group where one holds them, else the first."""
    width = machine.width
    if len(cores) < width:
        near = f" near GPU {', '.join(str(gpu.index) for gpu in gpus)}" if gpus else ""
        need, share = counted(width, "core"), f"{counted(len(cores), 'core')}{near}"
        raise BadInputError.case("cores: few", rank=rank, need=need, share=share, node=_inventory(machine))
    if machine.request.cpus_per_task is None:
        return cores
    for group in machine.parts(cores, L3):
        if len(group) >= width:
            return group[:width]
    return cores[:width]


def _node_binding(machine: Machine, chosen: list[Block], gpus_of: list[tuple[Gpu, ...]]) -> NodeBinding:
    """Turn the cores chosen for each rank into CPUs, NUMA nodes, L3 groups and NICs."""
    users = Counter(core for cores in chosen for core in cores)
    seen: Counter[int] = Counter()
    ranks: list[RankBinding] = []
    for rank, cores in enumerate(chosen):
        cpus: list[int] = []
        for core in cores:
            threads, place, sharing = machine.threads[core], seen[core], users[core]
            start, end = place * len(threads) // sharing, (place + 1) * len(threads) // sharing
            cpus += threads[start : max(end, start + 1)]  # its own ones where there are enough
            seen[core] += 1
        ranks.append(
            RankBinding(
                local_rank=rank,
                cpus=tuple(sorted(cpus)),
                gpus=tuple(gpu.index for gpu in gpus_of[rank]),
                numa=_known(machine.numa[core] for core in cores),
                l3=_known(machine.cores[core].l3 for core in cores),
            )
        )
    nics = _nics(machine.topology.nics, ranks)
    _note_leftovers(machine, users)
    _note_idle_gpus(machine, ranks)
    return NodeBinding(
        ranks=tuple(msgspec.structs.replace(rank, nic=nics.get(rank.local_rank)) for rank in ranks),
        notes=tuple(dict.fromkeys(machine.notes)),
    )


def _known(numbers: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted({number for number in numbers if number is not None}))


def _nics(nics: tuple[Nic, ...], ranks: list[RankBinding]) -> dict[int, str]:
    """Assign the NICs near each group of ranks to them in order; ranks with none near get none."""
    members = grouped((_near_nics(nics, rank), rank.local_rank) for rank in ranks)
    return {
        rank: near[place * len(near) // len(sharing)]
        for near, sharing in members.items()
        if near
        for place, rank in enumerate(sharing)
    }


def _near_nics(nics: tuple[Nic, ...], rank: RankBinding) -> tuple[str, ...]:
    """Return the NICs local to a rank's CPUs, else those of its NUMA nodes."""
    cpus = frozenset(rank.cpus)
    local = tuple(nic.name for nic in nics if nic.cpus and cpus & nic.cpus)
    return local or tuple(nic.name for nic in nics if nic.numa in rank.numa)


def _note_idle_gpus(machine: Machine, ranks: Iterable[RankBinding]) -> None:
    machine.notes.extend(
        idle_note((gpu.index for gpu in machine.topology.gpus), (rank.gpus for rank in ranks))
    )


def _note_leftovers(machine: Machine, users: Counter[int]) -> None:
    """Note which cores are shared and which stay idle."""
    first = [core.cpus[0] for core in machine.cores]
    if shared := [first[core] for core, count in users.items() if count > 1]:
        machine.notes.append(f"cores {format_cpu_list(shared)} are shared by several ranks")
    idle = [first[core] for core in machine.usable(range(len(first))) if core not in users]
    if idle:
        machine.notes.append(
            f"{counted(len(idle), 'usable core stays', 'usable cores stay')} idle: {format_cpu_list(idle)}"
        )
