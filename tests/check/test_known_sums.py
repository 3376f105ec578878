"""The allreduce test: right sums by a real MPI, and wrong ones that it must see."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

from hpclaunch.package_data import resource_dir
from hpclaunch.remote.known_sums import MARK, MAX_RANKS, Array, contribution, expected, measure
from tests.in_one_test import in_one_test
from tests.train.mpirun import run_ranks

PROGRAM = (resource_dir("remote") / "known_sums.py").read_text()


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_real_mpi_sums_right(ranks: int) -> None:
    done = run_ranks(ranks, sys.executable, "-c", PROGRAM, "--sizes", "1,4096,1000004", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    document = json.loads(line.removeprefix(MARK))
    assert document["ranks"] == ranks
    assert [size["message_bytes"] for size in document["sizes"]] == [4, 4096, 1000004]
    assert all(size["wrong"] == 0 and size["seconds"] > 0 for size in document["sizes"])
    assert all((size["bus_gb_s"] > 0) == (ranks > 1) for size in document["sizes"])


class FakeSums:
    """A library of two equal ranks that spoils what it returns; stands for hardware that does."""

    rank, size, library = 0, 2, "fake"

    def __init__(self, spoilt_round: int) -> None:
        self._rounds = 0
        self._spoilt = spoilt_round

    def sum(self, array: Array) -> tuple[Array, float]:
        result = expected(2, array.size, self._rounds)
        if self._rounds == self._spoilt:
            result[5] += 1
        self._rounds += 1
        return result, 0.001

    def gather(self, item: Any) -> list[Any]:
        return [item, item]

    def close(self) -> None:
        pass


def test_one_wrong_element_in_one_round_is_seen() -> None:
    found = measure(FakeSums(spoilt_round=2), 4096, rounds=4)
    assert found.wrong == 2  # one on each rank
    assert found.first_wrong is not None
    assert "element 5 of 1024" in found.first_wrong
    assert measure(FakeSums(spoilt_round=9), 4096, rounds=4).wrong == 0


def test_a_sum_left_over_from_the_round_before_is_wrong() -> None:
    assert not np.array_equal(expected(2, 1024, 0), expected(2, 1024, 1))


@in_one_test("ranks", [2, 7, 1024, MAX_RANKS])
def test_sums_are_exact_in_float32(ranks: int) -> None:
    exact = sum(int(contribution(rank, 300, 1)[250]) for rank in range(ranks))
    assert exact < 2**24
    assert int(expected(ranks, 300, 1)[250]) == exact
