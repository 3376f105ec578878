"""Allreduce inside one node: each rank sums its slice straight from the memory of all others.

MPI-3 gives the ranks of a node one piece of memory (MPI.Win.Allocate_shared), so that no byte is copied into
a message. Arrays from `SharedAllreduce.buffer` live there and are summed where they are; ordinary arrays
pass through in segments that stay in the cache.
"""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from ..collective import AgreedError
from ..errors import BadRequestError
from .algorithm import SEGMENT_BYTES, Algorithm
from .chunks import Array, chunk_bounds

Bytes = npt.NDArray[np.uint8]

# Two ranks never write to the same line of a cache; also the widest item that a slice must not cut.
_LINE_BYTES = 64
# Below, reading all arrays on every rank costs less than a second barrier.
DIRECT_BYTES = 1 << 15
# A segment that is being filled, one being summed, one being read.
_SLOTS = 3


class SharedMemory:
    """As much memory a rank as asked for, of which every rank of a node sees every rank's part."""

    def __init__(self, comm: MPI.Intracomm, nbytes: int) -> None:
        """Allocate ``nbytes`` zeroed bytes on each rank of ``comm``; all of one node. Collective."""
        padded = -(-max(nbytes, 1) // _LINE_BYTES) * _LINE_BYTES + _LINE_BYTES
        self._window = MPI.Win.Allocate_shared(padded, 1, comm=comm)
        self._comm = comm
        self.parts = [self._part(rank, nbytes) for rank in range(comm.Get_size())]
        """By rank: its bytes, starting at a cache line."""
        self.parts[comm.Get_rank()][:] = 0
        self._window.Lock_all(MPI.MODE_NOCHECK)
        self.meet()

    def _part(self, rank: int, nbytes: int) -> Bytes:
        memory, _ = self._window.Shared_query(rank)
        whole = np.frombuffer(cast("memoryview", memory), np.uint8)
        offset = -whole.ctypes.data % _LINE_BYTES
        return whole[offset : offset + nbytes]

    def meet(self) -> None:
        """Wait for all ranks; each then sees what the others wrote before."""
        self._window.Sync()
        self._comm.Barrier()
        self._window.Sync()

    def close(self) -> None:
        """Free the memory: no array in it may be touched any more. Collective."""
        self.parts = []
        self._window.Unlock_all()
        self._window.Free()


class SharedAllreduce(Algorithm):
    """Each rank owns a slice: it sums all ranks' arrays there, in the order of the ranks.

    An array lies at the same place of the same buffer on all ranks, or in ordinary memory on all.
    """

    name = "shared"

    def __init__(
        self,
        comm: MPI.Intracomm,
        segment_bytes: int = 2 * SEGMENT_BYTES,
        between: Algorithm | None = None,
        owners: int | None = None,
    ) -> None:
        """Prepare for the ranks of one node.

        Where a job has more nodes, the first ``owners`` ranks of each own slices, and ``between`` sums an
        owner's slice over the nodes.
        Raises AgreedError where they are on several nodes.
        """
        super().__init__(comm, segment_bytes)
        node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        together = node.Get_size() == self._ranks
        node.Free()
        if not comm.allreduce(together, op=MPI.LAND):
            message = "--allreduce shared: the ranks are on several nodes, which share no memory"
            hint = "Use --allreduce hierarchical: shared memory in each node and a ring between them."
            raise AgreedError(BadRequestError(message, hint))
        self._between = between
        self._alone = owners is None
        self._owners = owners or self._ranks
        self._buffers: list[SharedMemory] = []
        self._transit: SharedMemory | None = None
        self._turn = 0

    def buffer(self, items: int, dtype: npt.DTypeLike) -> Array:
        """A zeroed array in memory that the node's ranks share."""
        kind = np.dtype(dtype)
        memory = SharedMemory(self._comm, items * kind.itemsize)
        self._buffers.append(memory)
        return memory.parts[self._rank].view(kind)

    def close(self) -> None:
        """Free all buffers."""
        for memory in [*self._buffers, *([self._transit] if self._transit else [])]:
            memory.close()
        super().close()

    def _sum(self, array: Array) -> None:
        """Choose by size and place; all ranks choose alike, for an array is in the same buffer on all."""
        resident = self._resident(array)
        if self._alone and array.nbytes <= min(DIRECT_BYTES, self._slot_bytes()):
            self._sum_directly(array)
        elif resident is not None:
            self._sum_resident(resident)
        else:
            self._sum_in_transit(array)

    def _resident(self, array: Array) -> tuple[SharedMemory, list[Array]] | None:
        """The memory that holds ``array``, and there all ranks' arrays; None: it is an ordinary one."""
        start = array.ctypes.data
        for memory in self._buffers:
            part = memory.parts[self._rank]
            offset = start - part.ctypes.data
            if offset >= 0 and offset + array.nbytes <= part.nbytes:
                span = slice(offset, offset + array.nbytes)
                return memory, [other[span].view(array.dtype) for other in memory.parts]
        return None

    # --- in place: the arrays are in shared memory -------------------------------------------------------

    def _sum_resident(self, resident: tuple[SharedMemory, list[Array]]) -> None:
        memory, arrays = resident
        start, stop = self._slices(arrays[0])[self._rank]
        memory.meet()
        if self._between is None:
            step = max(1, self._segment_bytes // arrays[0].itemsize // 2)
            blocks = [(at, min(at + step, stop)) for at in range(start, stop, step)]
        else:
            blocks = [(start, stop)]
        for low, high in blocks:
            mine = [array[low:high] for array in arrays]
            _add(mine, mine[0])
            if self._between is not None:
                self._between.sum(mine[0])
            for other in mine[1:]:
                other[:] = mine[0]
        self.bytes_sent += self._moved(arrays[0])
        memory.meet()

    # --- in transit: segments of ordinary arrays -----------------------------------------------------------

    def _sum_directly(self, array: Array) -> None:
        """One copy, one barrier, and every rank adds up everything: the same additions on all."""
        slot = self._slot(array)
        slot[self._rank][:] = array
        self._shared_slots().meet()
        _add(slot, array)
        self._turn += 1
        self.bytes_sent += (self._ranks - 1) * array.nbytes

    def _sum_in_transit(self, array: Array) -> None:
        """In each phase: fill a slot, sum the one filled before, read the one summed before."""
        parts = self._segments(array)
        slots = [(part, self._slot(part, index)) for index, part in enumerate(parts)]
        for phase in range(len(parts) + 2):
            if phase < len(parts):
                self._fill(*slots[phase])
            if 1 <= phase <= len(parts):
                self._reduce(*slots[phase - 1])
            if phase >= 2:
                self._read(*slots[phase - 2])
            if phase <= len(parts):
                self._shared_slots().meet()
        self._turn += len(parts)
        self.bytes_sent += self._moved(array)

    def _fill(self, part: Array, slot: list[Array]) -> None:
        """Show the others what they sum: all but this rank's slice."""
        start, stop = self._slices(part)[self._rank]
        slot[self._rank][:start] = part[:start]
        slot[self._rank][stop:] = part[stop:]

    def _reduce(self, part: Array, slot: list[Array]) -> None:
        """Sum this rank's slice into its own array, and show it."""
        start, stop = self._slices(part)[self._rank]
        if start == stop:
            return
        arrays = [part if rank == self._rank else other for rank, other in enumerate(slot)]
        result = slot[self._rank][start:stop]
        _add([array[start:stop] for array in arrays], result)
        if self._between is not None:
            self._between.sum(result)
        part[start:stop] = result

    def _read(self, part: Array, slot: list[Array]) -> None:
        """Take the slices that the others have summed."""
        for rank, (start, stop) in enumerate(self._slices(part)):
            if rank != self._rank:
                part[start:stop] = slot[rank][start:stop]

    def _shared_slots(self) -> SharedMemory:
        """Memory for what passes through, taken when first needed."""
        if self._transit is None:
            self._transit = SharedMemory(self._comm, _SLOTS * self._slot_bytes())
        return self._transit

    def _slot_bytes(self) -> int:
        return -(-self._segment_bytes // _LINE_BYTES) * _LINE_BYTES

    def _slot(self, part: Array, ahead: int = 0) -> list[Array]:
        """By rank, where ``part`` passes through: the slot of this turn, or so many turns ahead."""
        start = (self._turn + ahead) % _SLOTS * self._slot_bytes()
        return [other[start : start + part.nbytes].view(part.dtype) for other in self._shared_slots().parts]

    # --- slices ---------------------------------------------------------------------------------------------

    def _slices(self, array: Array) -> list[tuple[int, int]]:
        """By rank, from where to where it sums: whole lines of the cache, none for ranks that own nothing."""
        line = max(1, _LINE_BYTES // array.itemsize)
        bounds = [min(at * line, array.size) for at in chunk_bounds(-(-array.size // line), self._owners)]
        return [*pairwise(bounds), *[(array.size, array.size)] * (self._ranks - self._owners)]

    def _moved(self, array: Array) -> int:
        """Bytes of this rank that others read or got from it: their slices before, its own after."""
        start, stop = self._slices(array)[self._rank]
        own = (stop - start) * array.itemsize
        return array.nbytes - own + own * (self._ranks - 1)


def _add(arrays: list[Array], result: Array) -> None:
    """Sum in the order given; ``result`` may be the first of ``arrays``."""
    if len(arrays) == 1:
        result[:] = arrays[0]
        return
    np.add(arrays[0], arrays[1], out=result)
    for array in arrays[2:]:
        np.add(result, array, out=result)
