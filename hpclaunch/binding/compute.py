"""From a node and a request to the CPUs, GPUs and NIC of every local rank. Pure: data in, data out.

The way of the cores: NUMA node -> its GPUs -> the ranks of each GPU, in order, by whole L3 groups where they
are known. The rules, with the reason of each, are told in docs/explanation/binding.md.

Inside this module a core is its index in ``NodeTopology.cores`` and a *block* is a list of such indices,
ascending: the cores that may be used plus the reserved ones between them, which mark where slots begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
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
        gpus = _by_cores(machine, gpus)
    gpus_of = gpus_of_ranks(gpus, request)
    nodes = _place(machine, gpus, gpus_of)
    cores: dict[int, set[int]] = {rank: set() for rank in range(request.tasks_per_node)}
    for node in nodes:
        for rank, block in _share_node(machine, node).items():
            cores[rank].update(machine.free(block))
    chosen = [_cut(machine, rank, sorted(cores[rank]), gpus_of[rank]) for rank in cores]
    if request.order == "numa":
        ranking = sorted(range(len(chosen)), key=lambda rank: (chosen[rank], rank))
        chosen, gpus_of = [chosen[rank] for rank in ranking], [gpus_of[rank] for rank in ranking]
    return _answer(machine, chosen, gpus_of)


def deal_gpus(topology: NodeTopology, request: BindingRequest) -> NodeBinding:
    """Deal the GPUs alone, for a node whose CPUs no source tells: ranks without CPUs, near their GPUs.

    Raises BadInputError where the GPUs do not suffice.
    """
    if request.tasks_per_node < 1:
        raise BadInputError(f"tasks_per_node is {request.tasks_per_node}", "it must be at least 1")
    gpus = list(topology.gpus) if request.gpus_per_task != 0 else []
    ranks = tuple(
        RankBinding(
            local_rank=rank,
            cpus=(),
            gpus=tuple(gpu.index for gpu in own),
            numa=tuple(sorted({gpu.numa for gpu in own if gpu.numa is not None})),
        )
        for rank, own in enumerate(gpus_of_ranks(gpus, request))
    )
    return NodeBinding(ranks=ranks, notes=("no source tells the CPUs of this node: ranks have GPUs only",))


class _Machine(msgspec.Struct, frozen=True):
    """The node as this request sees it."""

    topology: NodeTopology
    request: BindingRequest
    threads: tuple[tuple[int, ...], ...]
    """CPUs to use of each core; empty: the core is reserved or not granted."""
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

    def free(self, block: Iterable[int]) -> Block:
        """Return the cores of a block that may be used."""
        return [core for core in block if self.threads[core]]


class _User(msgspec.Struct):
    """Who takes part of a NUMA node's cores: a GPU with its ranks, or ranks without a GPU there."""

    gpu: Gpu | None
    ranks: list[int]


class _Numa(msgspec.Struct):
    """One NUMA node with usable cores, and who is at home there."""

    id: int | None
    block: Block
    capacity: int
    users: list[_User] = []

    def ranks(self) -> list[int]:
        """Return the ranks that get cores here, each once, in order of the users."""
        return list(dict.fromkeys(rank for user in self.users for rank in user.ranks))


def _machine(topology: NodeTopology, request: BindingRequest) -> _Machine:
    usable = topology.usable
    numa_of_cpu = {cpu: node.id for node in reversed(topology.numa_nodes) for cpu in node.cpus}
    threads, reserved, numa = [], set(), []
    for index, core in enumerate(topology.cores):
        if topology.reserved.intersection(core.cpus):
            reserved.add(index)
        free = () if index in reserved else tuple(cpu for cpu in core.cpus if cpu in usable)
        threads.append(free[: max(request.threads_per_core, 1)])
        numa.append(core.numa if core.numa is not None else numa_of_cpu.get(core.cpus[0]))
    return _Machine(topology, request, tuple(threads), frozenset(reserved), tuple(numa))


