"""The fastest of the allreduce algorithms, found by measuring them on the ranks and arrays of the run."""

import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from .algorithm import Algorithm
from .chunks import Array
from .halving_doubling import HalvingDoublingAllreduce
from .hierarchical import HierarchicalAllreduce
from .mpi_library import LibraryAllreduce
from .ring import RingAllreduce
from .shared_memory import DIRECT_BYTES, SharedAllreduce, on_one_node

# Many short samples: other programs disturb the fastest of them least.
_SAMPLE_S = 1e-4
# Where ranks share cores they must take turns as often as in a loop of sums, not start together by a barrier.
_SAMPLE_CROWDED_S = 2e-3
_LEAST_CALLS, _MOST_CALLS = 4, 20
_SLOW_S = 1e-2  # a sum this slow waits for other programs: repeating it tells little and takes long
# Longer arrays do not fit the caches, so what was called before makes no difference to a single call.
_LONG_BYTES = 1 << 23
_BUDGET_S = 0.15
_LEAST_ROUNDS, _LEAST_ROUNDS_CROWDED, _MOST_ROUNDS = 3, 9, 100
_MOST_CACHED = 1024  # choices by address
# Another algorithm must be this much faster than the job's own MPI to be chosen instead: then an error of the
# measurement costs little.
_CLEARLY_FASTER = 0.9
_MOST = 0.75  # share of the rounds, where ranks share cores

Kind = tuple[int, bool, np.dtype[Any]]


