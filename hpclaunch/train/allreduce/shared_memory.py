"""Allreduce inside one node: each rank sums its slice straight from the memory of all others.

MPI-3 gives the ranks of a node one piece of memory (MPI.Win.Allocate_shared), so that no byte is copied into
a message. Arrays from `SharedAllreduce.buffer` live there and are summed where they are; ordinary arrays
pass through in segments that stay in the cache.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from ..collective import AgreedError
from ..run_errors import BadRequestError
from . import Array, chunk_bounds
from .algorithm import SEGMENT_BYTES, Algorithm

Bytes = npt.NDArray[np.uint8]
K = TypeVar("K")
V = TypeVar("V")
Place = tuple[int, int, np.dtype[Any]]
"""Address, items, dtype."""

# Two ranks never write to the same line of a cache; also the widest item that a slice must not cut.
_LINE_BYTES = 64
# For shorter arrays, reading all of them on every rank costs less than another barrier.
_DIRECT_BYTES = 1 << 15
# A segment that is being filled, one being summed, one being read.
_SLOTS = 3
# Views of shared memory are cached between calls: making new ones takes longer than summing a short array.
_MOST_CACHED = 1024


class SharedMemory:
    """Memory of which each rank has its own part, and every rank of the node sees all parts."""

    def __init__(self, comm: MPI.Intracomm, nbytes: int) -> None:
        """Allocate ``nbytes`` zeroed bytes on each rank of ``comm``; all of one node. Collective."""
        padded = -(-max(nbytes, 1) // _LINE_BYTES) * _LINE_BYTES + _LINE_BYTES
        self._window = MPI.Win.Allocate_shared(padded, 1, comm=comm)
        self.parts = [self._part(rank, nbytes) for rank in range(comm.Get_size())]
        """By rank: its bytes, starting at a cache line."""
        mine = self.parts[comm.Get_rank()]
        mine[:] = 0
        self._addresses = range(mine.ctypes.data, mine.ctypes.data + nbytes)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        self._sync, self._barrier = self._window.Sync, comm.Barrier
        self.meet()

    def offset(self, address: int, nbytes: int) -> int | None:
        """Where in this rank's part ``nbytes`` bytes at ``address`` begin; None where they are not in it."""
        start = address - self._addresses.start
        return start if start >= 0 and address + nbytes <= self._addresses.stop else None

    def _part(self, rank: int, nbytes: int) -> Bytes:
        memory, _ = self._window.Shared_query(rank)
        whole = np.frombuffer(cast("memoryview", memory), np.uint8)
        offset = -whole.ctypes.data % _LINE_BYTES
        return whole[offset : offset + nbytes]

    def meet(self) -> None:
        """Wait for all ranks; each then sees what the other ranks wrote before."""
        self._sync()
        self._barrier()
        self._sync()

    def close(self) -> None:
        """Free the memory: arrays in it may no longer be touched. Collective."""
        self.parts = []
        self._window.Unlock_all()
        self._window.Free()


