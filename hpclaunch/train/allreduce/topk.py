"""Top-k sparsification with error feedback, over a ring that is sparse as long as that is shorter.

Each rank sends the largest of its numbers; all other numbers form its residual, which is added to the next
gradients (A. F. Aji and K. Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017,
doi:10.18653/v1/D17-1045; proved by S. U. Stich et al., "Sparsified SGD with memory", NeurIPS 2018).
Sums of sparse vectors fill up: each message is sparse or dense, whichever is shorter (C. Renggli et al.,
"SparCML", SC 2019, doi:10.1145/3295500.3356222), so that it never sends more than the dense ring.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from .algorithm import Algorithm
from .chunks import Array, chunk_bounds

_SPARSE, _DENSE = 1, 2  # a message's tag says its form, so that no byte of it needs to
_PAIR_BYTES = 8  # a place in its chunk and a number
_PIECE_ITEMS = 1 << 28  # below the 32-bit counts of MPI 3


class TopKAllreduce(Algorithm):
    """Sums of what the ranks send of arrays of float32, which must lie in a `buffer`.

    The residual of a part of a buffer comes with the next sum of that part; a checkpoint contains it.
    """

    name = "ring"

    def __init__(self, comm: MPI.Intracomm, density: float) -> None:
        """``density``: the share of an array's numbers that a rank sends, at least one number."""
        super().__init__(comm)
        self._density = density
        self._residuals: list[tuple[Array, Array]] = []  # each buffer with its residual

    @property
    def residual(self) -> Array | None:
        """What this rank has not sent yet of its first buffer, live."""
        return self._residuals[0][1] if self._residuals else None

    def buffer(self, items: int, dtype: npt.DTypeLike) -> Array:
        """A zeroed array, with a residual."""
        made = super().buffer(items, dtype)
        self._residuals.append((made, np.zeros_like(made)))
        return made

    def sum(self, array: Array) -> None:
        """As `Algorithm.sum`, but of the largest numbers only; also on one rank alone."""
        if array.dtype != np.float32:
            raise ValueError(f"compression to topk needs float32, not {array.dtype}")
        self._select(array, self._residual_of(array))
        super().sum(array)

    def _sum(self, array: Array) -> None:
        for start in range(0, array.size, _PIECE_ITEMS):
            self._sum_piece(array[start : start + _PIECE_ITEMS])

    def _residual_of(self, array: Array) -> Array:
        address = MPI.Get_address(array)
        for made, residual in self._residuals:
            start = address - MPI.Get_address(made)
            if start >= 0 and start + array.nbytes <= made.nbytes:
                return residual[start // array.itemsize :][: array.size]
        raise ValueError("compression to topk needs an array in its buffer, which has a residual")

    def _select(self, array: Array, residual: Array) -> None:
        """Leave the largest numbers in ``array`` and all others in ``residual``."""
        if array.size == 0:
            return
        residual += array
        count = max(1, min(array.size, round(self._density * array.size)))
        # NaN counts as the largest, so that all ranks get it.
        largest = np.argpartition(np.abs(residual), array.size - count)[array.size - count :]
        array[:] = 0
        array[largest] = residual[largest] + np.float32(0)  # no negative zero, which sparse form would lose
        residual[largest] = 0

    def _sum_piece(self, array: Array) -> None:
        chunks = [array[start:stop] for start, stop in pairwise(chunk_bounds(array.size, self._ranks))]
        left, right = (self._rank - 1) % self._ranks, (self._rank + 1) % self._ranks
        landing = np.empty(chunks[0].nbytes, np.uint8)
        message, tag = _packed(chunks[self._rank])
        for hop in range(2 * self._ranks - 2):
            chunk = chunks[(self._rank - hop - 1) % self._ranks]
            summing = hop < self._ranks - 1
            status = MPI.Status()
            self._comm.Sendrecv(
                [message, MPI.BYTE], right, tag, [landing, MPI.BYTE], left, MPI.ANY_TAG, status
            )
            self._sent_bytes += message.nbytes
            arrived = landing[: status.Get_count(MPI.BYTE)]
            _unpack(arrived, status.Get_tag(), chunk, add=summing)
            if summing:
                message, tag = _packed(chunk)
            else:
                message, tag = arrived.copy(), status.Get_tag()


def _packed(chunk: Array) -> tuple[npt.NDArray[np.uint8], int]:
    """The shorter form of a chunk, as a copy, and its tag."""
    places = np.flatnonzero(chunk)
    if places.size * _PAIR_BYTES >= chunk.nbytes:
        return chunk.copy().view(np.uint8), _DENSE
    parts = places.astype(np.uint32).view(np.uint8), chunk[places].view(np.uint8)
    return np.concatenate(parts), _SPARSE


def _unpack(message: npt.NDArray[np.uint8], tag: int, chunk: Array, *, add: bool) -> None:
    """Add what `_packed` made of another rank's chunk to ``chunk``, or put it there instead."""
    if not add:
        chunk[:] = 0
    if tag == _DENSE:
        chunk += message.view(chunk.dtype)
        return
    half = message.size // 2
    chunk[message[:half].view(np.uint32)] += message[half:].view(chunk.dtype)
