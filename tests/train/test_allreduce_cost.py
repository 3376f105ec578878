"""The model of allreduce times against the papers' formulas and its own limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.scaling.allreduce_messages import COSTS, Link, Machine, allreduce_s
from hpclaunch.train.allreduce import ALLREDUCES
from tests.in_one_test import in_one_test

ALPHA, BETA, GAMMA = 2e-6, 1e-10, 3e-11
FLAT = Machine(1, Link(1.0, 1.0), Link(ALPHA, BETA), GAMMA, 1.0)
"""One rank a node: the papers' machine. What is inside of nodes costs so much that a use of it would show."""
NODES = Machine(8, Link(5e-7, 2e-10), Link(ALPHA, BETA), GAMMA, 5e-11)

ranks = st.integers(2, 30_000)
sizes = st.floats(1, 1e9)


def test_names_are_those_of_the_algorithms() -> None:
    assert set(COSTS) - set(ALLREDUCES) == {"near-first", "shifted", "pipelined"}  # in no runner


@in_one_test("machine", [FLAT, NODES])
@in_one_test("algorithm", COSTS)
def test_one_rank_has_nobody_to_talk_to(algorithm: str, machine: Machine) -> None:
    assert allreduce_s(algorithm, 1, 1e6, machine) == 0


@given(p=ranks, n=sizes)
def test_the_ring_of_one_rank_a_node_is_patarasuk_and_yuans(p: int, n: float) -> None:
    expected = 2 * (p - 1) * ALPHA + 2 * (p - 1) / p * n * BETA + (p - 1) / p * n * GAMMA
    assert allreduce_s("ring", p, n, FLAT) == pytest.approx(expected)
    assert allreduce_s("hierarchical", p, n, FLAT) == pytest.approx(expected)


@given(levels=st.integers(1, 15), n=sizes)
def test_halving_and_doubling_is_rabenseifners(levels: int, n: float) -> None:
    p = 2**levels
    expected = 2 * levels * ALPHA + 2 * (p - 1) / p * n * BETA + (p - 1) / p * n * GAMMA
    assert allreduce_s("halving-doubling", p, n, FLAT) == pytest.approx(expected)


@given(levels=st.integers(1, 14), n=sizes, share=st.floats(0, 0.99))
def test_ranks_beyond_a_power_of_two_cost_two_whole_messages(levels: int, n: float, share: float) -> None:
    power = 2**levels
    p = power + 1 + int(share * (power - 1))
    more = 2 * (ALPHA + n * BETA) + n * GAMMA
    expected = allreduce_s("halving-doubling", power, n, FLAT) + more
    assert allreduce_s("halving-doubling", p, n, FLAT) == pytest.approx(expected)


@given(p=ranks, n=sizes, algorithm=st.sampled_from(sorted(COSTS)))
def test_none_beats_the_bound_of_bandwidth(p: int, n: float, algorithm: str) -> None:
    p = 1 << (p.bit_length() - 1) if algorithm in ("near-first", "shifted") else p  # they are for such p
    free = replace(FLAT, between=Link(0, BETA), add_s_per_byte=0)
    assert allreduce_s(algorithm, p, n, free) >= 2 * (p - 1) / p * n * BETA * (1 - 1e-9)


@given(p=ranks, n=sizes, algorithm=st.sampled_from(sorted(COSTS)), machine=st.sampled_from([FLAT, NODES]))
def test_more_bytes_take_longer(p: int, n: float, algorithm: str, machine: Machine) -> None:
    assert allreduce_s(algorithm, p, 2 * n, machine) > allreduce_s(algorithm, p, n, machine)


@given(p=st.integers(2, 8), n=sizes, algorithm=st.sampled_from(sorted(COSTS)))
def test_one_node_needs_no_network(p: int, n: float, algorithm: str) -> None:
    slow = replace(NODES, between=Link(100.0, 100.0))
    assert allreduce_s(algorithm, p, n, slow) == allreduce_s(algorithm, p, n, NODES)


def test_a_node_of_eight_is_summed_by_hand() -> None:
    n = 1e6
    inside = 2 * 5e-7 + 7 / 8 * n * (GAMMA + 5e-11)
    assert allreduce_s("hierarchical", 8, n, NODES) == pytest.approx(inside)
    # Two nodes: eight rings of n/8 bytes share a link; each rank adds half of its slice.
    between = 2 * (ALPHA + n / 2 * BETA) + n / 16 * GAMMA
    assert allreduce_s("hierarchical", 16, n, NODES) == pytest.approx(inside + between)
    # Eight ranks of a node swap n/2 with the other node at once; the rest stays inside.
    first = 2 * (ALPHA + 8 * n / 2 * BETA) + n / 2 * GAMMA
    rest = sum(2 * (5e-7 + n / k * 2e-10) + n / k * GAMMA for k in (4, 8, 16))
    assert allreduce_s("halving-doubling", 16, n, NODES) == pytest.approx(first + rest)


def test_what_scales_and_what_does_not() -> None:
    """A gradient of 100 MB on all of LUMI-G's 23,824 devices; eight a node, whose links carry 100 GB/s."""
    machine = replace(NODES, between=Link(2e-6, 1e-11))
    seconds = {name: allreduce_s(name, 23_824, 1e8, machine) for name in COSTS}
    assert min(seconds, key=seconds.__getitem__) == "hierarchical"
    assert max(seconds, key=seconds.__getitem__) == "ring"
