"""Cut the cores of a machine, or of a part of it, into shares for ranks. Pure.

docs/explanation/binding.md states the rule; tests/binding/test_shapes.py checks it on machines of any shape.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import heapify, heapreplace
from itertools import accumulate, pairwise

import msgspec

from hpclaunch.amounts import grouped
from hpclaunch.binding.node_binding import BindingRequest
from hpclaunch.topology.node_topology import Core, NodeTopology

# Here a core is its index in ``NodeTopology.cores``, and a *block* is a list of such indices in the order of
# the machine: by socket, in it by NUMA node, in it by L3 group. A block holds the cores that may be used and
# the reserved ones between them, which mark where slots begin.

Block = list[int]

SOCKET, NUMA, L3 = range(3)
"""The levels of a machine, from the largest parts to the smallest."""


class Machine(msgspec.Struct, frozen=True):
    """The node as this request sees it."""

    topology: NodeTopology
    request: BindingRequest
    cores: tuple[Core, ...]
    """All cores of the node."""
    width: int
    """Cores that a rank needs at least."""
    threads: tuple[tuple[int, ...], ...]
    """CPUs to use on each core; empty: the core is reserved or not granted."""
    reserved: frozenset[int]
    numa: tuple[int | None, ...]
    part_of: tuple[tuple[int, ...], ...]
    """Per level the number of each core's part, counted in the order of the first cores; -1: unknown."""
    notes: list[str] = []

    def usable(self, block: Iterable[int]) -> Block:
        """Return the cores of a block that may be used."""
        return [core for core in block if self.threads[core]]

    def block(self) -> Block:
        """Return all cores that may be used, and the reserved ones."""
        places = sorted(zip(*self.part_of, range(len(self.cores)), strict=True))
        return [core for *_, core in places if self.threads[core] or core in self.reserved]

    def parts(self, block: Block, level: int) -> list[Block]:
        """Return the parts of a block that have a usable core; the block itself where they are unknown."""
        part_of = self.part_of[level]
        parts = grouped((part_of[core], core) for core in block)
        if -1 in parts:
            return [block]
        return [part for part in parts.values() if any(self.threads[core] for core in part)] or [block]


def machine_for(topology: NodeTopology, request: BindingRequest) -> Machine:
    """Return the node as a request sees it."""
    usable = topology.usable
    numa_of_cpu = {cpu: node.id for node in reversed(topology.numa_nodes) for cpu in node.cpus}
    threads, reserved, numa = [], set(), []
    for index, core in enumerate(topology.cores):
        if topology.reserved.intersection(core.cpus):
            reserved.add(index)
        cpus = () if index in reserved else tuple(cpu for cpu in core.cpus if cpu in usable)
        threads.append(cpus[: max(request.threads_per_core, 1)])
        numa.append(core.numa if core.numa is not None else numa_of_cpu.get(core.cpus[0]))
    return Machine(
        topology,
        request,
        cores=topology.cores,
        width=request.cpus_per_task or 1,
        threads=tuple(threads),
        reserved=frozenset(reserved),
        numa=tuple(numa),
        part_of=_part_of(topology.cores, numa),
    )


def _part_of(cores: Sequence[Core], numa: Sequence[int | None]) -> tuple[tuple[int, ...], ...]:
    """Number each core's socket, NUMA node and L3 group; a part of a larger part that is split is split too.

    CPUs without a NUMA node on a node that has some (its firmware omits them) count as one more.
    """
    sockets = _numbered([core.socket for core in cores])
    nodes = _numbered(list(zip(sockets, numa, strict=True)))
    groups = _numbered(
        [None if core.l3 is None else (at, core.l3) for at, core in zip(nodes, cores, strict=True)]
    )
    return sockets, nodes, groups


def _numbered(names: Sequence[Hashable | None]) -> tuple[int, ...]:
    numbers: dict[Hashable | None, int] = {None: -1}
    return tuple(numbers.setdefault(name, len(numbers) - 1) for name in names)


