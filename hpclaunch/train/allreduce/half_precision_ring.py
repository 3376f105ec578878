"""A ring whose messages are half as long: float32 is added, 16 bits travel.

bf16 has the range of float32 and 8 bits of each number, fp16 has 11 bits of numbers below 65,520; larger
numbers become infinite. A chunk's sum is rounded on each of its p-1 hops and once at its end.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from . import Array, chunk_bounds
from .algorithm import SEGMENT_BYTES, Algorithm

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[Any]
"""16 bits a number; uint16 for bf16, for which numpy has no type."""

# Being sent, arriving to be sent next, and the one of the hop before, which MPI may still be sending.
_WIRES = 3


def to_fp16(numbers: Floats, halves: Halves) -> None:
    """Round to the nearest, halfway cases to even."""
    with np.errstate(over="ignore"):  # infinite: the training sees it in the sum
        np.copyto(halves, numbers, casting="same_kind")


def from_fp16(halves: Halves) -> Floats:
    """Exact."""
    return halves.astype(np.float32)


def to_bf16(numbers: Floats, halves: Halves) -> None:
    """Round to the nearest, halfway cases to even; NaN stays NaN."""
    bits = numbers.view(np.uint32)
    rounded = bits >> 16
    rounded &= 1
    rounded += 0x7FFF
    rounded += bits
    rounded >>= 16
    np.copyto(halves, rounded, casting="same_kind")
    lost = np.isnan(numbers)
    if lost.any():  # rounding could carry into the sign
        halves[lost] = 0x7FC0


def from_bf16(halves: Halves) -> Floats:
    """Exact."""
    bits = halves.astype(np.uint32)
    bits <<= 16
    return bits.view(np.float32)


class Half(NamedTuple):
    """A way to write numbers in 16 bits."""

    dtype: type[np.generic]
    encode: Callable[[Floats, Halves], None]
    decode: Callable[[Halves], Floats]


HALVES = {"bf16": Half(np.uint16, to_bf16, from_bf16), "fp16": Half(np.float16, to_fp16, from_fp16)}
"""By the name that ``--compression`` takes."""


class HalfRingAllreduce(Algorithm):
    """The ring of `RingAllreduce`, of float32 only; all ranks end with the same bits."""

    name = "ring"

    def __init__(self, comm: MPI.Intracomm, segment_bytes: int = SEGMENT_BYTES, *, kind: str) -> None:
        """Prepare for the ranks of ``comm``; ``kind`` of `HALVES`; ``segment_bytes`` bounds one message."""
        super().__init__(comm, segment_bytes)
        self._kind = kind
        self._half = HALVES[kind]
        self._wires = [np.empty(0, self._half.dtype)] * _WIRES

    def _sum(self, array: Array) -> None:
        if array.dtype != np.float32:
            raise ValueError(f"compression to {self._kind} needs float32, not {array.dtype}")
        chunks = [array[start:stop] for start, stop in pairwise(chunk_bounds(array.size, self._ranks))]
        if self._wires[0].size < chunks[0].size:
            self._wires = [np.empty(chunks[0].size, self._half.dtype) for _ in range(_WIRES)]
        right, hops = (self._rank + 1) % self._ranks, 2 * self._ranks - 2
        own = chunks[self._rank]
        wire = self._wires[0][: own.size]
        self._half.encode(own, wire)
        sends = [self._start_sends(wire, right)]
        for hop in range(hops):
            if hop >= _WIRES - 1:  # what arrives now lands where that hop sent from
                MPI.Request.Waitall(sends[hop + 1 - _WIRES])
            sends.append(self._hop(hop, chunks[(self._rank - hop - 1) % self._ranks], right))
        for requests in sends[-_WIRES:]:
            MPI.Request.Waitall(requests)

    def _hop(self, hop: int, chunk: Array, right: int) -> list[MPI.Request]:
        """Take ``chunk`` from the left, segment by segment, and pass each on at once."""
        left, p = (self._rank - 1) % self._ranks, self._ranks
        summing, last_sum, last = hop < p - 1, hop == p - 2, hop == 2 * p - 3
        halves = self._segments(self._wires[(hop + 1) % _WIRES][: chunk.size])
        receives = [self._comm.Irecv([part, MPI.BYTE], left) for part in halves]
        going: list[MPI.Request] = []
        start = 0
        for half, receive in zip(halves, receives, strict=True):
            part = chunk[start : start + half.size]
            start += half.size
            receive.Wait()
            arrived = self._half.decode(half)
            if summing:
                np.add(part, arrived, out=part)
                self._half.encode(part, half)
            if last_sum:
                arrived = self._half.decode(half)  # this rank uses the rounded sum that the other ranks get
            if last_sum or not summing:
                np.copyto(part, arrived)
            if not last:
                going += self._start_sends(half, right)
        return going
