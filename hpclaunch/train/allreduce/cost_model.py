"""How long an allreduce takes, by the model of latency, bandwidth and additions. Pure.

R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", Int. J.
High Perform. Comput. Appl. 19 (2005) 49-66, doi:10.1177/1094342005051521: a message of n bytes takes
alpha + n beta, adding n bytes n gamma. P. Patarasuk and X. Yuan, J. Parallel Distrib. Comput. 69 (2009)
117-124: no allreduce of p ranks sends fewer than 2(p-1)/p n bytes per rank.

Two levels of links: inside a node and between nodes. The latter are the node's, and its ranks that use them
at the same time share their bandwidth; with one rank per node the formulas are those of the papers.
Congestion inside the network is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


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


def _ring(p: int, n: float, machine: Machine) -> float:
    """2(p-1) hops of n/p bytes, as slow as the slowest of them; one rank of a node sends to the next node."""
    link = machine.inside if machine.nodes(p) == 1 else machine.between
    return 2 * (p - 1) * link.time_s(n / p) + (p - 1) / p * n * machine.add_s_per_byte


def _halving_doubling(p: int, n: float, machine: Machine) -> float:
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


def _hierarchical(p: int, n: float, machine: Machine) -> float:
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


COSTS: Mapping[str, Callable[[int, float, Machine], float]] = {
    "ring": _ring,
    "halving-doubling": _halving_doubling,
    "hierarchical": _hierarchical,
}
"""Seconds by algorithm, as ``--allreduce`` names them (``shared`` is ``hierarchical`` on one node): of ranks,
bytes and machine."""


def allreduce_s(algorithm: str, ranks: int, nbytes: float, machine: Machine) -> float:
    """Seconds that the sum of ``nbytes`` takes; 0 for one rank. KeyError for an unknown algorithm."""
    cost = COSTS[algorithm]
    return 0.0 if ranks == 1 else cost(ranks, nbytes, machine)
