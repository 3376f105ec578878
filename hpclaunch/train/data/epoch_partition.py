"""Which image is used when and by which rank. Pure functions; every rank computes the same answer.

An epoch is one permutation of the training images (`epoch_order`), the same for any number of ranks.
Each global step takes the next ``batch_per_rank * ranks`` positions of that permutation; they are cut into
contiguous shares, one per rank, as even as possible (the first ranks get one more). So in every epoch each
image is used exactly once, by exactly one rank. Only the last step can be short; there a rank's share may be
empty.
"""

import numpy as np
import numpy.typing as npt

from ..allreduce import chunk_bounds
from ..run_errors import BadRequestError


def epoch_order(n: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """The order in which epoch ``epoch`` visits ``n`` images: a permutation of ``0..n-1``, int64 (n,).

    Drawn by sorting raw PCG64 words, whose stream NumPy guarantees (NEP 19), unlike that of
    ``Generator.permutation``: a resumed run sees the same order under another NumPy.
    """
    keys = np.random.PCG64(np.random.SeedSequence([seed, epoch])).random_raw(n)
    return np.argsort(keys, kind="stable").astype(np.int64, copy=False)


def steps_per_epoch(n: int, batch_per_rank: int, ranks: int) -> int:
    """Global steps in an epoch: n / (batch_per_rank * ranks), rounded up; BadRequestError where n < ranks."""
    _check(n, ranks)
    return -(-n // (batch_per_rank * ranks))


def images_per_rank(n: int, batch_per_rank: int, ranks: int) -> list[int]:
    """Images that each rank uses in one epoch, by rank; they sum to ``n``. Raises as `steps_per_epoch`."""
    _check(n, ranks)
    full_steps, rest = divmod(n, batch_per_rank * ranks)
    each, more = divmod(rest, ranks)
    return [full_steps * batch_per_rank + each + (rank < more) for rank in range(ranks)]


def rank_shares(start: int, stop: int, step_images: int, ranks: int, rank: int) -> list[slice]:
    """``rank``'s share of each step between two positions; ``step_images``: of a step, over all ranks."""
    shares = []
    for first in range(start, stop, step_images):
        bounds = chunk_bounds(min(step_images, stop - first), ranks)
        shares.append(slice(first + bounds[rank], first + bounds[rank + 1]))
    return shares


def _check(n: int, ranks: int) -> None:
    if ranks > n:
        raise BadRequestError.of("few images", ranks=ranks, images=n)
