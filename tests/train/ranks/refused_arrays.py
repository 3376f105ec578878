"""Arrays that the ring cannot sum in place."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

from hpclaunch.train.allreduce.ring import RingAllreduce

if __name__ == "__main__":
    ring = RingAllreduce(MPI.COMM_WORLD)
    fixed = np.zeros(4)
    fixed.flags.writeable = False
    for array in (np.zeros((2, 2)), np.zeros(8)[::2], fixed):
        with pytest.raises(ValueError, match="one-dimensional, contiguous, writable"):
            ring.sum(array)
