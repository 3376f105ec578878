"""The fastest allreduce of those that there are, found by measuring them where and on what they will run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from .algorithm import Algorithm
from .chunks import Array
from .halving import HalvingDoublingAllreduce
from .hierarchical import HierarchicalAllreduce
from .library import LibraryAllreduce
from .ring import RingAllreduce
from .shared import DIRECT_BYTES, SharedAllreduce
from .tree import TreeAllreduce

# Longer arrays are not measured with what passes whole arrays around, which can only be slower.
_TREE_BYTES = 1 << 16
_ROUNDS = 5
_SAMPLE_S = 5e-4
_MOST_CALLS = 50
# Not measured on: a candidate that took so many times as long as the best in the first round.
_HOPELESS = 3.0

Kind = tuple[int, bool, np.dtype[Any]]


class AutoAllreduce(Algorithm):
    """At the first array of a size (to a power of two), dtype and place, all candidates sum it in turn.

    The least time counts, of the slowest rank; rank 0 decides for all, so that the ranks agree. The
    choice is kept. It may differ from run to run, and with it the last bits of a sum over more than two
    ranks; ``measured=False`` takes the way through shared memory for all, whose bits do not change.
    """

    name = "auto"

    def __init__(self, comm: MPI.Intracomm, *, measured: bool = True) -> None:
        """Prepare the candidates: memory that they share is taken when first needed."""
        super().__init__(comm)
        self._home: SharedAllreduce | HierarchicalAllreduce = (
            SharedAllreduce(comm) if on_one_node(comm) else HierarchicalAllreduce(comm)
        )
        self._long: list[Algorithm] = [self._home]
        self._short: list[Algorithm] = [self._home]
        if measured:
            self._long += [LibraryAllreduce(comm), RingAllreduce(comm), HalvingDoublingAllreduce(comm)]
            self._short = [*self._long, TreeAllreduce(comm)]
        self._chosen: dict[Kind, Algorithm] = {}

    def buffer(self, items: int, dtype: npt.DTypeLike) -> Array:
        """A zeroed array in memory that the node's ranks share, which serves all candidates."""
        return self._home.buffer(items, dtype)

    def _sum(self, array: Array) -> None:
        nbytes = array.nbytes
        # A short array is copied anyhow, so that its place makes no difference.
        shared = nbytes > DIRECT_BYTES and self._home.holds(array)
        kind = (nbytes.bit_length(), shared, array.dtype)
        chosen = self._chosen.get(kind)
        if chosen is None:
            chosen = self._choose(array, kind)
        before = chosen.bytes_sent
        chosen._sum(array)
        self.bytes_sent += chosen.bytes_sent - before

    def close(self) -> None:
        """Free all candidates."""
        for candidate in self._short:
            candidate.close()
        super().close()

    # --- measuring ------------------------------------------------------------------------------------------

    def _choose(self, array: Array, kind: Kind) -> Algorithm:
        candidates = self._short if array.nbytes <= _TREE_BYTES else self._long
        chosen = candidates[0]
        if len(candidates) > 1:
            content = array.copy()
            array[:] = 0  # sums of what is there could overflow
            chosen = candidates[self._fastest(candidates, array)]
            array[:] = content
        self._chosen[kind] = chosen
        place = (
            "shared memory" if kind[1] else "ordinary memory" if array.nbytes > DIRECT_BYTES else "any memory"
        )
        self.choices[f"{_size(array.nbytes)} {array.dtype} in {place}"] = chosen.name
        return chosen

    def _fastest(self, candidates: list[Algorithm], array: Array) -> int:
        """The place of the candidate with the least time; the same on all ranks."""
        least = np.array([self._seconds(candidate, array, 1) for candidate in candidates])
        calls = [1] * len(candidates)
        for turn in range(_ROUNDS):
            slowest = np.empty_like(least)
            self._comm.Allreduce(least, slowest, op=MPI.MAX)
            self._comm.Bcast(slowest)  # MPI only advises that all ranks get the same bits
            for index, candidate in enumerate(candidates):
                if turn == 0:  # what was measured above also warmed up
                    calls[index] = min(_MOST_CALLS, max(1, int(_SAMPLE_S / max(slowest[index], 1e-7))))
                if slowest[index] <= _HOPELESS * slowest.min():
                    least[index] = min(least[index], self._seconds(candidate, array, calls[index]))
        self._comm.Allreduce(MPI.IN_PLACE, least, op=MPI.MAX)
        return int(self._comm.bcast(int(least.argmin())))

    def _seconds(self, candidate: Algorithm, array: Array, calls: int) -> float:
        self._comm.Barrier()
        start = time.perf_counter()
        for _ in range(calls):
            candidate._sum(array)
        return (time.perf_counter() - start) / calls


def on_one_node(comm: MPI.Intracomm) -> bool:
    """Whether all ranks share memory; collective."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    together = node.Get_size() == comm.Get_size()
    node.Free()
    return bool(comm.allreduce(together, op=MPI.LAND))


def _size(nbytes: int) -> str:
    """The class of a size: ``below 8 KiB`` for 4 KiB up to it."""
    limit = 1 << nbytes.bit_length()
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if limit >= factor:
            return f"below {limit // factor} {unit}"
    return f"below {limit} B"
