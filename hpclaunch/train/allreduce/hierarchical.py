"""Allreduce in two levels: shared memory in each node, a ring between the nodes."""

from collections.abc import Callable

import numpy.typing as npt
from mpi4py import MPI

from . import Array
from .algorithm import SEGMENT_BYTES, Algorithm
from .ring import RING_SEGMENT_BYTES, RingAllreduce
from .shared_memory import SharedAllreduce

# What passes through a node's memory goes on in messages; longer ones use a network better.
_NODE_SEGMENT_BYTES = 16 * SEGMENT_BYTES


class HierarchicalAllreduce(Algorithm):
    """A node's ranks sum their slices of all its arrays; each slice then goes round its own ring of nodes.

    So every rank of a node uses the network at once, with its share of the bytes. There are as many slices as
    the smallest node has ranks; further ranks of larger nodes own none.
    """

    name = "hierarchical"

    def __init__(
        self,
        comm: MPI.Intracomm,
        segment_bytes: int = _NODE_SEGMENT_BYTES,
        node: MPI.Intracomm | None = None,
        ring: Callable[[MPI.Intracomm, int], Algorithm] = RingAllreduce,
    ) -> None:
        """Prepare for the ranks of ``comm``; ``node``: those of this node (None: MPI reports them).

        ``ring`` makes what sums between nodes, from its ranks and the length of a message.
        """
        super().__init__(comm, segment_bytes)
        here = node or MPI.Intracomm(comm.Split_type(MPI.COMM_TYPE_SHARED, key=self._rank))
        place = here.Get_rank()
        owners = comm.allreduce(here.Get_size(), op=MPI.MIN)
        peers = comm.Split(place if place < owners else MPI.UNDEFINED, self._rank)
        self._between = None
        if peers != MPI.COMM_NULL:
            self._between = ring(MPI.Intracomm(peers), min(segment_bytes, RING_SEGMENT_BYTES))
            peers.Free()
        self._node = SharedAllreduce(here, segment_bytes, between=self._between, owners=owners)
        if node is None:
            here.Free()

    @property
    def bytes_sent(self) -> int:
        """Payload that this rank has sent so far, inside the node and between nodes, in bytes."""
        return self._node.bytes_sent + (self._between.bytes_sent if self._between else 0)

    def buffer(self, items: int, dtype: npt.DTypeLike) -> Array:
        """A zeroed array in memory that the node's ranks share."""
        return self._node.buffer(items, dtype)

    def _sum(self, array: Array) -> None:
        # Also where this node has one rank: all nodes must cut what goes between them into the same pieces.
        self._node._sum(array)

    def close(self) -> None:
        """Free both levels."""
        self._node.close()
        if self._between is not None:
            self._between.close()
        super().close()
