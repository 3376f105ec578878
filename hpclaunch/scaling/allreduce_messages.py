"""The messages of an allreduce between nodes, round by round, and its time by a closed form. Pure.

They are those of the bundled training's algorithms for long arrays of float32 (``train/allreduce``), each
message whole; a test compares them with the messages that real ranks hand to MPI. Ranks are numbered node by
node. What a node's ranks do in their n-th round is the node's n-th round.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import Any, NamedTuple, TypeVar

# R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", Int.
# J. High Perform. Comput. Appl. 19 (2005) 49-66, doi:10.1177/1094342005051521: a message of n bytes takes
# alpha + n beta, adding n bytes n gamma. P. Patarasuk and X. Yuan, J. Parallel Distrib. Comput. 69 (2009)
# 117-124: no allreduce of p ranks sends fewer than 2(p-1)/p n bytes per rank.
#
# Two levels of links: inside a node and between nodes. The latter are the node's, and its ranks that use
# them at the same time share their bandwidth; with one rank per node the formulas are those of the papers.
# Congestion inside the network is left out.


@dataclass(frozen=True)
class Link:
    """Latency and bandwidth of messages."""

    latency_s: float
    """alpha"""
    s_per_byte: float
    """beta"""

    def time_s(self, nbytes: float, sharers: int = 1) -> float:
        """Of one message each by ``sharers`` ranks at the same time."""
        return self.latency_s + sharers * nbytes * self.s_per_byte


@dataclass(frozen=True)
class Machine:
    """Nodes that are alike."""

    ranks_per_node: int
    inside: Link
    """Between two ranks of a node."""
    between: Link
    """Between two nodes: what all ranks of a node have together."""
    add_s_per_byte: float
    """gamma: of adding one array to another."""
    copy_s_per_byte: float
    """Of writing into the memory of another rank of the node."""

    def nodes(self, ranks: int) -> int:
        """Nodes that ``ranks`` ranks need."""
        return -(-ranks // self.ranks_per_node)

    def message_s(self, distance: int, nbytes: float, sharers: int) -> float:
        """To the rank whose number differs by ``distance``, ranks being numbered node by node."""
        if distance < self.ranks_per_node:
            return self.inside.time_s(nbytes)
        return self.between.time_s(nbytes, min(sharers, self.ranks_per_node))


def _ring_s(p: int, n: float, machine: Machine) -> float:
    """2(p-1) hops of n/p bytes, as slow as the slowest of them; one rank of a node sends to the next node."""
    link = machine.inside if machine.nodes(p) == 1 else machine.between
    return 2 * (p - 1) * link.time_s(n / p) + (p - 1) / p * n * machine.add_s_per_byte


def _halving_doubling_s(p: int, n: float, machine: Machine) -> float:
    """Swaps of n/2, n/4, ... bytes p/2, p/4, ... ranks away, and back; those beyond a power of two first."""
    power = 1 << (p.bit_length() - 1)
    seconds, distance = 0.0, power // 2
    while distance:
        nbytes = n * distance / power
        seconds += 2 * machine.message_s(distance, nbytes, power) + nbytes * machine.add_s_per_byte
        distance //= 2
    if p > power:
        seconds += 2 * machine.message_s(power, n, p - power) + n * machine.add_s_per_byte
    return seconds


def _hierarchical_s(p: int, n: float, machine: Machine) -> float:
    """Through shared memory in the node, each rank its slice; then a ring of nodes for each slice."""
    near, nodes = min(p, machine.ranks_per_node), machine.nodes(p)
    seconds = 0.0
    if near > 1:
        # Two meetings of the ranks; a slice is summed, and the sum written to all others.
        each = (near - 1) / near * n
        seconds += 2 * machine.inside.latency_s + each * (machine.add_s_per_byte + machine.copy_s_per_byte)
    if nodes > 1:
        slice_bytes = n / near
        seconds += 2 * (nodes - 1) * machine.between.time_s(slice_bytes / nodes, near)
        seconds += (nodes - 1) / nodes * slice_bytes * machine.add_s_per_byte
    return seconds


def _near_first_s(p: int, n: float, machine: Machine) -> float:
    """Swaps of n/2, n/4, ... bytes with ranks 1, 2, 4, ... away, and back; p is a power of two."""
    swaps = [(1 << turn, n / (2 << turn)) for turn in range(p.bit_length() - 1)]
    return sum(2 * machine.message_s(*swap, p) + swap[1] * machine.add_s_per_byte for swap in swaps)


_SEGMENTS = 8
"""Of the array that the pipelined allreduce has under way."""


def _pipelined_s(p: int, n: float, machine: Machine) -> float:
    """``hierarchical`` in segments: while one is between the nodes, the next is summed inside."""
    near = min(p, machine.ranks_per_node)
    inside, all_levels = (_hierarchical_s(ranks, n / _SEGMENTS, machine) for ranks in (near, p))
    return all_levels + (_SEGMENTS - 1) * max(inside, all_levels - inside)


COSTS: Mapping[str, Callable[[int, float, Machine], float]] = {
    "ring": _ring_s,
    "halving-doubling": _halving_doubling_s,
    "hierarchical": _hierarchical_s,
    "near-first": _near_first_s,
    "shifted": _near_first_s,
    "pipelined": _pipelined_s,
}
"""Seconds by algorithm, as ``--allreduce`` names them (``shared`` is ``hierarchical`` on one node): of ranks,
bytes and machine. The last three are in no runner: see docs/explanation/networks.md."""


def allreduce_s(algorithm: str, ranks: int, nbytes: float, machine: Machine) -> float:
    """Return the seconds that the sum of ``nbytes`` takes; 0 for one rank. KeyError for another algorithm."""
    cost = COSTS[algorithm]
    return 0.0 if ranks == 1 else cost(ranks, nbytes, machine)


T = TypeVar("T", bound=tuple[int, ...])
_ITEM_BYTES = 4
_LINE_ITEMS = 16
"""Items of a line of the cache, which no slice of ``hierarchical`` cuts."""


class Round(NamedTuple):
    """The messages that a rank posts before it waits."""

    sends: tuple[tuple[int, int], ...]
    """Rank and bytes."""
    receives: tuple[int, ...]
    """Ranks."""


def _bounds(items: int, parts: int) -> list[int]:
    """Return where an array is cut into parts as even as possible, the first ones an item longer."""
    each, more = divmod(items, parts)
    return [part * each + min(part, more) for part in range(parts + 1)]


def _ring(place: int, members: range, sizes: Sequence[int]) -> Iterator[Round]:
    """Yield the rounds of one of ``members``; ``sizes``: bytes of the chunk that each sends first."""
    after, before = members[(place + 1) % len(members)], members[place - 1]
    for hop in range(2 * len(members) - 2):
        yield Round(((after, sizes[(place - hop) % len(members)]),), (before,))


def _halving_doubling(rank: int, bounds: Sequence[int], ranks: int) -> Iterator[Round]:
    """Yield the rounds of a rank; ``bounds``: of the chunks, one for each rank below the power of two."""
    power, nbytes = len(bounds) - 1, bounds[-1] * _ITEM_BYTES
    if rank >= power:
        yield Round(((rank - power, nbytes),), ())
        yield Round((), (rank - power,))
        return
    beyond = rank + power
    if beyond < ranks:
        yield Round((), (beyond,))
    swaps = list(_swaps(rank, bounds))
    both_ways = [*swaps, *((partner, given, kept) for partner, kept, given in reversed(swaps))]
    for partner, arriving, leaving in both_ways:
        if arriving or leaving:  # an empty array makes no message
            yield Round(((partner, leaving),) if leaving else (), (partner,) if arriving else ())
    if beyond < ranks:
        yield Round(((beyond, nbytes),), ())


def _swaps(rank: int, bounds: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield partner, bytes kept and bytes given of each halving."""
    low, high = 0, len(bounds) - 1
    while high - low > 1:
        middle = (low + high) // 2
        lower, upper = bounds[middle] - bounds[low], bounds[high] - bounds[middle]
        if rank < middle:
            yield rank + middle - low, lower * _ITEM_BYTES, upper * _ITEM_BYTES
            high = middle
        else:
            yield rank - (middle - low), upper * _ITEM_BYTES, lower * _ITEM_BYTES
            low = middle


