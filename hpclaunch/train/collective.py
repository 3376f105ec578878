"""Collective helpers: the same arrays, the same error, the same results on all ranks."""

import hashlib
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .allreduce import Array, Comm
from .run_errors import TrainError

T = TypeVar("T")

_MESSAGE_BYTES = 1 << 30  # below the 32-bit counts of MPI 3
_WAIT_S = 0.02  # between two tests of a waiting rank


class AgreedError(Exception):
    """An error that all ranks raise, so that one of them can report it for all."""

    def __init__(self, error: TrainError) -> None:
        super().__init__(str(error))
        self.error = error


def on_all_ranks(comm: Comm, action: Callable[[], T]) -> T:
    """Run ``action`` on all ranks and return each one's result; collective.

    Where it raises a TrainError on any rank, all ranks raise AgreedError with the error of the first such
    rank; its number stands before the message unless all ranks, or rank 0 alone, had one.
    """
    error: TrainError | None = None
    try:
        result = action()
    except TrainError as caught:
        error = caught
    errors: list[TrainError | None] = comm.allgather(error)
    failed = [rank for rank, found in enumerate(errors) if found is not None]
    if not failed:
        return result
    first = errors[failed[0]]
    assert first is not None  # noqa: S101
    if failed[0] > 0:
        first.message = f"rank {failed[0]}: {first.message}"
    raise AgreedError(first)


def on_rank_0(comm: Comm, action: Callable[[], T]) -> T:
    """Run ``action`` on rank 0 and give its result to all ranks; a TrainError as in `on_all_ranks`."""
    result = on_all_ranks(comm, lambda: action() if comm.Get_rank() == 0 else None)
    given: T = comm.bcast(result, root=0)
    return given


def on_rank_0_alone(comm: Comm, action: Callable[[], T]) -> T | None:
    """Return the result of rank 0's ``action``; others sleep, get None. TrainError as in `on_all_ranks`."""

    def mine() -> T | None:
        try:
            return action() if comm.Get_rank() == 0 else None
        finally:
            request = comm.Ibarrier()  # sleep: MPI_Barrier would spin on the cores that rank 0 may need
            while not request.Test():
                time.sleep(_WAIT_S)

    return on_all_ranks(comm, mine)


def broadcast(comm: Comm, array: Array) -> None:
    """Overwrite ``array`` (contiguous, the same length on all ranks) with that of rank 0; collective."""
    flat = array.reshape(-1).view(np.uint8)
    for start in range(0, flat.size, _MESSAGE_BYTES):
        comm.Bcast(flat[start : start + _MESSAGE_BYTES], root=0)


def digest(array: Array) -> str:
    """The sha256 of its bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def same_everywhere(comm: Comm, array: Array) -> list[str]:
    """Each rank's sha256 of the parameters, by rank; AgreedError, with the first odd rank, if they differ."""
    digests: list[str] = comm.allgather(digest(array))
    for rank, other in enumerate(digests):
        if other != digests[0]:
            values = {"what": "the parameters", "rank": rank, "there": other, "here": digests[0]}
            raise AgreedError(TrainError.of("sums differ", **values))
    return digests


def largest(comm: Comm, value: Any) -> Any:
    """The largest of the ranks' values; collective."""
    return max(comm.allgather(value))
