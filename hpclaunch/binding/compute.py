"""From a node and a request to the CPUs, GPUs and NIC of each local rank. Pure: data in, data out.

Cores go from a NUMA node to its GPUs and from each GPU to its ranks, in order, by whole L3 groups where they
are known. docs/explanation/binding.md explains the rules and their reasons.

Inside this module a core is its index in ``NodeTopology.cores`` and a *block* is a list of such indices,
ascending: the cores that may be used plus the reserved ones between them, which mark where slots begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heapreplace

import msgspec

from hpclaunch.binding.node_binding import BindingRequest, NodeBinding, RankBinding
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NodeTopology

Block = list[int]


def bind(topology: NodeTopology, request: BindingRequest) -> NodeBinding:
    """Compute which CPUs, GPUs, memory nodes and NIC each local rank of one node gets.

    The answer lies inside ``topology.usable``; no two ranks share a core unless ``request.share_cores``.
    The time depends on the size of the node only, never on the number of nodes.
    Raises BadInputError, with the numbers, where the request does not fit the node.
    """
    machine = _machine(topology, request)
    _check(machine, request)
    gpus = list(topology.gpus) if request.gpus_per_task != 0 else []
    if request.order == "numa":
        gpus = _sorted_by_cores(machine, gpus)
    gpus_of = assign_gpus(gpus, request)
    cores: dict[int, set[int]] = {rank: set() for rank in range(request.tasks_per_node)}
    for node in _assign_numa_nodes(machine, gpus, gpus_of):
        for rank, block in _split_node(machine, node).items():
            cores[rank].update(machine.usable(block))
    chosen = [_limited(machine, rank, sorted(cores[rank]), gpus_of[rank]) for rank in cores]
    if request.order == "numa":
        ranking = sorted(range(len(chosen)), key=lambda rank: (chosen[rank], rank))
        chosen, gpus_of = [chosen[rank] for rank in ranking], [gpus_of[rank] for rank in ranking]
    return _node_binding(machine, chosen, gpus_of)


def bind_gpus_only(topology: NodeTopology, request: BindingRequest) -> NodeBinding:
    """Assign the GPUs alone, for a node whose CPUs no source lists: ranks get GPUs but no CPUs.

    Raises BadInputError where there are too few GPUs.
    """
    if request.tasks_per_node < 1:
        raise BadInputError(f"tasks_per_node is {request.tasks_per_node}", "it must be at least 1")
    gpus = list(topology.gpus) if request.gpus_per_task != 0 else []
    ranks = tuple(
        RankBinding(
            local_rank=rank,
            cpus=(),
            gpus=tuple(gpu.index for gpu in own),
            numa=_known(gpu.numa for gpu in own),
        )
        for rank, own in enumerate(assign_gpus(gpus, request))
    )
    return NodeBinding(ranks=ranks, notes=("no source lists the CPUs of this node: ranks have GPUs only",))


class _Machine(msgspec.Struct, frozen=True):
    """The node as this request sees it."""

    topology: NodeTopology
    request: BindingRequest
    threads: tuple[tuple[int, ...], ...]
    """CPUs to use on each core; empty: the core is reserved or not granted."""
    reserved: frozenset[int]
    numa: tuple[int | None, ...]
    notes: list[str] = []

    @property
    def cores(self) -> tuple[Core, ...]:
        return self.topology.cores

    @property
    def width(self) -> int:
        """Cores that a rank needs at least."""
        return self.request.cpus_per_task or 1

    def usable(self, block: Iterable[int]) -> Block:
        """Return the cores of a block that may be used."""
        return [core for core in block if self.threads[core]]


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


def _machine(topology: NodeTopology, request: BindingRequest) -> _Machine:
    usable = topology.usable
    numa_of_cpu = {cpu: node.id for node in reversed(topology.numa_nodes) for cpu in node.cpus}
    threads, reserved, numa = [], set(), []
    for index, core in enumerate(topology.cores):
        if topology.reserved.intersection(core.cpus):
            reserved.add(index)
        cpus = () if index in reserved else tuple(cpu for cpu in core.cpus if cpu in usable)
        threads.append(cpus[: max(request.threads_per_core, 1)])
        numa.append(core.numa if core.numa is not None else numa_of_cpu.get(core.cpus[0]))
    return _Machine(topology, request, tuple(threads), frozenset(reserved), tuple(numa))


_LEAST = {"tasks_per_node": 1, "cpus_per_task": 1, "threads_per_core": 1, "gpus_per_task": 0}


def _check(machine: _Machine, request: BindingRequest) -> None:
    """Refuse what no node could give, and what this node cannot."""
    _check_numbers(request)
    if not machine.cores:
        raise BadInputError(
            "no source lists the CPUs of this node", "give --lscpu, --numactl, --hwloc or --sysfs"
        )
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


def _check_cores(machine: _Machine, tasks: int, usable: int) -> None:
    """Refuse more cores for all ranks together than are usable."""
    width = machine.width
    if tasks * width <= usable:
        return
    if width <= usable:
        hint = f"at most {usable // width} such ranks fit; --share-cores lets ranks share cores"
    else:
        hint = f"request at most {usable // tasks or 1} cores per rank"
    of_cores = f" of {width} cores" if width > 1 else ""
    raise BadInputError(f"{tasks} ranks{of_cores} need {tasks * width} cores; {_inventory(machine)}", hint)


def _check_threads(machine: _Machine, granted: int) -> None:
    """Refuse more threads per core than there are; where each CPU counts as a core, note it instead."""
    wanted, threads_of_core = machine.request.threads_per_core, max(len(core.cpus) for core in machine.cores)
    if wanted == 1 or wanted <= granted:
        return
    if threads_of_core == 1:
        machine.notes.append(f"no core is known to have {wanted} threads; ranks get all CPUs of their share")
    elif wanted > threads_of_core:
        raise BadInputError(f"threads_per_core is {wanted}; this node has {threads_of_core} threads per core")
    else:
        raise BadInputError(
            f"threads_per_core is {wanted}, but no core has that many granted threads",
            f"granted and not reserved: CPUs {format_cpu_list(machine.topology.usable)}",
        )


def _inventory(machine: _Machine) -> str:
    cores = len(machine.cores)
    usable = sum(1 for threads in machine.threads if threads)
    reserved = len(machine.reserved)
    return (
        f"this node has {usable} usable cores ({cores} in all, {reserved} reserved, "
        f"{cores - usable - reserved} not granted)"
    )


def _sorted_by_cores(machine: _Machine, gpus: list[Gpu]) -> list[Gpu]:
    """Sort GPUs by the first core near them; those of unknown place come last."""
    nodes = _numa_nodes(machine)

    def first_core(gpu: Gpu) -> int:
        home = _gpu_node(machine, gpu, nodes)
        if home is None:
            return len(machine.cores)
        return min(_local_cores(machine, gpu, home) or home.block)

    return sorted(gpus, key=lambda gpu: (first_core(gpu), gpus.index(gpu)))


def assign_gpus(gpus: list[Gpu], request: BindingRequest) -> list[tuple[Gpu, ...]]:
    """Return each rank's GPUs: floor(rG/T) to floor((r+1)G/T)-1, or floor(rG/T) with more ranks than GPUs.

    ``gpus_per_task`` overrides this rule. Raises BadInputError where there are too few.
    """
    tasks, count, each = request.tasks_per_node, len(gpus), request.gpus_per_task
    if each:
        if tasks * each > count:
            raise BadInputError(
                f"{tasks} ranks of {each} GPUs need {tasks * each} GPUs; this node has {count}",
                "omit gpus_per_task to let ranks share GPUs" if count else None,
            )
        return [tuple(gpus[rank * each : (rank + 1) * each]) for rank in range(tasks)]
    if tasks <= count:
        return [tuple(gpus[rank * count // tasks : (rank + 1) * count // tasks]) for rank in range(tasks)]
    return [tuple(gpus[rank * count // tasks : rank * count // tasks + 1]) for rank in range(tasks)]


# --- From ranks to NUMA nodes ---------------------------------------------------------------------------


def _numa_nodes(machine: _Machine) -> list[_Numa]:
    """Return the NUMA nodes that have usable cores, in the order of their first core."""
    blocks: dict[int | None, Block] = {}
    for core in range(len(machine.cores)):
        if machine.threads[core] or core in machine.reserved:
            blocks.setdefault(machine.numa[core], []).append(core)
    nodes = [
        _Numa(id=node, block=block, capacity=len(machine.usable(block))) for node, block in blocks.items()
    ]
    return [node for node in nodes if node.capacity]


def _local_cores(machine: _Machine, gpu: Gpu, node: _Numa) -> Block:
    """Return the cores of the node that a source calls local to the GPU; empty where it does not say."""
    return [core for core in node.block if gpu.cpus and gpu.cpus.intersection(machine.cores[core].cpus)]


def _gpu_node(machine: _Machine, gpu: Gpu, nodes: list[_Numa]) -> _Numa | None:
    """Return the GPU's NUMA node; None: unknown, or it has no usable cores."""
    if gpu.numa is not None:
        return next((node for node in nodes if node.id == gpu.numa), None)
    near = [node for node in nodes if machine.usable(_local_cores(machine, gpu, node))]
    if not near or (len(near) == len(nodes) > 1):
        return None
    # Local to several NUMA nodes (a package): the one with most cores per GPU.
    return max(near, key=lambda node: node.capacity / (len(node.groups) + 1))


