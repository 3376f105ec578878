"""The ring allreduce: a reduce-scatter and an allgather, each passing chunks once around the ring.

P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel
Distrib. Comput. 69 (2009) 117-124, doi:10.1016/j.jpdc.2008.09.002. Each of p ranks sends 2(p-1) chunks of
1/p of the buffer: no algorithm sends less, and every link carries the same load.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .chunks import Array, chunk_bounds

if TYPE_CHECKING:
    from mpi4py import MPI

# Segments stay in the cache between the receive and the sum; MPI counts (32 bit) never overflow.
SEGMENT_BYTES = 1 << 22


class RingAllreduce:
    """Sum of a buffer over all ranks, left in every rank's buffer with identical bits.

    Works on messages between neighbours alone. The scratch memory (two segments) is kept between calls.
    Creating one is collective: the communicator is duplicated so that no message meets a foreign one.
    """

    name = "ring"

    def __init__(self, comm: MPI.Intracomm, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Prepare for the ranks of ``comm``; ``segment_bytes`` bounds one message (same on all ranks)."""
        self._comm = comm.Dup()
        self._ranks = comm.Get_size()
        self._rank = comm.Get_rank()
        self._left = (self._rank - 1) % self._ranks
        self._right = (self._rank + 1) % self._ranks
        self._segment_bytes = segment_bytes
        self._scratch = np.empty(0, np.uint8)
        self.bytes_sent = 0
        """Payload that this rank has sent so far, in bytes, over all calls."""

    def sum(self, array: Array) -> None:
        """Replace ``array`` by the element-wise sum over the ranks' arrays, in place.

        ``array`` is one-dimensional, contiguous, writable and of the same length and dtype (any that
        numpy adds) on all ranks; ValueError otherwise. The order of the additions differs from element
        to element but not from rank to rank, so all ranks end with the same bits.
        """
        if array.ndim != 1 or not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError("allreduce needs a one-dimensional, contiguous, writable array")
        if self._ranks == 1 or array.size == 0:
            return
        bounds = chunk_bounds(array.size, self._ranks)
        chunks = [array[start:stop] for start, stop in pairwise(bounds)]
        for hop in range(self._ranks - 1):
            send, receive = self._rank - hop, self._rank - hop - 1
            self._exchange(chunks[send % self._ranks], chunks[receive % self._ranks], add=True)
        for hop in range(self._ranks - 1):
            send, receive = self._rank - hop + 1, self._rank - hop
            self._exchange(chunks[send % self._ranks], chunks[receive % self._ranks], add=False)

    def close(self) -> None:
        """Free the duplicated communicator; collective."""
        self._comm.Free()

    def _exchange(self, send: Array, receive: Array, *, add: bool) -> None:
        """Send one chunk to the right while the chunk from the left is added to, or replaces, ``receive``.

        All messages are non-blocking, so no order of ranks can deadlock. Both sides cut a chunk into
        the same segments; an empty chunk makes no message.
        """
        sends = [self._comm.Isend(segment.view(np.uint8), self._right) for segment in self._segments(send)]
        self.bytes_sent += send.nbytes
        if add:
            self._receive_and_add(receive)
        else:
            arriving = [self._comm.Irecv(part.view(np.uint8), self._left) for part in self._segments(receive)]
            for request in arriving:
                request.Wait()
        for request in sends:
            request.Wait()

    def _receive_and_add(self, chunk: Array) -> None:
        """Add the chunk that comes from the left; the next segment travels while one is being summed."""
        segments = list(self._segments(chunk))
        landing = self._landing_zones(chunk)
        requests = [self._receive_into(zone, part) for zone, part in zip(landing, segments, strict=False)]
        for index, segment in enumerate(segments):
            zone = landing[index % 2]
            requests[index].Wait()
            segment += zone[: segment.size]
            if index + 2 < len(segments):
                requests.append(self._receive_into(zone, segments[index + 2]))

    def _receive_into(self, zone: Array, segment: Array) -> MPI.Request:
        return self._comm.Irecv(zone[: segment.size].view(np.uint8), self._left)

    def _landing_zones(self, chunk: Array) -> tuple[Array, Array]:
        """Two kept buffers of one segment each, seen with the dtype of ``chunk``."""
        items = self._items_per_segment(chunk)
        needed = 2 * items * chunk.itemsize
        if self._scratch.nbytes < needed:
            self._scratch = np.empty(needed, np.uint8)
        both = self._scratch[:needed].view(chunk.dtype)
        return both[:items], both[items:]

    def _items_per_segment(self, chunk: Array) -> int:
        return min(chunk.size, max(1, self._segment_bytes // chunk.itemsize))

    def _segments(self, chunk: Array) -> Iterator[Array]:
        items = self._items_per_segment(chunk)
        return (chunk[start : start + items] for start in range(0, chunk.size, items or 1))
