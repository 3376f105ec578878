"""The ways to sum gradients over the ranks, by the name that ``--allreduce`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

import numpy.typing as npt

from .chunks import Array

if TYPE_CHECKING:
    from mpi4py import MPI


class Allreduce(Protocol):
    """An algorithm bound to a communicator; creating one and every call are collective."""

    bytes_sent: int
    """Payload that other ranks have got from this one so far, in bytes."""

    def buffer(self, items: int, dtype: npt.DTypeLike) -> Array:
        """A zeroed array where `sum` is fastest; valid until `close`."""

    def sum(self, array: Array) -> None:
        """Replace ``array`` (one-dimensional, contiguous) by its sum over all ranks; same bits on each."""

    def close(self) -> None:
        """Free what was taken."""


def _loader(module: str, name: str) -> Callable[[MPI.Intracomm], Allreduce]:
    """Import an algorithm when it is made: its module starts MPI."""

    def make(comm: MPI.Intracomm) -> Allreduce:
        made: Allreduce = getattr(import_module(f".{module}", __package__), name)(comm)
        return made

    return make


ALLREDUCES: Mapping[str, Callable[[MPI.Intracomm], Allreduce]] = {
    "halving-doubling": _loader("halving", "HalvingDoublingAllreduce"),
    "hierarchical": _loader("hierarchical", "HierarchicalAllreduce"),
    "mpi": _loader("library", "LibraryAllreduce"),
    "parameter-server": _loader("central", "ParameterServerAllreduce"),
    "ring": _loader("ring", "RingAllreduce"),
    "shared": _loader("shared", "SharedAllreduce"),
    "tree": _loader("tree", "TreeAllreduce"),
}
