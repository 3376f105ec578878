"""The ways to sum gradients over the ranks, by the names that ``--allreduce`` and ``--compression`` take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from ..run_options import check_compression

if TYPE_CHECKING:
    from mpi4py import MPI

    from .algorithm import Algorithm


def _loader(module: str, name: str) -> Callable[[MPI.Intracomm], Algorithm]:
    """Import an algorithm when it is made: its module starts MPI."""

    def make(comm: MPI.Intracomm) -> Algorithm:
        made: Algorithm = getattr(import_module(f".{module}", __package__), name)(comm)
        return made

    return make


ALLREDUCES: Mapping[str, Callable[[MPI.Intracomm], Algorithm]] = {
    "auto": _loader("auto_choice", "AutoAllreduce"),
    "halving-doubling": _loader("halving_doubling", "HalvingDoublingAllreduce"),
    "hierarchical": _loader("hierarchical", "HierarchicalAllreduce"),
    "mpi": _loader("mpi_library", "LibraryAllreduce"),
    "ring": _loader("ring", "RingAllreduce"),
    "shared": _loader("shared_memory", "SharedAllreduce"),
}


def resolve_allreduce(comm: MPI.Intracomm, name: str | None, compression: str = "none") -> str:
    """The name in `ALLREDUCES` that a run uses: ``name``, or the default for these ranks; collective.

    The default is ``ring`` on one node and ``hierarchical`` on several.
    Raises BadRequestError where ``compression`` is not a compression or does not go with ``name``.
    """
    check_compression(compression, name)
    if name is not None:
        return name
    from .shared_memory import on_one_node

    return "ring" if on_one_node(comm) else "hierarchical"


def make_allreduce(
    name: str | None, compression: str, comm: MPI.Intracomm, *, deterministic: bool = False
) -> Algorithm:
    """The allreduce of ``--allreduce`` (None: the default) and ``--compression``; collective.

    ``deterministic``: ``auto`` measures nothing, for another choice in another run makes other bits.
    Raises BadRequestError as `resolve_allreduce`; AgreedError where it cannot work on these ranks.
    """
    name = resolve_allreduce(comm, name, compression)
    if compression != "none":
        return _with_half_ring(name, compression, comm)
    if name == "auto" and deterministic:
        from .auto_choice import AutoAllreduce

        return AutoAllreduce(comm, measured=False)
    return ALLREDUCES[name](comm)


def _with_half_ring(name: str, kind: str, comm: MPI.Intracomm) -> Algorithm:
    from .half_precision_ring import HalfRingAllreduce
    from .hierarchical import HierarchicalAllreduce

    ring = partial(HalfRingAllreduce, kind=kind)
    return HierarchicalAllreduce(comm, ring=ring) if name == "hierarchical" else ring(comm)
