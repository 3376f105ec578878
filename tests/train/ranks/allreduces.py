"""On every rank: each allreduce against plain sums, for drawn lengths, types, segment sizes and places.

Rank 0 draws the cases with hypothesis and hands each one to all ranks, so that hundreds of cases, and the
search for the smallest failing one, need a single start of MPI.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from hpclaunch.train.allreduce.algorithm import Algorithm
from hpclaunch.train.allreduce.halving_doubling import HalvingDoublingAllreduce
from hpclaunch.train.allreduce.hierarchical import HierarchicalAllreduce
from hpclaunch.train.allreduce.mpi_library import LibraryAllreduce
from hpclaunch.train.allreduce.ring import RingAllreduce
from hpclaunch.train.allreduce.shared_memory import SharedAllreduce

if TYPE_CHECKING:
    from hypothesis import strategies as st

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()
DTYPES = ("float32", "float64", "float16", "int32", "int64", "complex128", "longdouble", "uint8")
SEGMENTS = (1, 1000, 1 << 16)
LONGEST = 300_003
# How a fake cluster places the ranks on its nodes: two a node, the last node smaller where p is odd; in turn
# over two nodes; one a node.
PLACEMENTS: dict[str, Callable[[int], int]] = {
    "blocks": lambda rank: rank // 2,
    "cyclic": lambda rank: rank % 2,
    "alone": lambda rank: rank,
}


def on_fake_nodes(placement: str) -> Callable[[MPI.Intracomm, int], Algorithm]:
    """Make a hierarchical allreduce as on several nodes."""

    def make(comm: MPI.Intracomm, segment_bytes: int) -> Algorithm:
        node = MPI.Intracomm(comm.Split(PLACEMENTS[placement](RANK), RANK))
        return HierarchicalAllreduce(comm, segment_bytes, node)

    return make


KINDS: dict[str, Callable[[MPI.Intracomm, int], Algorithm]] = {
    "ring": RingAllreduce,
    "shared": SharedAllreduce,
    "mpi": LibraryAllreduce,
    "halving-doubling": HalvingDoublingAllreduce,
    "hierarchical": HierarchicalAllreduce,
    **{f"hierarchical, {placement}": on_fake_nodes(placement) for placement in PLACEMENTS},
}


class Case(NamedTuple):
    kind: str
    length: int
    dtype: str
    segment_bytes: int
    seed: int
    resident: bool = False
    """In the algorithm's own buffer, after ``offset`` items."""
    offset: int = 0


class Outcome(NamedTuple):
    exact: bool
    close: bool
    untouched: bool
    """What lies before and behind the array in its buffer."""
    digest: str
    sent_bytes: int


class Bound(NamedTuple):
    """An algorithm and a buffer of it, kept over the cases: they serve many lengths and types."""

    algorithm: Algorithm
    buffer: npt.NDArray[np.uint8]


_BOUND: dict[tuple[str, int], Bound] = {}


def bound(kind: str, segment_bytes: int) -> Bound:
    if (kind, segment_bytes) not in _BOUND:
        algorithm = KINDS[kind](COMM, segment_bytes)
        buffer = algorithm.buffer(4 * LONGEST + 1000, np.uint8)
        assert not buffer.any()
        _BOUND[kind, segment_bytes] = Bound(algorithm, buffer)
    return _BOUND[kind, segment_bytes]


def sum_in_place(case: Case, values: npt.NDArray[Any]) -> bool:
    """Sum ``values`` where the case says; whether all around them stayed as it was."""
    algorithm, buffer = bound(case.kind, case.segment_bytes)
    if not case.resident:
        algorithm.sum(values)
        return True
    start = case.offset * values.itemsize
    edge = start + values.nbytes
    buffer[:start], buffer[edge : edge + 64] = 0xA5, 0xA5
    array = buffer[start:edge].view(values.dtype)
    array[:] = values
    algorithm.sum(array)
    values[:] = array
    return bool((buffer[:start] == 0xA5).all() and (buffer[edge : edge + 64] == 0xA5).all())


class Numbers(NamedTuple):
    """What the ranks add up, by rank, and the plain sums of both kinds."""

    whole: npt.NDArray[Any]
    """Small whole numbers: their sum is exact in any order."""
    normal: npt.NDArray[Any]
    exact: npt.NDArray[Any]
    plain: npt.NDArray[Any]