def split(machine: Machine, block: Block, count: int) -> list[Block]:
    """Cut a block into the shares of ``count`` ranks, in the order of the machine."""
    nodes = [len(machine.usable(node)) for node in machine.parts(block, NUMA)]
    # Sockets matter only where a NUMA node would be idle: for too few ranks, or smaller than all shares.
    every_node_serves = sum(cores // (min(nodes) + 1) for cores in nodes) < count >= len(nodes)
    return _split(machine, block, count, NUMA if every_node_serves else SOCKET)


def _split(machine: Machine, block: Block, count: int, level: int) -> list[Block]:
    """Give each part of this level its ranks, or each rank its parts; ignore parts that do not suit."""
    if count <= 1:
        return [block] * count
    if level > L3:
        return _cut(machine, block, count)
    parts = machine.parts(block, level)
    if len(parts) > 1:
        shares = _shares_of_parts(machine, parts, count, level)
        if _suit(machine, shares, parts, level):
            return shares
    return _split(machine, block, count, level + 1)


def _shares_of_parts(machine: Machine, parts: list[Block], count: int, level: int) -> list[Block]:
    """Divide each part among its ranks; fewer ranks than parts get neighbouring whole parts."""
    sizes = [len(machine.usable(part)) for part in parts]
    if count < len(parts):
        return _runs_of_parts(parts, sizes, count)
    if level == SOCKET:
        # Sockets, whose ranks may not be able to use all cores equally.
        empty, share_of = [0] * len(sizes), _share_of_sockets(machine, parts)
        _, smallest = _dealt(sizes, count, empty, share_of, max(sizes))
        counts, _ = _dealt(sizes, count, empty, share_of, smallest)
    else:
        counts = balanced_counts(sizes, count)
    return [
        share
        for part, ranks in zip(parts, counts, strict=True)
        for share in _split(machine, part, ranks, level + 1)
    ]


def _suit(machine: Machine, shares: list[Block], parts: list[Block], level: int) -> bool:
    """Tell whether the shares of parts are as large as requested; else whether they follow the rule.

    Ranks stay in a socket, and in a NUMA node where there are enough ranks. Smaller parts must give shares
    that are equal to within one core, and must all serve.
    """
    sizes = [len(machine.usable(share)) for share in shares]
    if machine.request.cpus_per_task is not None:
        return min(sizes) >= machine.request.cpus_per_task
    if level == SOCKET or (level == NUMA and len(shares) >= len(parts)):
        return True
    used = {machine.part_of[level][core] for share in shares for core in share}
    return max(sizes) - min(sizes) <= 1 and len(used) == len(parts)


Share = Callable[[int, int], int]
"""The smallest share of the ranks of a part: from the part's index and the number of its ranks."""


def balanced_counts(capacity: Sequence[int], count: int, load: Sequence[int] | None = None) -> list[int]:
    """Return how many of ``count`` ranks each part of ``capacity`` cores gets, ``load`` ranks being there.

    The smallest share is as large as possible; then no part stays idle that could serve with such a share;
    then each next rank goes where most cores per rank remain, to the first of equals.
    """
    before = list(load or [0] * len(capacity))
    smallest = _smallest_share(capacity, count, before)
    after, _ = _dealt(capacity, count, before, lambda at, ranks: capacity[at] // ranks, smallest)
    return [ranks - others for ranks, others in zip(after, before, strict=True)]


def _smallest_share(capacity: Sequence[int], count: int, load: Sequence[int]) -> int:
    """Return the largest number of cores that each of ``count`` more ranks can have inside of a part."""

    def too_large(cores: int) -> bool:
        room = (max(size // cores - here, 0) for size, here in zip(capacity, load, strict=True))
        return sum(room) < count

    return bisect_left(range(1, max(capacity) + 1), True, key=too_large)


def _dealt(
    capacity: Sequence[int], count: int, load: Sequence[int], share: Share, enough: int
) -> tuple[list[int], int]:
    """Deal out ranks one by one; return the ranks of each part and the last one's share, the smallest.

    All shares of ``enough`` cores are equal: of these a part without a rank comes first.
    """
    ranks = list(load)

    def place(at: int) -> tuple[int, bool, float, int]:
        after = ranks[at] + 1
        return -min(share(at, after), enough), ranks[at] > 0, -capacity[at] / after, at

    places = [place(at) for at in range(len(capacity))]
    heapify(places)
    smallest = enough
    for _ in range(count):
        least, _, _, at = places[0]
        smallest = -least
        ranks[at] += 1
        heapreplace(places, place(at))
    return ranks, smallest


def _share_of_sockets(machine: Machine, sockets: list[Block]) -> Share:
    """Return the smallest share in a socket, whose ranks stay inside NUMA nodes where they are enough."""
    nodes_of = [[len(machine.usable(node)) for node in machine.parts(socket, NUMA)] for socket in sockets]

    def share(at: int, ranks: int) -> int:
        sizes = nodes_of[at]
        if ranks < len(sizes):
            return sum(sizes) // ranks
        return _smallest_share(sizes, ranks, [0] * len(sizes))

    return share


def _runs_of_parts(parts: list[Block], sizes: Sequence[int], count: int) -> list[Block]:
    """Give each rank neighbouring whole parts: cut at the borders that are nearest to equal shares."""
    ends, total = list(accumulate(sizes)), sum(sizes)
    shares: list[Block] = []
    start = 0
    for rank in range(1, count + 1):
        end, last = start + 1, len(parts) - (count - rank)
        beyond = [abs(cores * count - total * rank) for cores in ends[start:last]]
        while end < last and beyond[end - start] <= beyond[end - start - 1]:
            end += 1
        shares.append([core for part in parts[start:end] for core in part])
        start = end
    return shares


def _cut(machine: Machine, block: Block, count: int) -> list[Block]:
    """Cut into equal shares, the first get one more; with reserved cores in one L3 group all are equal.

    A site that reserves cores wants equal ranks, and both sites that document an answer leave cores idle
    rather than make ranks unequal: LUMI-G (16 ranks: cores 1-3 and 5-7 of each L3 group) uses the same
    places of equal slots, Aurora (12 ranks: 8 of 51 cores each) packs the ranks and leaves the end idle.
    """
    usable, width = machine.usable(block), machine.width
    if machine.request.share_cores and len(usable) < count * width:
        width = min(width, len(usable))
        starts = [min(at * len(usable) // count, len(usable) - width) for at in range(count)]
        return [usable[start : start + width] for start in starts]
    if machine.reserved.isdisjoint(block) or len(machine.parts(block, L3)) > 1:
        return _cut_evenly(usable, count)
    if (slots := _equal_slots(machine, block, count)) is not None:
        return slots
    size = len(usable) // count
    if machine.request.cpus_per_task is not None:
        size = min(size, machine.request.cpus_per_task)
    return [usable[at * size : (at + 1) * size] for at in range(count)]


def _cut_evenly(usable: Block, count: int) -> list[Block]:
    size, extra = divmod(len(usable), count)
    ends = [at * size + min(at, extra) for at in range(count + 1)]
    return [usable[start:end] for start, end in pairwise(ends)]


def _equal_slots(machine: Machine, group: Block, count: int) -> list[Block] | None:
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
