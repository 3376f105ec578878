"""The ways to sum gradients over the ranks, by the names that ``--allreduce`` and ``--compression`` take."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from mpi4py import MPI

    from .algorithm import Algorithm as Algorithm

    Comm = MPI.Intracomm
else:  # to import them would start MPI
    Algorithm = Comm = Any

Array = npt.NDArray[Any]


def chunk_bounds(items: int, parts: int) -> list[int]:
    """The ``parts + 1`` bounds, from 0 to ``items``, that cut an array into chunks as even as possible.

    The first ``items % parts`` chunks hold one item more, so 2(p-1) of p chunks exceed the even share by
    fewer than p items.
    """
    each, more = divmod(items, parts)
    return [part * each + min(part, more) for part in range(parts + 1)]


def when_made(package: str, module: str, name: str) -> Callable[..., Any]:
    """A class of a module that is imported when an object of it is made: it starts MPI, or loads torch."""
    return lambda *given: getattr(import_module(f".{module}", package), name)(*given)


ALLREDUCES: Mapping[str, Callable[[Comm], Algorithm]] = {
    "halving-doubling": when_made(__name__, "halving_doubling", "HalvingDoublingAllreduce"),
    "hierarchical": when_made(__name__, "hierarchical", "HierarchicalAllreduce"),
    "mpi": when_made(__name__, "mpi_library", "LibraryAllreduce"),
    "ring": when_made(__name__, "ring", "RingAllreduce"),
    "shared": when_made(__name__, "shared_memory", "SharedAllreduce"),
}


def resolve_allreduce(comm: Comm, name: str | None) -> str:
    """The name in `ALLREDUCES`: ``name``, else ``ring`` on one node, ``hierarchical`` on more; collective."""
    if name is not None:
        return name
    from .shared_memory import on_one_node

    return "ring" if on_one_node(comm) else "hierarchical"


def make_allreduce(name: str | None, compression: str, comm: Comm) -> Algorithm:
    """The allreduce of ``--allreduce`` and ``--compression``; collective. AgreedError: it cannot work."""
    name = resolve_allreduce(comm, name)
    if compression == "none":
        return ALLREDUCES[name](comm)
    from .half_precision_ring import HalfRingAllreduce
    from .hierarchical import HierarchicalAllreduce

    ring = partial(HalfRingAllreduce, kind=compression)
    return HierarchicalAllreduce(comm, ring=ring) if name == "hierarchical" else ring(comm)
