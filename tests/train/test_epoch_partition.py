"""Partition of an epoch: every image once per epoch by one rank, for any sizes of data, job and batch."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.train.data.epoch_partition import (
    epoch_order,
    images_per_rank,
    rank_shares,
    steps_per_epoch,
)
from hpclaunch.train.run_errors import BadRequestError


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, int, int]:
    """Images, batch size per rank, ranks: any that fit."""
    ranks = draw(st.integers(1, 17))
    return draw(st.integers(ranks, 400)), draw(st.integers(1, 40)), ranks


def step_shares(n: int, batch: int, ranks: int) -> list[list[slice]]:
    """By step: what each rank uses of it, by rank."""
    by_rank = [rank_shares(0, n, batch * ranks, ranks, rank) for rank in range(ranks)]
    return [list(step) for step in zip(*by_rank, strict=True)]


@given(runs())
def test_every_position_once_by_one_rank(run: tuple[int, int, int]) -> None:
    n, batch, ranks = run
    used_by: list[list[int]] = [[] for _ in range(n)]
    for step in step_shares(n, batch, ranks):
        for rank, share in enumerate(step):
            for position in range(n)[share]:
                used_by[position].append(rank)
    assert all(len(users) == 1 for users in used_by)
    counted = [sum(users == [rank] for users in used_by) for rank in range(ranks)]
    assert images_per_rank(n, batch, ranks) == counted
    assert sum(counted) == n


@given(runs())
def test_a_step_is_cut_contiguously_and_evenly(run: tuple[int, int, int]) -> None:
    n, batch, ranks = run
    steps = step_shares(n, batch, ranks)
    assert len(steps) == steps_per_epoch(n, batch, ranks)
    for step, shares in enumerate(steps):
        sizes = [share.stop - share.start for share in shares]
        assert shares[0].start == step * batch * ranks
        assert shares[-1].stop == min((step + 1) * batch * ranks, n)
        assert all(left.stop == right.start for left, right in pairwise(shares))
        assert max(sizes) <= batch
        assert max(sizes) - min(sizes) <= 1
        assert sizes == sorted(sizes, reverse=True), "the first ranks get one more"
        assert sum(sizes) >= 1


def test_mnist_over_seven_ranks() -> None:
    assert steps_per_epoch(60_000, 64, 7) == 134
    # 133 full steps of 448, then 416 images: 59 or 60 per rank.
    assert images_per_rank(60_000, 64, 7) == [133 * 64 + 60] * 3 + [133 * 64 + 59] * 4


def test_a_short_last_step_may_leave_ranks_without_images() -> None:
    assert step_shares(10, 2, 4)[1] == [slice(8, 9), slice(9, 10), slice(10, 10), slice(10, 10)]


@given(st.integers(0, 500), st.integers(0, 2**64), st.integers(0, 1000))
def test_order_is_a_permutation(n: int, seed: int, epoch: int) -> None:
    order = epoch_order(n, seed, epoch)
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(n))
    np.testing.assert_array_equal(order, epoch_order(n, seed, epoch))


def test_order_depends_on_seed_and_epoch() -> None:
    orders = {tuple(epoch_order(100, seed, epoch).tolist()) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


def test_order_is_the_same_everywhere() -> None:
    """A resumed run, on another machine and under another NumPy, must see the order of the first."""
    order = epoch_order(60_000, seed=1, epoch=2)
    digest = hashlib.sha256(order.astype("<i8").tobytes()).hexdigest()
    assert digest == "1adeb779abdb2e5b169ae3f8339fec60f78442a6c833aebd360a8a2197d7d6b6"


@pytest.mark.parametrize(
    ("n", "batch", "ranks", "said"),
    [
        (3, 1, 4, "4 ranks but only 3 training images"),
        (0, 1, 1, "1 ranks but only 0 training images"),
    ],
)
def test_run_that_cannot_be(n: int, batch: int, ranks: int, said: str) -> None:
    for ask in (
        lambda: steps_per_epoch(n, batch, ranks),
        lambda: images_per_rank(n, batch, ranks),
    ):
        with pytest.raises(BadRequestError, match=said) as caught:
            ask()
        assert caught.value.exit_code == 3


@given(n=st.integers(1, 500), batch=st.integers(1, 40), ranks=st.integers(1, 9), done=st.integers(0, 20))
def test_shares_from_anywhere_hold_each_position_once(n: int, batch: int, ranks: int, done: int) -> None:
    """Also where a run goes on in the middle of an epoch, at a place that is no whole step of its own."""
    start = min(done * 7, n)
    by_rank = [rank_shares(start, n, batch * ranks, ranks, rank) for rank in range(ranks)]
    assert {len(parts) for parts in by_rank} == {-(-(n - start) // (batch * ranks))}
    steps = list(zip(*by_rank, strict=True))
    assert [place for step in steps for part in step for place in range(n)[part]] == list(range(start, n))