class AutoAllreduce(Algorithm):
    """At the first array of a size (to a power of two), dtype and place, all candidates sum it in turn.

    The least time of the slowest rank counts. Where ranks share cores, waiting for one is part of every sum:
    then an algorithm must win most of the rounds against the job's own MPI. Rank 0 decides, so that the ranks
    agree. Without a clear winner it is the job's own MPI. The choice holds until `close`. It may
    differ from run to run, and with it the last bits of a sum over more than two ranks; ``measured=False``
    takes shared memory for all arrays, whose bits do not change.
    """

    name = "auto"

    def __init__(self, comm: MPI.Intracomm, *, measured: bool = True) -> None:
        super().__init__(comm)
        self._home: SharedAllreduce | HierarchicalAllreduce = (
            SharedAllreduce(comm) if on_one_node(comm) else HierarchicalAllreduce(comm)
        )
        self._candidates: list[Algorithm] = [self._home]
        if measured:
            self._candidates += [LibraryAllreduce(comm), RingAllreduce(comm), HalvingDoublingAllreduce(comm)]
        self._chosen: dict[Kind, Algorithm] = {}
        self._quick: dict[tuple[int, int, np.dtype[Any]], Algorithm] = {}
        """By address (0 for short arrays), bytes and dtype: finding the kind takes longer than this."""
        self._measuring_bytes = 0
        self._crowded = _share_cores(comm)
        self._least_rounds = _LEAST_ROUNDS_CROWDED if self._crowded else _LEAST_ROUNDS
        self._sample_s = _SAMPLE_CROWDED_S if self._crowded else _SAMPLE_S

    def buffer(self, items: int, dtype: npt.DTypeLike) -> Array:
        """A zeroed array in memory that the node's ranks share, which serves all candidates."""
        self._quick.clear()  # an ordinary array may have had the same address before
        return self._home.buffer(items, dtype)

    def prepare(self, array: Array) -> None:
        """Choose for arrays like this one, so that no later sum has to."""
        if self._ranks > 1 and array.size > 0 and self._kind(array) not in self._chosen:
            self._choose(array)

    def sum(self, array: Array) -> None:
        """As `Algorithm.sum`, by the candidate chosen for such arrays."""
        short = array.nbytes <= DIRECT_BYTES
        key = (0 if short else MPI.Get_address(array), array.nbytes, array.dtype)
        chosen = self._quick.get(key)
        if chosen is None:
            chosen = self._chosen.get(self._kind(array))
            if chosen is None:
                super().sum(array)
                return
            if len(self._quick) >= _MOST_CACHED:
                self._quick.clear()
            self._quick[key] = chosen
        elif short:
            chosen._sum(array)  # it checks the array itself: a second check costs short arrays much
            return
        chosen.sum(array)

    def _sum(self, array: Array) -> None:
        self._choose(array)._sum(array)

    @property
    def bytes_sent(self) -> int:
        """Payload that this rank has sent so far, in bytes, without that of measuring."""
        return self._all_bytes() - self._measuring_bytes

    def close(self) -> None:
        """Free all candidates."""
        for candidate in self._candidates:
            candidate.close()
        super().close()

    def _kind(self, array: Array) -> Kind:
        """Arrays of one kind share a choice. The place of a short array, which is copied, does not matter."""
        nbytes = array.nbytes
        return nbytes.bit_length(), nbytes > DIRECT_BYTES and self._home.holds(array), array.dtype

    def _all_bytes(self) -> int:
        return sum(candidate.bytes_sent for candidate in self._candidates)

    def _choose(self, array: Array) -> Algorithm:
        """The candidate for arrays like this one from now on."""
        start = time.perf_counter()
        candidates = self._candidates
        chosen = candidates[0]
        if len(candidates) > 1:
            content, before = array.copy(), self._all_bytes()
            array[:] = 0  # sums of what is there could overflow
            chosen = candidates[self._fastest(candidates, array)]
            array[:] = content
            self._measuring_bytes += self._all_bytes() - before
        kind = self._kind(array)
        self._chosen[kind] = chosen
        place = "shared" if kind[1] else "ordinary" if array.nbytes > DIRECT_BYTES else "any"
        self.choices[f"{array.dtype} {_size(array.nbytes)} in {place} memory"] = chosen.name
        self.choosing_s += time.perf_counter() - start
        return chosen

    def _fastest(self, candidates: list[Algorithm], array: Array) -> int:
        """The place of the candidate with the least time; the same on all ranks."""
        for candidate in candidates:
            candidate._sum(array)  # takes its memory
        trials = [
            [self._seconds(candidate, array, 1) for candidate in candidates] for _ in range(_LEAST_ROUNDS)
        ]
        first = self._slowest(np.min(trials, axis=0))
        least = np.where((array.nbytes < _LONG_BYTES) & (first < _SLOW_S), _LEAST_CALLS, 1)
        calls = np.clip(self._sample_s / first, least, _MOST_CALLS).astype(int)
        rounds = int(np.clip(_BUDGET_S / (first * calls).sum(), self._least_rounds, _MOST_ROUNDS))
        samples = [
            [
                self._seconds(candidate, array, int(times))
                for candidate, times in zip(candidates, calls, strict=True)
            ]
            for _ in range(rounds)
        ]
        seconds = self._slowest(samples)
        library = next(at for at, candidate in enumerate(candidates) if candidate.name == "mpi")
        if self._crowded:
            # Round by round: what else the node does disturbs all candidates of a round alike.
            score = np.quantile(seconds / seconds[:, [library]], _MOST, axis=0)
        else:
            score = seconds.min(axis=0) / seconds[:, library].min()
        best = int(score.argmin())
        return best if score[best] < _CLEARLY_FASTER else library

    def _slowest(self, seconds: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The times of the slowest rank, of whatever shape; the same bits on all ranks."""
        found = np.array(seconds)
        self._comm.Allreduce(MPI.IN_PLACE, found, op=MPI.MAX)
        self._comm.Bcast(found)  # MPI only advises that all ranks get the same
        return found

    def _seconds(self, candidate: Algorithm, array: Array, calls: int) -> float:
        if calls > 1:
            candidate._sum(array)  # so that the caches contain what this candidate leaves there
        self._comm.Barrier()
        start = time.perf_counter()
        for _ in range(calls):
            candidate._sum(array)
        return (time.perf_counter() - start) / calls


def _share_cores(comm: MPI.Intracomm) -> bool:
    """Whether a node has more ranks than cores: then waiting for a core is part of every sum. Collective."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    crowded = node.Get_size() > (os.cpu_count() or 1)
    node.Free()
    return bool(comm.allreduce(crowded, op=MPI.LOR))


def _size(nbytes: int) -> str:
    """The class of a size: ``below 8 KiB`` for 4 KiB up to it."""
    limit = 1 << nbytes.bit_length()
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if limit >= factor:
            return f"below {limit // factor} {unit}"
    return f"below {limit} B"
