"""The ring allreduce: a reduce-scatter and an allgather, each passing chunks once around the ring.

P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel
Distrib. Comput. 69 (2009) 117-124, doi:10.1016/j.jpdc.2008.09.002. Each of p ranks sends 2(p-1) chunks of
1/p of the buffer: no algorithm sends less, and every link carries the same load.
"""

from itertools import pairwise

import numpy as np
from mpi4py import MPI

from . import Array, chunk_bounds
from .algorithm import Algorithm

# Inside a node a message costs more than what the next one gains by being in the cache: measured.
RING_SEGMENT_BYTES = 1 << 20


class RingAllreduce(Algorithm):
    """Messages between neighbours alone, in segments that follow one another through the hops.

    A segment is sent on as soon as it is summed: its next hop, the sum of the segment behind it and the
    transfer of the one behind that run at the same time. The order of the additions differs from element
    to element but not from rank to rank, so all ranks end with the same bits.
    """

    name = "ring"

    def __init__(self, comm: MPI.Intracomm, segment_bytes: int = RING_SEGMENT_BYTES) -> None:
        super().__init__(comm, segment_bytes)

    def _sum(self, array: Array) -> None:
        chunks = [array[start:stop] for start, stop in pairwise(chunk_bounds(array.size, self._ranks))]
        if chunks[0].nbytes <= self._segment_bytes:
            self._hop_by_hop(chunks)
        else:
            self._pipelined(chunks)

    def _hop_by_hop(self, chunks: list[Array]) -> None:
        """Chunks of one message each: nothing to overlap, so the fewest calls are fastest."""
        left, right = (self._rank - 1) % self._ranks, (self._rank + 1) % self._ranks
        landing = self._landing_zones(chunks[0], 1)[0]
        for hop in range(2 * self._ranks - 2):
            send, receive = self._sent(chunks, hop), self._sent(chunks, hop + 1)
            summing = hop < self._ranks - 1
            target = landing[: receive.size] if summing else receive
            self._comm.Sendrecv([send, MPI.BYTE], right, 0, [target, MPI.BYTE], left, 0)
            self._sent_bytes += send.nbytes
            if summing:
                np.add(receive, target, out=receive)

    def _pipelined(self, chunks: list[Array]) -> None:
        """Post receives ahead; each segment goes on to the right in the order in which it came."""
        left, right = (self._rank - 1) % self._ranks, (self._rank + 1) % self._ranks
        hops, p = 2 * self._ranks - 2, self._ranks
        sends = [self._start_sends(self._sent(chunks, 0), right)]
        for hop in range(hops):
            parts = self._segments(self._sent(chunks, hop + 1))
            if hop >= p - 1:
                # What is overwritten now left this rank p hops ago; MPI must be done with it.
                MPI.Request.Waitall(sends[hop + 1 - p])
            going: list[MPI.Request] = []
            for part in self._arriving(parts, left, add=hop < p - 1):
                if hop + 1 < hops:
                    going.append(self._comm.Isend([part, MPI.BYTE], right))
                    self._sent_bytes += part.nbytes
            sends.append(going)
        for requests in sends[p - 1 :]:
            MPI.Request.Waitall(requests)

    def _sent(self, chunks: list[Array], hop: int) -> Array:
        """The chunk that this rank sends in a hop; the one that it receives goes out in the next."""
        return chunks[(self._rank - hop) % self._ranks]