def _check(machine: _Machine, request: BindingRequest) -> None:
    """Refuse what no node could give, and what this node cannot."""
    for name in ("tasks_per_node", "cpus_per_task", "threads_per_core"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise BadInputError(f"{name} is {value}", "it must be at least 1")
    if request.gpus_per_task is not None and request.gpus_per_task < 0:
        raise BadInputError(f"gpus_per_task is {request.gpus_per_task}", "it must be 0 or more")
    free = [threads for threads in machine.threads if threads]
    if not machine.cores:
        raise BadInputError(
            "no source tells the CPUs of this node", "give --lscpu, --numactl, --hwloc or --sysfs"
        )
    if not free:
        raise BadInputError(f"no core can be used: {_inventory(machine)}")
    _check_threads(machine, max(len(threads) for threads in free))
    tasks, width = request.tasks_per_node, machine.width
    if not request.share_cores and tasks * width > len(free):
        each = f" of {width} cores" if width > 1 else ""
        raise BadInputError(
            f"{tasks} ranks{each} need {tasks * width} cores; {_inventory(machine)}",
            f"at most {len(free) // width} such ranks fit; to let ranks share cores say so (--share-cores)"
            if width <= len(free)
            else f"ask for at most {len(free) // tasks or 1} cores a rank",
        )


def _check_threads(machine: _Machine, granted: int) -> None:
    """Refuse more threads a core than there are; where each CPU counts as a core, note it instead."""
    wanted, smt = machine.request.threads_per_core, max(len(core.cpus) for core in machine.cores)
    if wanted == 1 or wanted <= granted:
        return
    if smt == 1:
        machine.notes.append(
            f"no core is known to have {wanted} threads; ranks get every CPU that falls to them"
        )
    elif wanted > smt:
        raise BadInputError(f"threads_per_core is {wanted}; this node has {smt} threads a core")
    else:
        raise BadInputError(
            f"threads_per_core is {wanted}, but of no core are so many threads granted",
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


def _by_cores(machine: _Machine, gpus: list[Gpu]) -> list[Gpu]:
    """Sort GPUs by the first core near them; those of unknown place come last."""
    nodes = _numa_nodes(machine)

    def first_core(gpu: Gpu) -> int:
        home = _home(machine, gpu, nodes)
        if home is None:
            return len(machine.cores)
        return min(_near(machine, gpu, home) or home.block)

    return sorted(gpus, key=lambda gpu: (first_core(gpu), gpus.index(gpu)))


def gpus_of_ranks(gpus: list[Gpu], request: BindingRequest) -> list[tuple[Gpu, ...]]:
    """Deal GPUs: rank r gets floor(rG/T) to floor((r+1)G/T)-1, or floor(rG/T) with more ranks than GPUs.

    ``gpus_per_task`` overrides. Raises BadInputError where there are too few.
    """
    tasks, count, each = request.tasks_per_node, len(gpus), request.gpus_per_task
    if each:
        if tasks * each > count:
            raise BadInputError(
                f"{tasks} ranks of {each} GPUs need {tasks * each} GPUs; this node has {count}",
                "leave gpus_per_task open to let ranks share GPUs" if count else None,
            )
        return [tuple(gpus[rank * each : (rank + 1) * each]) for rank in range(tasks)]
    if tasks <= count:
        return [tuple(gpus[rank * count // tasks : (rank + 1) * count // tasks]) for rank in range(tasks)]
    return [tuple(gpus[rank * count // tasks : rank * count // tasks + 1]) for rank in range(tasks)]


# --- Who is at home where -------------------------------------------------------------------------------


def _numa_nodes(machine: _Machine) -> list[_Numa]:
    """Return the NUMA nodes that have usable cores, in the order of their first core."""
    blocks: dict[int | None, Block] = {}
    for core in range(len(machine.cores)):
        if machine.threads[core] or core in machine.reserved:
            blocks.setdefault(machine.numa[core], []).append(core)
    nodes = [_Numa(id=node, block=block, capacity=len(machine.free(block))) for node, block in blocks.items()]
    return [node for node in nodes if node.capacity]


def _near(machine: _Machine, gpu: Gpu, node: _Numa) -> Block:
    """Return the cores of the node that a source calls local to the GPU; empty where it does not say."""
    return [core for core in node.block if gpu.cpus and gpu.cpus.intersection(machine.cores[core].cpus)]


def _home(machine: _Machine, gpu: Gpu, nodes: list[_Numa]) -> _Numa | None:
    """Return the GPU's NUMA node; None: unknown, or it has no usable cores."""
    if gpu.numa is not None:
        return next((node for node in nodes if node.id == gpu.numa), None)
    near = [node for node in nodes if machine.free(_near(machine, gpu, node))]
    if not near or (len(near) == len(nodes) > 1):
        return None
    # Local to several NUMA nodes (a package of them): the one with most cores a GPU.
    return max(near, key=lambda node: node.capacity / (len(node.users) + 1))


def _place(machine: _Machine, gpus: list[Gpu], gpus_of: list[tuple[Gpu, ...]]) -> list[_Numa]:
    """Give every rank a home: the NUMA node of its GPU, else one with cores to spare."""
    nodes = _numa_nodes(machine)
    unplaced: list[Gpu] = []
    for gpu in gpus:
        ranks = [rank for rank, own in enumerate(gpus_of) if gpu in own]
        if (home := _home(machine, gpu, nodes)) is not None:
            home.users.append(_User(gpu, ranks))
        elif ranks:
            unplaced.append(gpu)
    _note_unplaced(machine, unplaced)
    if not machine.request.share_cores:
        for node in nodes:
            _evict(machine, node, nodes)
    homes = Counter(rank for node in nodes for rank in node.ranks())
    strays = [rank for rank in range(len(gpus_of)) if rank not in homes]
    if not homes and len(strays) < len(nodes):
        for rank, run in zip(strays, _runs_by_size(nodes, len(strays)), strict=True):
            for node in run:
                node.users.append(_User(None, [rank]))
        return nodes
    if not machine.request.share_cores:
        _make_room(nodes, len(strays))
    counts = _deal([node.capacity for node in nodes], len(strays), [len(node.ranks()) for node in nodes])
    rest = iter(strays)
    for node, count in zip(nodes, counts, strict=True):
        node.users.extend(_User(None, [next(rest)]) for _ in range(count))
    return nodes


def _note_unplaced(machine: _Machine, gpus: list[Gpu]) -> None:
    """Say which GPUs have no home, and why."""
    reasons: dict[str, list[int]] = {}
    for gpu in gpus:
        if gpu.numa is None:
            reason = "NUMA node unknown; ranks are spread over the node's cores"
        elif gpu.numa not in machine.numa:
            reason = f"NUMA node {gpu.numa} has no CPUs; ranks get cores elsewhere"
        else:
            reason = f"no core of NUMA node {gpu.numa} is granted and free; ranks get cores elsewhere"
        reasons.setdefault(reason, []).append(gpu.index)
    for reason, indices in reasons.items():
        machine.notes.append(f"GPU {format_cpu_list(indices)}: {reason}")


def _evict(machine: _Machine, node: _Numa, nodes: list[_Numa]) -> None:
    """Send away the ranks for which the NUMA node has no core left, first those with a second home."""
    here = node.ranks()
    if len(here) <= node.capacity:
        return
    elsewhere = {rank for other in nodes if other is not node for rank in other.ranks()}
    leaving = sorted(here, key=lambda rank: (rank not in elsewhere, -rank))[: len(here) - node.capacity]
    for user in node.users:
        user.ranks = [rank for rank in user.ranks if rank not in leaving]
    if homeless := sorted(set(leaving) - elsewhere):
        machine.notes.append(
            f"NUMA node {node.id} has {node.capacity} usable cores for {len(here)} ranks: "
            f"ranks {format_cpu_list(homeless)} (in GPU order) get cores of other NUMA nodes"
        )


def _make_room(nodes: list[_Numa], wanted: int) -> None:
    """Let ranks that are at home on several NUMA nodes give one up until ``wanted`` more ranks have room."""
    room = sum(node.capacity - len(node.ranks()) for node in nodes)
    homes = Counter(rank for node in nodes for rank in node.ranks())
    for node in reversed(nodes):
        for rank in reversed(node.ranks()):
            if room >= wanted:
                return
            if homes[rank] > 1:
                for user in node.users:
                    user.ranks = [other for other in user.ranks if other != rank]
                homes[rank] -= 1
                room += 1


def _deal(capacity: Sequence[int], count: int, load: Sequence[int] | None = None) -> list[int]:
    """Deal ``count`` ranks to places of ``capacity`` cores so that the poorest rank gets most.

    Each next rank goes where the cores a rank stay most numerous, the first of equals (D'Hondt's method).
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


def _runs_by_size(nodes: list[_Numa], count: int) -> list[list[_Numa]]:
    return [[nodes[at] for at in run] for run in _runs([node.capacity for node in nodes], count)]


def _runs(sizes: Sequence[int], count: int) -> list[range]:
    """Cut a row of blocks into ``count`` runs of about equal size, none empty, the first get more."""
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


def _share_node(machine: _Machine, node: _Numa) -> dict[int, Block]:
    """Share a NUMA node's cores among its ranks."""
    shares: dict[int, Block] = {}
    for block, users in _pools(machine, node):
        shares.update(_merge(shares, _share_pool(machine, block, users)))
    return shares


def _merge(one: dict[int, Block], other: dict[int, Block]) -> dict[int, Block]:
    return {rank: sorted({*one.get(rank, ()), *block}) for rank, block in other.items()}


def _pools(machine: _Machine, node: _Numa) -> list[tuple[Block, list[_User]]]:
    """Group users by the cores near them; the whole node is one pool where that leaves somebody without."""
    members: dict[tuple[int, ...], list[_User]] = {}
    for user in node.users:
        near = _near(machine, user.gpu, node) if user.gpu else []
        members.setdefault(tuple(near if machine.free(near) else node.block), []).append(user)
    pools, taken = [], set()
    for cores in sorted(members, key=lambda cores: (len(cores), cores)):
        block = [core for core in cores if core not in taken]
        ranks = {rank for user in members[cores] for rank in user.ranks}
        if len(machine.free(block)) < max(len(ranks), 1) and not machine.request.share_cores:
            return [(node.block, node.users)]
        if not machine.free(block):
            return [(node.block, node.users)]
        taken.update(block)
        pools.append((block, members[cores]))
    return pools


def _share_pool(machine: _Machine, block: Block, users: list[_User]) -> dict[int, Block]:
    """Share a block among the GPUs that are at home there, then each GPU's part among its ranks."""
    ranks = list(dict.fromkeys(rank for user in users for rank in user.ranks))
    if not ranks:
        return {}
    direct = dict(zip(ranks, _split(machine, block, len(ranks)), strict=True))
    if all(user.gpu is None for user in users):
        return direct
    crowded = any(len(user.ranks) > 1 for user in users)
    if crowded and len(_l3_groups(machine, block)) == 1 and _uneven_with_reserved(machine, block, len(users)):
        return direct
    shares: dict[int, Block] = {}
    for user, part in zip(users, _split(machine, block, len(users), for_gpus=True), strict=True):
        blocks = _split(machine, part, len(user.ranks)) if user.ranks else []
        shares.update(_merge(shares, dict(zip(user.ranks, blocks, strict=True))))

    def poorest(answer: dict[int, Block]) -> int:
        return min(len(machine.free(answer[rank])) for rank in ranks)

    if poorest(shares) < machine.width and poorest(direct) > poorest(shares):
        return direct
    return shares


def _uneven_with_reserved(machine: _Machine, block: Block, count: int) -> bool:
    """Tell whether a block with reserved cores cannot be cut into ``count`` like slots."""
    return not machine.reserved.isdisjoint(block) and _like_slots(machine, block, count) is None


def _l3_groups(machine: _Machine, block: Block) -> list[Block]:
    """Return the block by L3 groups, those without a usable core left out; one group where unknown."""
    groups: dict[int, Block] = {}
    for core in block:
        l3 = machine.cores[core].l3
        if l3 is None:
            return [block]
        groups.setdefault(l3, []).append(core)
    return [group for group in groups.values() if machine.free(group)] or [block]


def _split(machine: _Machine, block: Block, count: int, *, for_gpus: bool = False) -> list[Block]:
    """Cut a block into ``count`` blocks, by whole L3 groups as long as there are enough of them."""
    groups = _l3_groups(machine, block)
    if count < len(groups):
        return _split_by_groups(machine, block, groups, count)
    blocks: list[Block] = []
    counts = _deal([len(machine.free(group)) for group in groups], count)
    for group, users in zip(groups, counts, strict=True):
        blocks += _cut_for_gpus(machine, group, users) if for_gpus else _cut_for_ranks(machine, group, users)
    return blocks


def _split_by_groups(machine: _Machine, block: Block, groups: list[Block], count: int) -> list[Block]:
    """Deal whole L3 groups; equal blocks instead where they straddle no group more than they need.

    Small groups (two cores each on POWER9) would make ranks unequal for nothing: each spans several anyhow.
    """
    sizes = [len(machine.free(group)) for group in groups]
    whole = [[core for at in run for core in groups[at]] for run in _runs(sizes, count)]
    shares = [len(machine.free(part)) for part in whole]
    equal = _cut_for_gpus(machine, block, count)
    if max(shares) - min(shares) > 1 and len(machine.free(equal[-1])) > max(sizes):
        group_of = {core: at for at, group in enumerate(groups) for core in group}
        touched = [{group_of[core] for core in machine.free(part)} for part in equal]
        if all(
            len(at) == _fewest([sizes[group] for group in at], len(machine.free(part)))
            for at, part in zip(touched, equal, strict=True)
        ):
            return equal
    return whole


def _fewest(sizes: Iterable[int], cores: int) -> int:
    """Return how many of the largest groups hold so many cores."""
    needed = 0
    for size in sorted(sizes, reverse=True):
        if cores <= 0:
            break
        cores -= size
        needed += 1
    return needed


def _cut_for_gpus(machine: _Machine, group: Block, count: int) -> list[Block]:
    """Cut into equal blocks of usable cores, the first get one more; a reserved core goes with the next."""
    free = machine.free(group)
    size, extra = divmod(len(free), max(count, 1))
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
    """Cut into equal blocks, the first get one more; beside reserved cores all get the same.

    A site that reserves cores wants its ranks alike, and both sites that document an answer leave cores idle
    rather than make ranks unequal: LUMI-G (16 ranks: cores 1-3 and 5-7 of each L3 group) keeps the same
    places of equal slots, Aurora (12 ranks: 8 of 51 cores each) packs the ranks and leaves the end idle.
    """
    free, width = machine.free(group), machine.width
    if count <= 1:
        return [group] * count
    if machine.request.share_cores and len(free) < count * width:
        width = min(width, len(free))
        starts = [min(at * len(free) // count, len(free) - width) for at in range(count)]
        return [free[start : start + width] for start in starts]
    if machine.reserved.isdisjoint(group):
        return _cut_for_gpus(machine, free, count)
    if (slots := _like_slots(machine, group, count)) is not None:
        return slots
    size = len(free) // count
    if machine.request.cpus_per_task is not None:
        size = min(size, machine.request.cpus_per_task)
    return [free[at * size : (at + 1) * size] for at in range(count)]


def _like_slots(machine: _Machine, group: Block, count: int) -> list[Block] | None:
    """Cut a block with its reserved cores into slots and keep the places that are usable in all of them.

    None where the slots would not be equal powers of two, as caches are divided, or would waste more cores
    than unequal shares do.
    """
    slot, rest = divmod(len(group), count)
    if rest or slot & (slot - 1) or not slot:
        return None
    places = [at for at in range(slot) if all(machine.threads[group[n * slot + at]] for n in range(count))]
    if len(places) != len(machine.free(group)) // count:
        return None
    return [[group[n * slot + at] for at in places] for n in range(count)]


# --- From cores to the answer ---------------------------------------------------------------------------


def _cut(machine: _Machine, rank: int, cores: Block, gpus: tuple[Gpu, ...]) -> Block:
    """Keep ``cpus_per_task`` cores, of one L3 group where one holds them, else the first."""
    width = machine.width
    if len(cores) < width:
        near = ""
        if gpus:
            near = f" near GPU {', '.join(str(gpu.index) for gpu in gpus)}"
        raise BadInputError(
            f"rank {rank} needs {width} cores, but {len(cores)} fall to it{near}; {_inventory(machine)}",
            "ask for fewer cores a rank or fewer ranks a node",
        )
    if machine.request.cpus_per_task is None:
        return cores
    for group in _l3_groups(machine, cores):
        if len(group) >= width:
            return group[:width]
    return cores[:width]


def _answer(machine: _Machine, chosen: list[Block], gpus_of: list[tuple[Gpu, ...]]) -> NodeBinding:
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
                numa=tuple(sorted({numa for core in cores if (numa := machine.numa[core]) is not None})),
                l3=tuple(sorted({l3 for core in cores if (l3 := machine.cores[core].l3) is not None})),
            )
        )
    nics = _nics(machine.topology.nics, ranks)
    _note_leftovers(machine, users)
    return NodeBinding(
        ranks=tuple(_with_nic(rank, nics.get(rank.local_rank)) for rank in ranks),
        notes=tuple(dict.fromkeys(machine.notes)),
    )


def _thread_share(threads: tuple[int, ...], place: int, users: int) -> tuple[int, ...]:
    """Return the threads that the ``place``-th of the core's users gets: its own where there are enough."""
    start, end = place * len(threads) // users, (place + 1) * len(threads) // users
    return threads[start : max(end, start + 1)]


def _with_nic(rank: RankBinding, nic: str | None) -> RankBinding:
    return RankBinding(
        local_rank=rank.local_rank, cpus=rank.cpus, gpus=rank.gpus, numa=rank.numa, l3=rank.l3, nic=nic
    )


def _nics(nics: tuple[Nic, ...], ranks: list[RankBinding]) -> dict[int, str]:
    """Deal the NICs near each group of ranks to them in order; ranks with none near get none."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for rank in ranks:
        cpus, numa = frozenset(rank.cpus), set(rank.numa)
        near = tuple(nic.name for nic in nics if nic.cpus and cpus & nic.cpus)
        near = near or tuple(nic.name for nic in nics if nic.numa in numa)
        groups.setdefault(near, []).append(rank.local_rank)
    return {
        rank: near[place * len(near) // len(members)]
        for near, members in groups.items()
        if near
        for place, rank in enumerate(members)
    }


def _note_leftovers(machine: _Machine, users: Counter[int]) -> None:
    """Say which cores are shared and which lie idle."""
    first = [core.cpus[0] for core in machine.cores]
    if shared := [first[core] for core, count in users.items() if count > 1]:
        machine.notes.append(f"cores {format_cpu_list(shared)} are shared by several ranks")
    idle = [first[core] for core in machine.free(range(len(first))) if core not in users]
    if idle:
        machine.notes.append(f"{len(idle)} usable cores stay idle: {format_cpu_list(idle)}")