def _assign_numa_nodes(machine: _Machine, gpus: list[Gpu], gpus_of: list[tuple[Gpu, ...]]) -> list[_Numa]:
    """Give every rank a NUMA node or several: those of its GPUs, else one with cores to spare."""
    nodes = _numa_nodes(machine)
    _assign_by_gpu(machine, gpus, gpus_of, nodes)
    if not machine.request.share_cores:
        for node in nodes:
            _remove_excess_ranks(machine, node, nodes)
    placed = {rank for node in nodes for rank in node.ranks()}
    unplaced = [rank for rank in range(len(gpus_of)) if rank not in placed]
    if not placed and len(unplaced) < len(nodes):
        _assign_whole_nodes(nodes, unplaced)
    else:
        _assign_spare_cores(machine, nodes, unplaced)
    return nodes


def _assign_by_gpu(
    machine: _Machine, gpus: list[Gpu], gpus_of: list[tuple[Gpu, ...]], nodes: list[_Numa]
) -> None:
    """Give ranks the NUMA nodes of their GPUs."""
    unplaced: list[Gpu] = []
    for gpu in gpus:
        ranks = [rank for rank, own in enumerate(gpus_of) if gpu in own]
        if (home := _gpu_node(machine, gpu, nodes)) is not None:
            home.groups.append(_RankGroup(gpu, ranks))
        elif ranks:
            unplaced.append(gpu)
    _note_unplaced(machine, unplaced)


