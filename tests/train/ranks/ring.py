"""On every rank: the ring allreduce against plain sums, for drawn lengths, types and segment sizes.

Rank 0 draws the cases with hypothesis and hands each one to all ranks, so that hundreds of cases, and the
search for the smallest failing one, need a single start of MPI.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi4py import MPI

from hpclaunch.train.ring import RingAllreduce

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()
DTYPES = ("float32", "float64", "float16", "int32", "int64", "complex128")
_RINGS: dict[int, RingAllreduce] = {}


class Case(NamedTuple):
    length: int
    dtype: str
    segment_bytes: int
    seed: int


class Outcome(NamedTuple):
    exact: bool
    close: bool
    digest: str
    sent_bytes: int


def ring(segment_bytes: int) -> RingAllreduce:
    """One ring a segment size, kept: its buffers then serve many lengths and types."""
    if segment_bytes not in _RINGS:
        _RINGS[segment_bytes] = RingAllreduce(COMM, segment_bytes)
    return _RINGS[segment_bytes]


def whole_numbers(case: Case, rank: int) -> npt.NDArray[Any]:
    """Small whole numbers: their sum is exact in any order."""
    return np.random.default_rng([case.seed, rank]).integers(-50, 50, case.length).astype(case.dtype)


def normal_numbers(case: Case, rank: int) -> npt.NDArray[Any]:
    return np.random.default_rng([case.seed, rank, 1]).standard_normal(case.length).astype(case.dtype)


def outcome(case: Case) -> Outcome:
    """This rank's part of a case: collective."""
    reduce = ring(case.segment_bytes)
    whole, normal = whole_numbers(case, RANK), normal_numbers(case, RANK)
    before = reduce.bytes_sent
    reduce.sum(whole)
    sent = reduce.bytes_sent - before
    reduce.sum(normal)
    exact = np.sum([whole_numbers(case, rank) for rank in range(RANKS)], axis=0, dtype=case.dtype)
    plain = np.sum([normal_numbers(case, rank) for rank in range(RANKS)], axis=0)
    tolerance = 1e-2 if case.dtype == "float16" else 1e-5 if case.dtype == "float32" else 1e-12
    return Outcome(
        np.array_equal(whole, exact),
        np.allclose(normal, plain, rtol=0, atol=tolerance * RANKS * 4),
        hashlib.sha256(normal.tobytes()).hexdigest(),
        sent,
    )


def check(case: Case) -> None:
    """Rank 0: let all ranks do a case and judge what they found."""
    COMM.bcast(case)
    outcomes = COMM.gather(outcome(case))
    assert outcomes is not None
    assert all(found.exact for found in outcomes), "not the plain sum"
    assert all(found.close for found in outcomes), "far from the plain sum"
    assert len({found.digest for found in outcomes}) == 1, "ranks ended with different bits"
    item_bytes = np.dtype(case.dtype).itemsize
    share = 2 * (RANKS - 1) / RANKS * case.length * item_bytes
    for found in outcomes:
        assert abs(found.sent_bytes - share) <= RANKS * item_bytes
    if RANKS == 1:
        assert outcomes[0].sent_bytes == 0


@settings(max_examples=int(sys.argv[1]), deadline=None, database=None, derandomize=True)
@given(
    st.builds(
        Case,
        st.one_of(st.integers(0, 2 * RANKS + 1), st.integers(0, 5000)),
        st.sampled_from(DTYPES),
        st.sampled_from([1, 64, 1000, 1 << 20]),
        st.integers(0, 1000),
    )
)
def any_case(case: Case) -> None:
    check(case)


def known_cases() -> None:
    for dtype in ("float32", "float64"):
        for length in (0, 1, RANKS - 1, RANKS, RANKS + 1, 1_000_003):
            check(Case(length, dtype, 1 << 20, length))


if __name__ == "__main__":
    if RANK == 0:
        try:
            known_cases()
            any_case()
        finally:
            COMM.bcast(None)
    else:
        while (drawn := COMM.bcast(None)) is not None:
            COMM.gather(outcome(drawn))
    for kept in sorted(_RINGS):
        _RINGS[kept].close()
