"""The ways to sum gradients over the ranks, by the name that ``--allreduce`` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from .chunks import Array
from .ring import RingAllreduce

if TYPE_CHECKING:
    from mpi4py import MPI


class Allreduce(Protocol):
    """An algorithm bound to a communicator; creating one is collective."""

    name: str
    bytes_sent: int
    """Payload that this rank has sent so far, in bytes."""

    def sum(self, array: Array) -> None:
        """Replace ``array`` (one-dimensional, contiguous) by its sum over all ranks; same bits on each."""

    def close(self) -> None:
        """Free what was taken; collective."""


ALLREDUCES: dict[str, Callable[[MPI.Intracomm], Allreduce]] = {
    RingAllreduce.name: RingAllreduce,
}