def _assign_whole_nodes(nodes: list[_Numa], ranks: list[int]) -> None:
    """Give each of fewer ranks than NUMA nodes a run of whole ones."""
    runs = _contiguous_runs([node.capacity for node in nodes], len(ranks))
    for rank, run in zip(ranks, runs, strict=True):
        for at in run:
            nodes[at].groups.append(_RankGroup(None, [rank]))


def _assign_spare_cores(machine: _Machine, nodes: list[_Numa], ranks: list[int]) -> None:
    """Give each rank the NUMA node where most cores per rank remain."""
    if not machine.request.share_cores:
        _make_room(nodes, len(ranks))
    capacities, loads = [node.capacity for node in nodes], [len(node.ranks()) for node in nodes]
    remaining = iter(ranks)
    for node, count in zip(nodes, _balanced_counts(capacities, len(ranks), loads), strict=True):
        node.groups += [_RankGroup(None, [next(remaining)]) for _ in range(count)]


def _note_unplaced(machine: _Machine, gpus: list[Gpu]) -> None:
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


def _remove_excess_ranks(machine: _Machine, node: _Numa, nodes: list[_Numa]) -> None:
    """Remove the ranks for which the NUMA node has no core, first those that have cores elsewhere too."""
    here = node.ranks()
    if len(here) <= node.capacity:
        return
    elsewhere = {rank for other in nodes if other is not node for rank in other.ranks()}
    leaving = sorted(here, key=lambda rank: (rank not in elsewhere, -rank))[: len(here) - node.capacity]
    node.remove(leaving)
    if moved := sorted(set(leaving) - elsewhere):
        machine.notes.append(
            f"NUMA node {node.id} has {node.capacity} usable cores for {len(here)} ranks: "
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


def _balanced_counts(capacity: Sequence[int], count: int, load: Sequence[int] | None = None) -> list[int]:
    """Return how many of ``count`` ranks each place of ``capacity`` cores gets, ``load`` ranks being there.

    Each next rank goes where most cores per rank remain, to the first of equals (D'Hondt's method): so the
    rank with the fewest cores has as many as possible.
    """
    load = load or [0] * len(capacity)
    given = [0] * len(capacity)
    # Quotients of small integers: equal fractions are equal as floats, different ones differ.
    places = [(-cores / (load[at] + 1), at) for at, cores in enumerate(capacity)]
    heapify(places)
    for _ in range(count):
        at = places[0][1]
        given[at] += 1
        heapreplace(places, (-capacity[at] / (load[at] + given[at] + 1), at))
    return given


def _contiguous_runs(sizes: Sequence[int], count: int) -> list[range]:
    """Cut a row of blocks into ``count`` runs of about equal size; none is empty, the first are larger."""
    runs: list[range] = []
    start, left = 0, sum(sizes)
    for following in range(count - 1, -1, -1):
        end, taken = start, 0
        while end < len(sizes) - following and (end == start or taken * (following + 1) < left):
            taken += sizes[end]
            end += 1
        runs.append(range(start, end))
        start, left = end, left - taken
    return runs


# --- From a NUMA node to its ranks ----------------------------------------------------------------------


def _split_node(machine: _Machine, node: _Numa) -> dict[int, Block]:
    """Split a NUMA node's cores among its ranks."""
    blocks: dict[int, Block] = {}
    for block, groups in _core_pools(machine, node):
        _add_blocks(blocks, _split_pool(machine, block, groups))
    return blocks


def _add_blocks(blocks: dict[int, Block], more: dict[int, Block]) -> None:
    for rank, block in more.items():
        blocks[rank] = sorted({*blocks.get(rank, ()), *block})


def _core_pools(machine: _Machine, node: _Numa) -> list[tuple[Block, list[_RankGroup]]]:
    """Join the groups that have the same local cores; one pool of all cores where these are too few."""
    members: dict[tuple[int, ...], list[_RankGroup]] = {}
    for group in node.groups:
        local = _local_cores(machine, group.gpu, node) if group.gpu else []
        members.setdefault(tuple(local if machine.usable(local) else node.block), []).append(group)
    pools: list[tuple[Block, list[_RankGroup]]] = []
    taken: set[int] = set()
    for cores in sorted(members, key=lambda cores: (len(cores), cores)):
        block = [core for core in cores if core not in taken]
        if not _suffices(machine, block, members[cores]):
            return [(node.block, node.groups)]
        taken.update(block)
        pools.append((block, members[cores]))
    return pools


def _suffices(machine: _Machine, block: Block, groups: list[_RankGroup]) -> bool:
    """Tell whether a block has a core for each rank, or any core where ranks may share cores."""
    ranks = 1 if machine.request.share_cores else len(_ranks(groups))
    return len(machine.usable(block)) >= max(ranks, 1)


def _split_pool(machine: _Machine, block: Block, groups: list[_RankGroup]) -> dict[int, Block]:
    """Split a block among the GPUs that are local to it, then each GPU's part among its ranks.

    The block is split among the ranks directly where that serves them better: with reserved cores, where
    the GPUs' parts would be unequal, and where a rank would get too few cores.
    """
    ranks = _ranks(groups)
    if not ranks:
        return {}
    direct = dict(zip(ranks, _split(machine, block, len(ranks)), strict=True))
    if not any(group.gpu for group in groups):
        return direct
    gpus_have_several_ranks = any(len(group.ranks) > 1 for group in groups)
    if gpus_have_several_ranks and _unequal_in_one_l3(machine, block, len(groups)):
        return direct
    by_gpu = _split_by_gpu(machine, block, groups)

    def fewest(blocks: dict[int, Block]) -> int:
        return min(len(machine.usable(blocks[rank])) for rank in ranks)

    if fewest(by_gpu) < machine.width and fewest(direct) > fewest(by_gpu):
        return direct
    return by_gpu


def _split_by_gpu(machine: _Machine, block: Block, groups: list[_RankGroup]) -> dict[int, Block]:
    blocks: dict[int, Block] = {}
    parts = _split(machine, block, len(groups), for_gpus=True)
    for group, part in zip(groups, parts, strict=True):
        if group.ranks:
            rank_blocks = _split(machine, part, len(group.ranks))
            _add_blocks(blocks, dict(zip(group.ranks, rank_blocks, strict=True)))
    return blocks


def _unequal_in_one_l3(machine: _Machine, block: Block, count: int) -> bool:
    """Tell whether reserved cores of a block in one L3 group prevent ``count`` equal slots."""
    has_reserved = not machine.reserved.isdisjoint(block)
    return (
        has_reserved and len(_l3_groups(machine, block)) == 1 and _equal_slots(machine, block, count) is None
    )


def _l3_groups(machine: _Machine, block: Block) -> list[Block]:
    """Return the block by L3 groups that have a usable core; as one group where they are unknown."""
    groups: dict[int, Block] = {}
    for core in block:
        l3 = machine.cores[core].l3
        if l3 is None:
            return [block]
        groups.setdefault(l3, []).append(core)
    return [group for group in groups.values() if machine.usable(group)] or [block]


def _split(machine: _Machine, block: Block, count: int, *, for_gpus: bool = False) -> list[Block]:
    """Cut a block into ``count`` blocks, by whole L3 groups as long as there are enough of them."""
    groups = _l3_groups(machine, block)
    if count < len(groups):
        return _split_by_groups(machine, block, groups, count)
    cut = _cut_for_gpus if for_gpus else _cut_for_ranks
    blocks: list[Block] = []
    counts = _balanced_counts([len(machine.usable(group)) for group in groups], count)
    for group, number in zip(groups, counts, strict=True):
        blocks += cut(machine, group, number)
    return blocks


def _split_by_groups(machine: _Machine, block: Block, groups: list[Block], count: int) -> list[Block]:
    """Assign whole L3 groups; equal blocks instead where they touch no group more than they need.

    Small groups (two cores each on POWER9) would make ranks unequal for nothing: each spans several anyway.
    """
    sizes = [len(machine.usable(group)) for group in groups]
    runs = _contiguous_runs(sizes, count)
    whole = [[core for at in run for core in groups[at]] for run in runs]
    shares = [sum(sizes[at] for at in run) for run in runs]
    if max(shares) - min(shares) <= 1:
        return whole
    equal = _cut_for_gpus(machine, block, count)
    each_spans_several = len(machine.usable(equal[-1])) > max(sizes)
    if each_spans_several and _touch_fewest_groups(machine, equal, groups):
        return equal
    return whole


def _touch_fewest_groups(machine: _Machine, blocks: list[Block], groups: list[Block]) -> bool:
    """Tell whether each block lies in no more L3 groups than the largest of these groups would need."""
    sizes = [len(machine.usable(group)) for group in groups]
    group_of = {core: at for at, group in enumerate(groups) for core in group}
    for block in blocks:
        cores = machine.usable(block)
        touched = {group_of[core] for core in cores}
        if len(touched) > _fewest([sizes[at] for at in touched], len(cores)):
            return False
    return True


def _fewest(sizes: Iterable[int], cores: int) -> int:
    """Return how many of the largest groups are needed to hold ``cores``."""
    needed = 0
    for size in sorted(sizes, reverse=True):
        if cores <= 0:
            break
        cores -= size
        needed += 1
    return needed


def _cut_for_gpus(machine: _Machine, group: Block, count: int) -> list[Block]:
    """Cut into equal blocks of usable cores, the first get one more; a reserved core joins the next one."""
    size, extra = divmod(len(machine.usable(group)), max(count, 1))
    ends = [(at + 1) * size + min(at + 1, extra) for at in range(count)]
    blocks: list[Block] = [[] for _ in range(count)]
    position = owner = 0
    for core in group:
        while owner + 1 < count and position >= ends[owner]:
            owner += 1
        if count:
            blocks[owner].append(core)
        position += bool(machine.threads[core])
    return blocks


def _cut_for_ranks(machine: _Machine, group: Block, count: int) -> list[Block]:
    """Cut into equal blocks, the first get one more; with reserved cores all get the same number.

    A site that reserves cores wants equal ranks, and both sites that document an answer leave cores idle
    rather than make ranks unequal: LUMI-G (16 ranks: cores 1-3 and 5-7 of each L3 group) uses the same
    places of equal slots, Aurora (12 ranks: 8 of 51 cores each) packs the ranks and leaves the end idle.
    """
    usable, width = machine.usable(group), machine.width
    if count <= 1:
        return [group] * count
    if machine.request.share_cores and len(usable) < count * width:
        width = min(width, len(usable))
        starts = [min(at * len(usable) // count, len(usable) - width) for at in range(count)]
        return [usable[start : start + width] for start in starts]
    if machine.reserved.isdisjoint(group):
        return _cut_for_gpus(machine, usable, count)
    if (slots := _equal_slots(machine, group, count)) is not None:
        return slots
    size = len(usable) // count
    if machine.request.cpus_per_task is not None:
        size = min(size, machine.request.cpus_per_task)
    return [usable[at * size : (at + 1) * size] for at in range(count)]


def _equal_slots(machine: _Machine, group: Block, count: int) -> list[Block] | None:
    """Cut a block with its reserved cores into slots; use the places that are usable in all of them.

    None where the slots would not be equal powers of two, as caches are divided, or would waste more cores
    than unequal shares do.
    """
    slot, rest = divmod(len(group), count)
    if rest or slot & (slot - 1) or not slot:
        return None
    places = [at for at in range(slot) if all(machine.threads[group[n * slot + at]] for n in range(count))]
    if len(places) != len(machine.usable(group)) // count:
        return None
    return [[group[n * slot + at] for at in places] for n in range(count)]


# --- From cores to the answer ---------------------------------------------------------------------------


def _limited(machine: _Machine, rank: int, cores: Block, gpus: tuple[Gpu, ...]) -> Block:
    """Return ``cpus_per_task`` of a rank's cores: of one L3 group where one holds them, else the first."""
    width = machine.width
    if len(cores) < width:
        near = f" near GPU {', '.join(str(gpu.index) for gpu in gpus)}" if gpus else ""
        share = f"{len(cores)} cores{near}"
        raise BadInputError(
            f"rank {rank} needs {width} cores, but its share is {share}; {_inventory(machine)}",
            "request fewer cores per rank or fewer ranks per node",
        )
    if machine.request.cpus_per_task is None:
        return cores
    for group in _l3_groups(machine, cores):
        if len(group) >= width:
            return group[:width]
    return cores[:width]


def _node_binding(machine: _Machine, chosen: list[Block], gpus_of: list[tuple[Gpu, ...]]) -> NodeBinding:
    """Turn the cores chosen for each rank into CPUs, NUMA nodes, L3 groups and NICs."""
    users = Counter(core for cores in chosen for core in cores)
    seen: Counter[int] = Counter()
    ranks: list[RankBinding] = []
    for rank, cores in enumerate(chosen):
        cpus: list[int] = []
        for core in cores:
            cpus += _thread_share(machine.threads[core], seen[core], users[core])
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
    return NodeBinding(
        ranks=tuple(_with_nic(rank, nics.get(rank.local_rank)) for rank in ranks),
        notes=tuple(dict.fromkeys(machine.notes)),
    )


def _known(numbers: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted({number for number in numbers if number is not None}))


def _thread_share(threads: tuple[int, ...], place: int, users: int) -> tuple[int, ...]:
    """Return the threads of the ``place``-th user of a core: its own ones where there are enough."""
    start, end = place * len(threads) // users, (place + 1) * len(threads) // users
    return threads[start : max(end, start + 1)]


def _with_nic(rank: RankBinding, nic: str | None) -> RankBinding:
    return RankBinding(
        local_rank=rank.local_rank, cpus=rank.cpus, gpus=rank.gpus, numa=rank.numa, l3=rank.l3, nic=nic
    )


def _nics(nics: tuple[Nic, ...], ranks: list[RankBinding]) -> dict[int, str]:
    """Assign the NICs near each group of ranks to them in order; ranks with none near get none."""
    members: dict[tuple[str, ...], list[int]] = {}
    for rank in ranks:
        members.setdefault(_near_nics(nics, rank), []).append(rank.local_rank)
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


def _note_leftovers(machine: _Machine, users: Counter[int]) -> None:
    """Note which cores are shared and which stay idle."""
    first = [core.cpus[0] for core in machine.cores]
    if shared := [first[core] for core, count in users.items() if count > 1]:
        machine.notes.append(f"cores {format_cpu_list(shared)} are shared by several ranks")
    idle = [first[core] for core in machine.usable(range(len(first))) if core not in users]
    if idle:
        machine.notes.append(f"{len(idle)} usable cores stay idle: {format_cpu_list(idle)}")