@lru_cache(maxsize=4)
def numbers(seed: int, length: int, dtype: str) -> Numbers:
    whole = [np.random.default_rng([seed, rank]).integers(-50, 50, length) for rank in range(RANKS)]
    normal = [np.random.default_rng([seed, rank, 1]).standard_normal(length) for rank in range(RANKS)]
    wholes, normals = np.array(whole).astype(dtype), np.array(normal).astype(dtype)
    return Numbers(wholes, normals, np.sum(wholes, axis=0, dtype=dtype), np.sum(normals, axis=0, dtype=dtype))


def outcome(case: Case) -> Outcome:
    """This rank's part of a case: collective."""
    algorithm = bound(case.kind, case.segment_bytes).algorithm
    known = numbers(case.seed, case.length, case.dtype)
    whole, normal = known.whole[RANK].copy(), known.normal[RANK].copy()
    before = algorithm.bytes_sent
    untouched = sum_in_place(case, whole)
    sent = algorithm.bytes_sent - before
    untouched &= sum_in_place(case, normal)
    tolerance = {"float16": 1e-2, "float32": 1e-5}.get(case.dtype, 1e-12)
    far = np.abs(normal - known.plain).max(initial=0)
    # A longdouble has bytes that hold nothing.
    bits = normal.astype("float64") if case.dtype == "longdouble" else normal
    return Outcome(
        np.array_equal(whole, known.exact),
        bool(far <= tolerance * RANKS * 4),
        untouched,
        hashlib.sha256(bits.tobytes()).hexdigest(),
        sent,
    )


def check(case: Case) -> None:
    """Rank 0: let all ranks do a case and judge what they found."""
    COMM.bcast(case)
    outcomes = COMM.gather(outcome(case))
    assert outcomes is not None
    assert all(found.exact for found in outcomes), "not the plain sum"
    assert all(found.close for found in outcomes), "far from the plain sum"
    assert all(found.untouched for found in outcomes), "wrote beside the array"
    assert len({found.digest for found in outcomes}) == 1, "ranks ended with different bits"
    sent = [found.sent_bytes for found in outcomes]
    if RANKS == 1 or case.length == 0:
        assert sent == [0] * RANKS
    elif case.kind == "ring":
        item_bytes = np.dtype(case.dtype).itemsize
        share = 2 * (RANKS - 1) / RANKS * case.length * item_bytes
        assert all(abs(found - share) <= RANKS * item_bytes for found in sent)
    else:  # each rank's numbers must reach another, and each must get the total
        assert sum(sent) >= 2 * (RANKS - 1) * case.length * np.dtype(case.dtype).itemsize // RANKS * RANKS


def cases(kind: str) -> st.SearchStrategy[Case]:
    """Short arrays, longer ones, and ones beyond what `shared` adds directly."""
    from hypothesis import strategies as st

    def drawn(lengths: st.SearchStrategy[int], segments: tuple[int, ...]) -> st.SearchStrategy[Case]:
        return st.builds(
            Case,
            st.just(kind),
            lengths,
            st.sampled_from(DTYPES),
            st.sampled_from(segments),
            st.integers(0, 1000),
            st.booleans(),
            st.integers(0, 40),
        )

    short = st.one_of(st.integers(0, 2 * RANKS + 1), st.integers(0, 600))
    return st.one_of(drawn(short, SEGMENTS), drawn(st.integers(8193, 20_000), SEGMENTS[1:]))


def any_case(kind: str, examples: int) -> None:
    from hypothesis import given, settings  # by rank 0 alone: loading it takes as long as many cases

    @settings(max_examples=examples, deadline=None, database=None, derandomize=True)
    @given(cases(kind))
    def one(case: Case) -> None:
        check(case)

    one()


def known_cases(kind: str) -> None:
    for dtype in ("float32", "float64"):
        for length in (0, 1, RANKS - 1, RANKS, RANKS + 1):
            check(Case(kind, length, dtype, SEGMENTS[-1], length))
    for resident in (False, True):
        check(Case(kind, LONGEST, "float32", SEGMENTS[-1], 3, resident))


def close_all() -> None:
    for kept in _BOUND.values():  # made in the same order on all ranks
        kept.algorithm.close()


if __name__ == "__main__":
    if RANK == 0:
        try:
            for name in KINDS:
                known_cases(name)
                any_case(name, int(sys.argv[1]))
        finally:
            COMM.bcast(None)
            close_all()
    else:
        while (drawn := COMM.bcast(None)) is not None:
            COMM.gather(outcome(drawn))
        close_all()