def shifted_peers(rank: int, ranks: int, at_switch: int) -> list[int]:
    """Return the partners of a rank in shifted halving-doubling, in the order of the halvings.

    First the ranks of the switch, which get the largest messages. The next g halvings are between switches:
    ranks of one switch begin with different distances, so that they use different links. g is 2, 4, 16, the
    largest with g <= ranks of a switch and 2^g <= switches. The rest as near-first halving-doubling.
    """
    halvings, inside = ranks.bit_length() - 1, at_switch.bit_length() - 1
    group = max((g for g in (2, 4, 16) if g <= at_switch and 1 << g <= ranks // at_switch), default=1)
    bits = list(range(halvings))
    if halvings > inside:
        bits[inside : inside + group] = [inside + (rank % at_switch + s) % group for s in range(group)]
    return [rank ^ (1 << bit) for bit in bits]


def rank_rounds(
    algorithm: str, nodes: int, per_node: int, items: int, at_switch: int = 1
) -> Callable[[int], Iterator[Round]]:
    """Return what yields the rounds of a rank in the sum of ``items``; ``at_switch``: ranks of a switch.

    Of ``hierarchical`` those between nodes of the first rank of a node, whose slice is the longest.
    """
    ranks = nodes * per_node
    if algorithm == "halving-doubling":
        bounds = _bounds(items, 1 << (ranks.bit_length() - 1))
        return lambda rank: _halving_doubling(rank, bounds, ranks)
    if algorithm in ("near-first", "shifted"):
        return lambda rank: _halvings(
            shifted_peers(rank, ranks, at_switch if algorithm == "shifted" else ranks), items
        )
    members = range(0, ranks, per_node if algorithm == "hierarchical" else 1)
    if algorithm == "hierarchical":
        lines = -(-items // _LINE_ITEMS)
        items = min(-(-lines // per_node) * _LINE_ITEMS, items)
    sizes = [_ITEM_BYTES * (stop - start) for start, stop in pairwise(_bounds(items, len(members)))]
    return lambda rank: _ring(members.index(rank), members, sizes)


def _halvings(peers: Sequence[int], items: int) -> Iterator[Round]:
    """Yield swaps of half the array, a quarter, ... with these partners, and back."""
    swaps = [(peer, items * _ITEM_BYTES >> turn + 1) for turn, peer in enumerate(peers)]
    for peer, nbytes in (*swaps, *swaps[::-1]):
        yield Round(((peer, nbytes),), (peer,))


def message_count(algorithm: str, nodes: int, per_node: int) -> int:
    """Return the most messages that the rounds of all ranks have, or of the first rank of each node."""
    ranks = nodes if algorithm == "hierarchical" else nodes * per_node
    if algorithm in ("ring", "hierarchical"):
        return 2 * ranks * (ranks - 1)
    levels = ranks.bit_length() - 1
    return 2 * (levels << levels) + 2 * (ranks - (1 << levels))


class NodeRun(NamedTuple):
    """Rounds of a node that are alike."""

    times: int
    inside_bytes: int
    """The longest message between two ranks of the node; -1: none."""
    sends: tuple[tuple[int, int, int], ...]
    """To other nodes: the rank that sends, the one that receives, bytes."""
    receives: tuple[tuple[int, int], ...]
    """From other nodes: the rank that sends, the one that receives."""

    def line(self) -> str:
        """Return the run as `replay_messages.cpp` reads it."""
        sends = [number for send in self.sends for number in send]
        receives = [number for receive in self.receives for number in receive]
        numbers = (self.times, self.inside_bytes, len(self.sends), *sends, len(self.receives), *receives)
        return " ".join(map(str, numbers))


def _node_runs(ranks: Mapping[int, Iterator[Round]], per_node: int, slices: int) -> Iterator[NodeRun]:
    """Yield the rounds of a node from those of its ``ranks``, each of which stands for ``slices`` ranks."""
    waiting = {rank: _runs(rounds)[::-1] for rank, rounds in ranks.items()}
    while waiting:
        heads = {rank: own.pop() for rank, own in waiting.items()}
        times = min(count for count, _ in heads.values())
        yield _merged(times, {rank: one for rank, (_, one) in heads.items()}, per_node, slices)
        for rank, (count, one) in heads.items():
            if count > times:
                waiting[rank].append((count - times, one))
        waiting = {rank: own for rank, own in waiting.items() if own}


def _runs(rounds: Iterable[Round]) -> list[tuple[int, Round]]:
    """Return how often each round comes one after the other."""
    return [(len(list(same)), one) for one, same in groupby(rounds)]


def _merged(times: int, rounds: Mapping[int, Round], per_node: int, slices: int) -> NodeRun:
    sends, receives, inside = [], [], -1
    for rank, one in rounds.items():
        for to, nbytes in one.sends:
            if to // per_node == rank // per_node:
                inside = max(inside, nbytes)
            else:
                sends.append((rank, to, slices * nbytes))
        others = (source for source in one.receives if source // per_node != rank // per_node)
        receives += [(source, rank) for source in others]
    return NodeRun(times, inside, tuple(sends), tuple(receives))


class NodePrograms(NamedTuple):
    """The programs of the nodes."""

    text: str
    """A line per node, and one per run of equal rounds, as `replay_messages.cpp` reads them."""
    messages: int
    """Between nodes, before those of a round from one node to another are put together."""
    nbytes: int
    """Between nodes."""


def node_programs(algorithm: str, nodes: int, per_node: int, items: int, at_switch: int = 1) -> NodePrograms:
    """Return the programs of all nodes for the sum of ``items``.

    ``hierarchical``: the first rank of each node is followed; those next to it send as much at the same time
    in other rings, so that a message of the node has the bytes of all of them.
    """
    rounds = rank_rounds(algorithm, nodes, per_node, items, at_switch)
    followed, slices = (1, per_node) if algorithm == "hierarchical" else (per_node, 1)
    programs = [
        list(_node_runs({rank: rounds(rank) for rank in range(first, first + followed)}, per_node, slices))
        for first in range(0, nodes * per_node, per_node)
    ]
    lines = []
    for node, runs in enumerate(_joined(programs, per_node)):
        lines += [f"node {node} {len(runs)}", *(run.line() for run in runs)]
    every = list(chain.from_iterable(programs))
    nbytes = sum(run.times * sum(send[2] for send in run.sends) for run in every)
    return NodePrograms("\n".join(lines), sum(run.times * len(run.sends) for run in every), nbytes)


def _joined(programs: list[list[NodeRun]], per_node: int) -> list[list[NodeRun]]:
    """Return the same with one message for those of a round from one node to another: they share each link.

    Only where every node awaits together what another one sends together; otherwise as it is.
    """
    sent: Counter[tuple[tuple[int, int], ...]] = Counter()
    awaited: Counter[tuple[tuple[int, int], ...]] = Counter()
    found = [[_as_one(run, per_node, sent, awaited) for run in runs] for runs in programs]
    return found if sent == awaited else programs


def _as_one(run: NodeRun, per_node: int, sent: Counter[Any], awaited: Counter[Any]) -> NodeRun:
    """Return a run with its messages put together; count what was, in ``sent`` and ``awaited``."""
    sends, receives = _by_nodes(run.sends, per_node), _by_nodes(run.receives, per_node)
    for group in sends:
        sent[tuple(sorted(send[:2] for send in group))] += run.times
    for together in receives:
        awaited[tuple(sorted(together))] += run.times
    one = tuple((*min(send[:2] for send in group), sum(send[2] for send in group)) for group in sends)
    return run._replace(sends=one, receives=tuple(min(group) for group in receives))


def _by_nodes(messages: Sequence[T], per_node: int) -> list[list[T]]:
    groups: dict[tuple[int, int], list[T]] = {}
    for message in messages:
        groups.setdefault((message[0] // per_node, message[1] // per_node), []).append(message)
    return list(groups.values())
