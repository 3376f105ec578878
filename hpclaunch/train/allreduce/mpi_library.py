"""The MPI library's own allreduce, to compare with."""

from functools import partial
from itertools import pairwise
from typing import cast

import numpy as np
from mpi4py import MPI

from . import Array, chunk_bounds
from .algorithm import Algorithm

_MESSAGE_BYTES = 1 << 30  # below the 32-bit counts of MPI 3
# numpy's kinds for which every MPI has a type, and a sum like numpy's. Not those of 8 and 16 bits: where they
# overflow, numpy wraps around, and Open MPI 5 stops at the largest number.
_KNOWN = "fdgFDGilqILQ"


class LibraryAllreduce(Algorithm):
    """MPI_Allreduce. That all ranks get the same bits is advice of the MPI standard, not a rule."""

    name = "mpi"

    def _sum(self, array: Array) -> None:
        known = array.dtype.char in _KNOWN
        pieces = -(-array.nbytes // _MESSAGE_BYTES)
        for start, stop in pairwise(chunk_bounds(array.size, pieces)):
            piece = array[start:stop]
            if known:
                self._comm.Allreduce(MPI.IN_PLACE, piece)
            else:
                # Types that MPI lacks, such as float16, or sums otherwise: it moves bytes, numpy adds.
                item = MPI.BYTE.Create_contiguous(piece.itemsize).Commit()
                add = MPI.Op.Create(partial(_add, piece.dtype), commute=True)
                self._comm.Allreduce(MPI.IN_PLACE, [piece, piece.size, item], op=add)
                add.Free()
                item.Free()
        # What the library sends is not known; the least that any algorithm can.
        self._sent_bytes += 2 * (self._ranks - 1) * array.nbytes // self._ranks


def _add(dtype: np.dtype[np.generic], source: MPI.buffer, target: MPI.buffer, _: MPI.Datatype) -> None:
    total = np.frombuffer(cast("memoryview", target), dtype)
    np.add(total, np.frombuffer(cast("memoryview", source), dtype), out=total)
