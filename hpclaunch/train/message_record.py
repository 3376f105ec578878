"""What an allreduce sends between nodes, found by driving the algorithm itself, rank by rank, without MPI.

    python -m hpclaunch.train.message_record ring --nodes 64 --ranks-per-node 8 --items 25000000

In this process ``mpi4py`` is a module that notes who sends how many bytes to which rank, and moves nothing.
That is possible since no algorithm's messages depend on what arrived. Arrays have a length and no memory.
Each rank is driven through the whole sum alone, so that thousands of ranks need one process.

The first line of the output is a JSON object (`Record`), the rest the program of each node, which
``remote/replay_messages.cpp`` reads: a line per run of equal rounds. Ranks are numbered node by node. What a
node's ranks do in their n-th round is the node's n-th round. A message is not cut into segments here.
"""

from __future__ import annotations

import argparse
import json
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .allreduce.chunks import chunk_bounds

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


T = TypeVar("T", bound=tuple[int, ...])
_WHOLE = 1 << 62
"""Bytes of a segment: none is cut."""


class Round(NamedTuple):
    """What a rank posts before it waits."""

    sends: tuple[tuple[int, int], ...]
    """Rank and bytes."""
    receives: tuple[int, ...]
    """Ranks."""


class Run(NamedTuple):
    """Rounds that are alike."""

    times: int
    round: Round


class TooManyMessagesError(Exception):
    """The algorithm sends more messages than allowed."""


@dataclass
class Notes:
    """The messages of the rank that is driven."""

    most: int
    """Messages of all ranks that are allowed."""
    messages: int = 0
    """Of all ranks."""
    runs: list[Run] = field(default_factory=list)
    calls: list[tuple[str, int, int]] | None = None
    """Each message as it is posted: ``send`` or ``receive``, rank, bytes; None: not kept."""
    _sends: list[tuple[int, int]] = field(default_factory=list)
    _receives: list[int] = field(default_factory=list)

    def send(self, to: int, nbytes: int) -> None:
        """Note a message that leaves."""
        self.messages += 1
        if self.messages > self.most:
            raise TooManyMessagesError
        self._sends.append((to, nbytes))
        if self.calls is not None:
            self.calls.append(("send", to, nbytes))

    def receive(self, source: int, nbytes: int) -> None:
        """Note a message that is awaited."""
        self._receives.append(source)
        if self.calls is not None:
            self.calls.append(("receive", source, nbytes))

    def wait(self) -> None:
        """End the round, if anything was posted in it."""
        if not self._sends and not self._receives:
            return
        now = Round(tuple(self._sends), tuple(self._receives))
        self._sends, self._receives = [], []
        if self.runs and self.runs[-1].round == now:
            self.runs[-1] = Run(self.runs[-1].times + 1, now)
        else:
            self.runs.append(Run(1, now))


class Flags(NamedTuple):
    """As `numpy.ndarray.flags`."""

    c_contiguous: bool = True
    writeable: bool = True


