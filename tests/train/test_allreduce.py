"""All allreduce algorithms under a real MPI."""

from __future__ import annotations

import numpy as np
import pytest

from hpclaunch.train.allreduce.chunks import chunk_bounds
from tests.train.mpirun import run_program


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_each_is_a_plain_sum_with_the_same_bits_on_all_ranks(ranks: int) -> None:
    """Lengths 0, 1, shorter than p, not divisible; many types; one message or many a chunk; fake nodes."""
    run_program(ranks, "allreduces", "8")


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_compressed_sums_are_near_lose_nothing_and_send_less(ranks: int) -> None:
    run_program(ranks, "compressed")


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
@pytest.mark.parametrize("items", [0, 1, 2, 6, 7, 8, 1000])
def test_chunks_cover_the_buffer_evenly(items: int, ranks: int) -> None:
    bounds = chunk_bounds(items, ranks)
    sizes = np.diff(bounds)
    assert bounds[0] == 0
    assert bounds[-1] == items
    assert len(sizes) == ranks
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.mpi
def test_arrays_that_cannot_be_summed_in_place_are_refused() -> None:
    run_program(1, "refused_arrays")
