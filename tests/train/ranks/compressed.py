"""On every rank: compressed sums, for drawn lengths, segment sizes; and what they send.

Rank 0 draws the cases with hypothesis and hands each one to all ranks, as in `allreduces`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from hpclaunch.train.allreduce.algorithm import Algorithm
from hpclaunch.train.allreduce.half_precision_ring import HALVES, HalfRingAllreduce
from hpclaunch.train.allreduce.hierarchical import HierarchicalAllreduce
from hpclaunch.train.allreduce.ring import RingAllreduce

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()
Floats = npt.NDArray[np.float32]
EXAMPLES = 12


class Case(NamedTuple):
    kind: str
    length: int
    segment_bytes: int = 1 << 16
    seed: int = 0


class Outcome(NamedTuple):
    right: bool
    same_bits: bool
    sent_bytes: int
    ring_bytes: int


def whole_numbers(case: Case, rank: int) -> Floats:
    """Few bits: exact in 16 of them, and so are their sums."""
    return np.random.default_rng([case.seed, rank]).integers(-8, 9, case.length).astype(np.float32)


def normal_numbers(case: Case, rank: int) -> Floats:
    return np.random.default_rng([case.seed, rank, 1]).standard_normal(case.length).astype(np.float32)


def sent_by(algorithm: Algorithm, array: Floats) -> int:
    before = algorithm.bytes_sent
    algorithm.sum(array)
    return algorithm.bytes_sent - before


def outcome(case: Case) -> Outcome:
    """Sums of small whole numbers are exact; others are near, and the same everywhere."""
    ring, half = RingAllreduce(COMM), HalfRingAllreduce(COMM, case.segment_bytes, kind=case.kind)
    whole, normal = whole_numbers(case, RANK), normal_numbers(case, RANK)
    sent, whole_sent = sent_by(half, normal), sent_by(half, whole)
    exact = np.sum([whole_numbers(case, rank) for rank in range(RANKS)], axis=0)
    plain = np.sum([normal_numbers(case, rank) for rank in range(RANKS)], axis=0)
    size = np.sum([np.abs(normal_numbers(case, rank)) for rank in range(RANKS)], axis=0)
    rounding = {"fp16": 2.0**-11, "bf16": 2.0**-8}[case.kind]
    near = bool((np.abs(normal - plain) <= rounding * RANKS * (size + 1e-3)).all())
    outcome = Outcome(
        near and np.array_equal(whole, exact) and sent == whole_sent,
        same_everywhere(normal),
        sent,
        sent_by(ring, plain.astype(np.float32)),
    )
    ring.close()
    half.close()
    return outcome


def same_everywhere(array: Floats) -> bool:
    return len(set(COMM.allgather(array.tobytes()))) == 1


def check(case: Case) -> None:
    """Rank 0: let all ranks do a case and judge what they found."""
    COMM.bcast(case)
    outcomes = COMM.gather(outcome(case))
    assert outcomes is not None
    assert all(found.right for found in outcomes), "wrong sums"
    assert all(found.same_bits for found in outcomes), "ranks ended with different bits"
    for found in outcomes:
        assert found.sent_bytes * 2 == found.ring_bytes, "not half of the ring"


def any_case(kind: str) -> None:
    from hypothesis import given, settings  # by rank 0 alone: loading it takes as long as many cases
    from hypothesis import strategies as st

    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True)
    @given(
        st.builds(
            Case,
            st.just(kind),
            st.one_of(st.integers(0, 2 * RANKS + 1), st.integers(0, 30_000)),
            st.sampled_from((2, 1000, 1 << 16)),
            st.integers(0, 1000),
        )
    )
    def one(case: Case) -> None:
        check(case._replace(length=min(case.length, 500 * case.segment_bytes)))

    one()


def nan_reaches_all() -> None:
    """A number that is none, on one rank, is seen by all."""
    for value in (np.nan, np.inf, -np.inf):
        for kind in HALVES:
            made = HalfRingAllreduce(COMM, kind=kind)
            array = made.buffer(5000, np.float32)
            array[:] = normal_numbers(Case(kind, 5000), RANK)
            if RANK == RANKS - 1:
                array[1234] = value
            made.sum(array)
            assert not np.isfinite(array[1234]), (kind, value)
            made.close()


def between_fake_nodes() -> None:
    """One rank a node: all goes through the half ring; sums of small whole numbers stay exact."""
    for kind in HALVES:
        node = MPI.Intracomm(COMM.Split(RANK, RANK))
        made = HierarchicalAllreduce(COMM, node=node, ring=partial(HalfRingAllreduce, kind=kind))
        array = made.buffer(50_000, np.float32)
        array[:] = RANK + 1
        made.sum(array)
        assert (array == RANKS * (RANKS + 1) // 2).all()
        assert RANKS == 1 or 0 < made.bytes_sent <= 4 * (RANKS - 1) / RANKS * array.size + 4 * RANKS
        made.close()


def bf16_is_the_nearest() -> None:
    """Of any bits: the neighbour that is nearest, halfway the even one; what is no number stays none."""
    bits = np.random.default_rng(RANK).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    bits[:1000] = bits[:1000] & 0xFFFF0000 | 0x8000  # halfway
    bits[1000:1100] |= 0x7FFF8000  # no numbers that rounding would carry into the sign
    numbers, halves = bits.view(np.float32), np.empty(bits.size, np.uint16)
    with np.errstate(invalid="ignore"):
        HALVES["bf16"].encode(numbers, halves)
        got = HALVES["bf16"].decode(halves)
        assert np.array_equal(np.isnan(got), np.isnan(numbers))
        known = np.abs(numbers) < 3e38
        below, above = bits & 0xFFFF0000, (bits & 0xFFFF0000) + np.uint32(0x10000)
        to_below, to_above, error = (
            np.abs(numbers.astype(np.float64) - other.view(np.float32)) for other in (below, above, got)
        )
    assert (error == np.minimum(to_below, to_above))[known].all()
    halfway = known & (to_below == to_above)
    assert np.count_nonzero(halfway) > 500
    assert not (halves[halfway] & 1).any()


if __name__ == "__main__":
    bf16_is_the_nearest()
    nan_reaches_all()
    between_fake_nodes()
    if RANK == 0:
        try:
            for name in HALVES:
                for items in (0, 1, RANKS, RANKS + 1):
                    check(Case(name, items))
                any_case(name)
        finally:
            COMM.bcast(None)
    else:
        while (drawn := COMM.bcast(None)) is not None:
            COMM.gather(outcome(drawn))
