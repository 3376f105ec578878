"""The messages of `allreduce_messages` are those of real ranks, and what the nodes' programs make of them."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest

from hpclaunch.scaling.allreduce_messages import message_count, node_programs, rank_rounds
from hpclaunch.scaling.machine_speed import Parameter
from hpclaunch.scaling.simulated_exchange import ALLREDUCES, closed_forms
from tests.in_one_test import in_one_test
from tests.train.mpirun import run_ranks

WHOLE = 1 << 30
"""Bytes of a segment: no message is cut."""


@pytest.mark.mpi
@pytest.mark.parametrize("items", [1003, 40, 5])
def test_the_messages_are_those_of_real_ranks(items: int) -> None:
    """Same peers, bytes, order, on each of 6 ranks: not a power of two; hierarchical on 3 nodes of 2 ranks.

    Of arrays with fewer items than ranks some messages are empty, and some are not sent.
    """
    cases = [f"{name},{WHOLE}" for name in ALLREDUCES]
    real = run_ranks(6, sys.executable, "-m", "tests.train.ranks.noted_messages", str(items), *cases)
    assert real.returncode == 0, real.stderr
    found = json.loads(real.stdout)
    for name, case in zip(ALLREDUCES, cases, strict=True):
        rounds = rank_rounds(name, 3, 2, items)
        followed = range(0, 6, 2) if name == "hierarchical" else range(6)
        total = 0
        for rank in followed:
            mine = list(rounds(rank))
            sends = [[to, nbytes] for one in mine for to, nbytes in one.sends]
            assert sends == [call[1:] for call in found[case][rank] if call[0] == "send"], (name, rank)
            receives = [source for one in mine for source in one.receives]
            assert receives == [call[1] for call in found[case][rank] if call[0] == "receive"], (name, rank)
            total += len(sends)
        assert total == message_count(name, 3, 2) or (items < 6 and total < message_count(name, 3, 2))


def test_the_real_order_of_sends_and_receives_is_that_of_the_rounds() -> None:
    """A rank beyond the power of two sends all, then gets the sum; its partner the other way round."""
    rounds = rank_rounds("halving-doubling", 3, 1, 100)
    assert [(one.sends, one.receives) for one in rounds(2)] == [(((0, 400),), ()), ((), (0,))]
    first, *_, last = rounds(0)
    assert (first.sends, first.receives) == ((), (2,))
    assert (last.sends, last.receives) == (((2, 400),), ())


@in_one_test("name", ALLREDUCES)
@in_one_test("per_node", [1, 3])
def test_every_message_of_a_node_is_awaited_by_another(name: str, per_node: int) -> None:
    programs = node_programs(name, 5, per_node, 99_991)
    sent: Counter[tuple[int, int]] = Counter()
    awaited: Counter[tuple[int, int]] = Counter()
    network_bytes = 0
    for line in programs.text.splitlines():
        if line.startswith("node"):
            continue
        times, _, sends, *rest = map(int, line.split())
        for start in range(0, 3 * sends, 3):
            source, to, nbytes = rest[start : start + 3]
            assert source // per_node != to // per_node
            sent[source, to] += times
            network_bytes += times * nbytes
        receives = rest[3 * sends + 1 :]
        assert len(receives) == 2 * rest[3 * sends]
        for source, to in zip(receives[::2], receives[1::2], strict=True):
            awaited[source, to] += times
    assert sent
    assert sent == awaited
    assert network_bytes == programs.nbytes


def test_bytes_and_closed_form_of_a_ring_and_of_its_two_levels() -> None:
    """2 (p-1) times the array leaves the ranks; between nodes one rank of a node sends, or all slices."""
    speeds = {"network_latency_s": 3e-6, "network_gb_s": 10, "node_latency_s": 1e-6, "node_gb_s": 100}
    parameters = {
        name: Parameter(name=name, value=value, unit="", origin="", uncertainty=0)
        for name, value in speeds.items()
    }
    size = 4 * 1_200_000
    sends = [one.sends for rank in range(8) for one in rank_rounds("ring", 4, 2, size // 4)(rank)]
    assert sum(nbytes for each in sends for _, nbytes in each) == 2 * 7 * size
    assert node_programs("ring", 4, 2, size // 4).nbytes == pytest.approx(14 * size / 2)
    inside_s, closed_s = closed_forms("ring", 4, 2, size, parameters)
    assert (inside_s, closed_s) == pytest.approx((0, 14 * (3e-6 + size / 8 / 10e9)))
    assert node_programs("hierarchical", 4, 2, size // 4).nbytes == pytest.approx(2 * 3 * size, rel=1e-4)
    inside_s, closed_s = closed_forms("hierarchical", 4, 2, size, parameters)
    assert inside_s == pytest.approx(2 * (1e-6 + size / 2 / 100e9))
    assert closed_s == pytest.approx(inside_s + 6 * (3e-6 + size / 4 / 10e9))