class Span:
    """A one-dimensional array without memory: numpy adds and copies it by doing nothing."""

    ndim = 1
    flags = Flags()

    def __init__(self, size: int, dtype: Any, address: int = 0) -> None:
        self.size, self.dtype, self.address = size, np.dtype(dtype), address
        self.itemsize = self.dtype.itemsize
        self.nbytes = size * self.itemsize

    def __getitem__(self, part: slice) -> Span:
        start, stop, _ = part.indices(self.size)
        return Span(max(0, stop - start), self.dtype, self.address + start * self.itemsize)

    def view(self, dtype: Any) -> Span:
        """The same bytes as items of another type."""
        return Span(self.nbytes // np.dtype(dtype).itemsize, dtype, self.address)

    def __array_ufunc__(self, *_: object, **__: object) -> Span:
        return self

    def __array_function__(self, *_: object) -> None:
        return None


class _Request:
    """Of a message that takes no time."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def Wait(self) -> None:
        self._notes.wait()

    @staticmethod
    def Waitall(requests: Sequence[_Request]) -> None:
        if requests:
            requests[0].Wait()


class NotingComm:
    """A communicator seen by one rank; all nodes have the same number of ranks, numbered node by node."""

    def __init__(self, notes: Notes, members: range, rank: int, ranks_per_node: int) -> None:
        """``members``: the ranks of the job that it consists of; ``rank``: the number in the job."""
        self._notes, self._members, self._rank, self._per_node = notes, members, rank, ranks_per_node

    def Get_size(self) -> int:
        """Ranks."""
        return len(self._members)

    def Get_rank(self) -> int:
        """This rank's number here."""
        return self._members.index(self._rank)

    def Dup(self) -> NotingComm:
        """The same one: nothing is received twice."""
        return self

    def Free(self) -> None:
        """Nothing was taken."""

    def Barrier(self) -> None:
        """All ranks are here."""

    def allreduce(self, value: Any, op: object) -> Any:
        """As on a machine where all ranks have the same value."""
        return value

    def _of(self, members: range) -> NotingComm:
        return NotingComm(self._notes, members, self._rank, self._per_node)

    def Split_type(self, kind: object, key: int = 0) -> NotingComm:
        """The ranks of this node."""
        first = self._rank // self._per_node * self._per_node
        return self._of(range(first, first + self._per_node))

    def Split(self, color: int, key: int) -> NotingComm:
        """The ranks with the same place in their nodes: what the hierarchical allreduce splits into."""
        if color != self._rank % self._per_node:
            raise NotImplementedError(f"a split by {color} is not by the place in the node")
        return self._of(range(color, self._members.stop, self._per_node))

    def Isend(self, message: Sequence[Any], to: int) -> _Request:
        """Note it."""
        self._notes.send(self._members[to], message[0].nbytes)
        return _Request(self._notes)

    def Irecv(self, message: Sequence[Any], source: int) -> _Request:
        """Note it."""
        self._notes.receive(self._members[source], message[0].nbytes)
        return _Request(self._notes)

    def Sendrecv(
        self, send: Sequence[Any], to: int, tag: int, receive: Sequence[Any], source: int, receive_tag: int
    ) -> None:
        """Note both; a round."""
        self._notes.send(self._members[to], send[0].nbytes)
        self._notes.receive(self._members[source], receive[0].nbytes)
        self._notes.wait()


class NotingMemory:
    """Memory that the ranks of a node share, without memory."""

    def __init__(self, comm: NotingComm, nbytes: int) -> None:
        self.parts = [Span(nbytes, np.uint8, rank * nbytes) for rank in range(comm.Get_size())]
        self._mine = self.parts[comm.Get_rank()]

    def offset(self, address: int, nbytes: int) -> int | None:
        """As `SharedMemory.offset`."""
        start = address - self._mine.address
        return start if 0 <= start <= self._mine.nbytes - nbytes else None

    def meet(self) -> None:
        """All ranks are here."""

    def close(self) -> None:
        """Nothing was taken."""


def without_mpi() -> None:
    """Let ``from mpi4py import MPI`` of this process find what notes messages."""
    mpi, package = types.ModuleType("mpi4py.MPI"), types.ModuleType("mpi4py")
    names = ("BYTE", "MIN", "LAND", "COMM_NULL", "UNDEFINED", "COMM_TYPE_SHARED", "MODE_NOCHECK", "IN_PLACE")
    for name in names:
        setattr(mpi, name, name)
    vars(mpi).update(Request=_Request, Intracomm=lambda comm: comm, Get_address=lambda span: span.address)
    vars(package).update(MPI=mpi)
    sys.modules.update({"mpi4py": package, "mpi4py.MPI": mpi})


@cache
def _bounds(items: int, parts: int) -> list[int]:
    """As `chunk_bounds`: the same for all ranks, which takes most of the time for thousands of them."""
    return chunk_bounds(items, parts)


def _made(name: str, comm: Any, segment_bytes: int) -> Any:
    """The algorithm of that name, bound to the communicator."""
    from .allreduce import halving_doubling, shared_memory
    from .allreduce.halving_doubling import HalvingDoublingAllreduce
    from .allreduce.hierarchical import HierarchicalAllreduce
    from .allreduce.ring import RingAllreduce

    vars(halving_doubling).update(chunk_bounds=_bounds)
    if name == "hierarchical":
        vars(shared_memory).update(SharedMemory=NotingMemory)
        return HierarchicalAllreduce(
            comm, segment_bytes, ring=lambda peers, _: RingAllreduce(peers, segment_bytes)
        )
    flat = (RingAllreduce, HalvingDoublingAllreduce)
    return {kind.name: kind for kind in flat}[name](comm, segment_bytes)


def record_rank(
    name: str,
    notes: Notes,
    rank: int,
    ranks: int,
    ranks_per_node: int,
    items: int,
    segment_bytes: int = _WHOLE,
) -> int:
    """Drive one rank through the sum of ``items`` of float32; the bytes that the algorithm counts as sent."""
    comm = NotingComm(notes, range(ranks), rank, ranks_per_node)
    algorithm = _made(name, comm, segment_bytes)
    span = algorithm.buffer(items, np.float32) if name == "hierarchical" else Span(items, np.float32)
    algorithm.sum(span)
    notes.wait()
    between = algorithm._between if name == "hierarchical" else algorithm
    counted: int = between.bytes_sent if between is not None else 0
    return counted


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
        """As `replay_messages.cpp` reads it."""
        sends = [number for send in self.sends for number in send]
        receives = [number for receive in self.receives for number in receive]
        numbers = (self.times, self.inside_bytes, len(self.sends), *sends, len(self.receives), *receives)
        return " ".join(map(str, numbers))


def node_runs(ranks: dict[int, list[Run]], per_node: int, slices: int = 1) -> Iterator[NodeRun]:
    """The rounds of a node from those of its ``ranks``.

    ``slices``: ranks that send as much as each of ``ranks`` at the same time.
    """
    waiting = {rank: list(reversed(runs)) for rank, runs in ranks.items() if runs}
    while waiting:
        heads = {rank: runs.pop() for rank, runs in waiting.items()}
        times = min(head.times for head in heads.values())
        yield _merged(times, {rank: head.round for rank, head in heads.items()}, per_node, slices)
        for rank, head in heads.items():
            if head.times > times:
                waiting[rank].append(Run(head.times - times, head.round))
        waiting = {rank: runs for rank, runs in waiting.items() if runs}


def _merged(times: int, rounds: dict[int, Round], per_node: int, slices: int) -> NodeRun:
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


@dataclass(frozen=True)
class Record:
    """What stands in the first line."""

    messages: int
    """That the ranks driven send."""
    network_messages: int
    """Those between nodes."""
    counted_bytes: int
    """What the algorithm counts that these ranks sent: the bytes of their messages."""
    network_bytes: int
    """Between nodes, of all nodes."""
    inside_s: float
    """Of ``hierarchical`` within a node, before and after what is between nodes; 0 for the other algorithms,
    whose rounds contain it."""
    closed_form_s: float
    """By the model of latency, bandwidth and additions (`allreduce_s`)."""


class DifferentBytesError(Exception):
    """The messages' bytes are not what the algorithm counted."""


class NodePrograms(NamedTuple):
    """What the nodes do."""

    lines: list[str]
    messages: int
    network_messages: int
    counted_bytes: int
    network_bytes: int


def node_programs(name: str, nodes: int, per_node: int, items: int, most: int) -> NodePrograms:
    """The programs of all nodes. TooManyMessagesError where the ranks send more than ``most`` messages.

    ``hierarchical``: the first rank of each node is driven; those next to it send as much at the same time in
    other rings, so that a message of the node has the bytes of all of them.
    """
    ring = {"ring": nodes * per_node, "hierarchical": nodes}.get(name, 0)
    if 2 * ring * (ring - 1) > most:  # known before any is noted
        raise TooManyMessagesError
    programs: list[list[NodeRun]] = []
    messages = counted = 0
    driven, slices = (1, per_node) if name == "hierarchical" else (per_node, 1)
    for node in range(nodes):
        ranks: dict[int, list[Run]] = {}
        for rank in range(node * per_node, node * per_node + driven):
            notes = Notes(most, messages)
            own = record_rank(name, notes, rank, nodes * per_node, per_node, items)
            noted = sum(run.times * nbytes for run in notes.runs for _, nbytes in run.round.sends)
            if noted != own:
                raise DifferentBytesError(f"rank {rank} sent {noted} bytes and counted {own}")
            messages, counted = notes.messages, counted + own
            ranks[rank] = notes.runs
        programs.append(list(node_runs(ranks, per_node, slices)))
    between = [(run.times, send[2]) for runs in programs for run in runs for send in run.sends]
    lines = []
    for node, runs in enumerate(joined(programs, per_node)):
        lines += [f"node {node} {len(runs)}", *(run.line() for run in runs)]
    return NodePrograms(
        lines, messages, sum(times for times, _ in between), counted, sum(a * b for a, b in between)
    )


def joined(programs: list[list[NodeRun]], per_node: int) -> list[list[NodeRun]]:
    """The same with one message for those of a round from one node to another: they share each link.

    Only where every node awaits together what another one sends together; otherwise as it is.
    """
    sent: Counter[tuple[tuple[int, int], ...]] = Counter()
    awaited: Counter[tuple[tuple[int, int], ...]] = Counter()
    found: list[list[NodeRun]] = []
    for runs in programs:
        found.append([])
        for run in runs:
            sends, receives = _by_nodes(run.sends, per_node), _by_nodes(run.receives, per_node)
            for group in sends:
                sent[tuple(sorted(send[:2] for send in group))] += run.times
            for together in receives:
                awaited[tuple(sorted(together))] += run.times
            one = tuple((*min(send[:2] for send in group), sum(send[2] for send in group)) for group in sends)
            found[-1].append(run._replace(sends=one, receives=tuple(min(group) for group in receives)))
    return found if sent == awaited else programs


def _by_nodes(messages: Sequence[T], per_node: int) -> list[list[T]]:
    """Messages by the nodes between which they travel."""
    groups: dict[tuple[int, int], list[T]] = {}
    for message in messages:
        groups.setdefault((message[0] // per_node, message[1] // per_node), []).append(message)
    return list(groups.values())


def _seconds(name: str, options: argparse.Namespace) -> tuple[float, float]:
    """Within the node (``hierarchical``), and the closed form of all."""
    per_node, nbytes = options.ranks_per_node, 4 * options.items
    inside = Link(options.inside_us * 1e-6, 1e-9 / options.inside_gb_s)
    between = Link(options.between_us * 1e-6, 1e-9 / options.between_gb_s)
    # Additions take no time; what a rank reads and writes of other ranks of its node passes its link.
    machine = Machine(per_node, inside, between, 0.0, 2 * inside.s_per_byte)
    ranks = options.nodes * per_node
    within = allreduce_s(name, per_node, nbytes, machine) if name == "hierarchical" else 0.0
    closed = allreduce_s(name, ranks, nbytes, machine)
    if name == "ring" and per_node > 1:  # each hop has messages of both kinds
        closed = max(closed, allreduce_s(name, ranks, nbytes, replace(machine, between=inside)))
    return within, closed


def main(argv: Sequence[str] | None = None) -> int:
    """Print the record; exit 1 where there are more messages than allowed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = ("ring", "halving-doubling", "hierarchical")
    parser.add_argument("algorithm", choices=names)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--ranks-per-node", type=int, default=1)
    parser.add_argument("--items", type=int, required=True, help="of float32")
    parser.add_argument("--most-messages", type=int, default=1 << 62)
    for link, latency_us, gb_s in (("inside", 2.0, 50.0), ("between", 2.0, 25.0)):
        parser.add_argument(f"--{link}-us", type=float, default=latency_us)
        parser.add_argument(f"--{link}-gb-s", type=float, default=gb_s)
    options = parser.parse_args(argv)
    without_mpi()
    try:
        found = node_programs(
            options.algorithm, options.nodes, options.ranks_per_node, options.items, options.most_messages
        )
    except TooManyMessagesError:
        print(f"more than {options.most_messages:,} messages", file=sys.stderr)
        return 1
    inside, closed = _seconds(options.algorithm, options)
    counts = (found.messages, found.network_messages, found.counted_bytes, found.network_bytes)
    head = Record(*counts, inside, closed)
    print(json.dumps(asdict(head)), *found.lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