def on_one_node(comm: MPI.Intracomm) -> bool:
    """Whether all ranks share memory; collective."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    all_here = node.Get_size() == comm.Get_size()
    node.Free()
    return bool(comm.allreduce(all_here, op=MPI.LAND))


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
        owner's slice over the nodes. Raises AgreedError where they are on several nodes.
        """
        super().__init__(comm, segment_bytes)
        if not on_one_node(comm):
            raise AgreedError(BadRequestError.of("shared on several nodes"))
        self._between = between
        self._owners = owners or self._ranks
        self._buffers: list[SharedMemory] = []
        self._transit: SharedMemory | None = None
        self._turn = 0
        # Several nodes must cut what goes between them alike, so none may take the direct path.
        self._direct_bytes = min(_DIRECT_BYTES, self._slot_bytes()) if owners is None else -1
        self._resident: dict[Place, _Resident] = {}
        self._slots: dict[tuple[int, np.dtype[Any]], list[_Slot]] = {}

    def buffer(self, items: int, dtype: npt.DTypeLike) -> Array:
        """A zeroed array in memory that the node's ranks share."""
        kind = np.dtype(dtype)
        memory = SharedMemory(self._comm, items * kind.itemsize)
        self._buffers.append(memory)
        return memory.parts[self._rank].view(kind)

    def close(self) -> None:
        """Free all buffers."""
        self._resident.clear()
        self._slots.clear()
        for memory in [*self._buffers, *([self._transit] if self._transit else [])]:
            memory.close()
        super().close()

    def _sum(self, array: Array) -> None:
        """Choose by size and place; all ranks choose alike, for an array is in the same buffer on all."""
        if array.nbytes <= self._direct_bytes:
            # One copy, one barrier, and every rank adds up everything: the same additions on all.
            slots = self._slots.get((array.nbytes, array.dtype)) or self._make_slots(array)
            slot = slots[self._turn]
            slot.mine[:] = array
            slot.meet()
            _add(slot.arrays, array)
            self._turn = (self._turn + 1) % _SLOTS
            self._sent_bytes += (self._ranks - 1) * array.nbytes
            return
        found = self._resident.get(self._place(array)) or self._find_resident(array)
        if found is not None:
            self._sum_resident(found)
        else:
            self._sum_in_transit(array)

    @staticmethod
    def _place(array: Array) -> Place:
        return MPI.Get_address(array), array.size, array.dtype

    # --- in place: the arrays are in shared memory -------------------------------------------------------

    def _find_resident(self, array: Array) -> "_Resident | None":
        """How to sum an array that lies in one of the buffers; None where it is an ordinary one."""
        place = self._place(array)
        for memory in self._buffers:
            offset = memory.offset(place[0], array.nbytes)
            if offset is not None:
                span = slice(offset, offset + array.nbytes)
                arrays = [part[span].view(array.dtype) for part in memory.parts]
                found = _Resident(memory.meet, self._blocks(arrays), self._moved(array))
                _cache(self._resident, place, found)
                return found
        return None

    def _blocks(self, arrays: list[Array]) -> list[list[Array]]:
        """This rank's slice of all arrays, in blocks that stay in the cache."""
        start, stop = self._slices(arrays[0])[self._rank]
        step = max(1, self._segment_bytes // arrays[0].itemsize // 2)
        if self._between is not None:
            step = max(1, stop - start)  # in one piece through the network
        return [[array[at : min(at + step, stop)] for array in arrays] for at in range(start, stop, step)]

    def _sum_resident(self, resident: "_Resident") -> None:
        resident.meet()
        for block in resident.blocks:
            total = block[0]
            _add(block, total)
            if self._between is not None:
                self._between.sum(total)
            for other in block[1:]:
                np.copyto(other, total)
        self._sent_bytes += resident.moved
        resident.meet()

    # --- in transit: segments of ordinary arrays -----------------------------------------------------------

    def _sum_in_transit(self, array: Array) -> None:
        """In each phase: fill a slot, sum the one filled before, read the one summed before."""
        parts = self._segments(array)
        whole = self._slots.get((parts[0].nbytes, array.dtype)) or self._make_slots(parts[0])
        last = self._slots.get((parts[-1].nbytes, array.dtype)) or self._make_slots(parts[-1])
        slots = [whole[(self._turn + index) % _SLOTS] for index in range(len(parts) - 1)]
        slots.append(last[(self._turn + len(slots)) % _SLOTS])
        meet = slots[0].meet
        for phase in range(len(parts) + 2):
            if phase < len(parts):
                slots[phase].fill(parts[phase])
            if 1 <= phase <= len(parts):
                slots[phase - 1].reduce(parts[phase - 1], self._between)
            if phase >= 2:
                slots[phase - 2].read(parts[phase - 2])
            if phase <= len(parts):
                meet()
        self._turn = (self._turn + len(parts)) % _SLOTS
        self._sent_bytes += self._moved(array)

    def _slot_bytes(self) -> int:
        return -(-self._segment_bytes // _LINE_BYTES) * _LINE_BYTES

    def _make_slots(self, part: Array) -> "list[_Slot]":
        """Where arrays like ``part`` pass through, by turn; memory is taken when first needed."""
        if self._transit is None:
            self._transit = SharedMemory(self._comm, _SLOTS * self._slot_bytes())
        made = []
        for start in range(0, _SLOTS * self._slot_bytes(), self._slot_bytes()):
            span = slice(start, start + part.nbytes)
            arrays = [other[span].view(part.dtype) for other in self._transit.parts]
            made.append(_Slot(arrays, self._rank, self._slices(part), self._transit.meet))
        _cache(self._slots, (part.nbytes, part.dtype), made)
        return made

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


class _Resident(NamedTuple):
    """An array in shared memory, ready to be summed."""

    meet: Callable[[], None]
    blocks: list[list[Array]]
    """Of each block of this rank's slice: all ranks' arrays."""
    moved: int
    """Bytes that `Algorithm.bytes_sent` counts."""


class _Slot:
    """Shared memory that a segment of ordinary arrays passes through, seen by one rank."""

    def __init__(
        self, arrays: list[Array], rank: int, slices: list[tuple[int, int]], meet: Callable[[], None]
    ) -> None:
        """``arrays`` and ``slices`` by rank: where its segment stands, and what of all it sums."""
        self.arrays = arrays
        self.meet = meet
        self.mine = arrays[rank]
        self._start, self._stop = start, stop = slices[rank]
        self._before, self._behind = self.mine[:start], self.mine[stop:]
        self._result = self.mine[start:stop]
        self._lower = [array[start:stop] for array in arrays[:rank]]
        self._higher = [array[start:stop] for array in arrays[rank + 1 :]]
        self._of_others = [
            (low, high, arrays[owner][low:high])
            for owner, (low, high) in enumerate(slices)
            if owner != rank and low < high
        ]

    def fill(self, part: Array) -> None:
        """Show the other ranks what they sum: all but this rank's slice."""
        np.copyto(self._before, part[: self._start])
        np.copyto(self._behind, part[self._stop :])

    def reduce(self, part: Array, between: Algorithm | None) -> None:
        """Sum this rank's slice into its own array, and show it."""
        if self._start == self._stop:
            return
        own = part[self._start : self._stop]
        _add([*self._lower, own, *self._higher], self._result)
        if between is not None:
            between.sum(self._result)
        np.copyto(own, self._result)

    def read(self, part: Array) -> None:
        """Copy the slices that the other ranks have summed."""
        for low, high, total in self._of_others:
            np.copyto(part[low:high], total)


def _cache(cache: dict[K, V], key: K, value: V) -> None:
    """Add an entry; where there are too many, drop all others first."""
    if len(cache) >= _MOST_CACHED:
        cache.clear()
    cache[key] = value


def _add(arrays: list[Array], result: Array) -> None:
    """Sum in the order given; ``result`` may be the first of ``arrays``."""
    if len(arrays) == 1:
        np.copyto(result, arrays[0])
        return
    np.add(arrays[0], arrays[1], result)
    for array in arrays[2:]:
        np.add(result, array, result)
