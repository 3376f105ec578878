"""On every rank: the same gradients however they are fused, overlapped, placed and accumulated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from hpclaunch.train.allreduce import ALLREDUCES
from hpclaunch.train.data.epoch_partition import rank_shares
from hpclaunch.train.data.synthetic_digits import synthetic_digits
from hpclaunch.train.engine.models import NumpyEngine
from hpclaunch.train.exchange.gradient_exchange import GradientExchange
from hpclaunch.train.exchange.tensor_fusion import buckets
from hpclaunch.train.run_options import Options

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()
IMAGES = 12 * RANKS + 1
PIXELS, LABELS, _, _ = synthetic_digits(IMAGES, 1, 3)
# The order in which they add up the ranks' numbers does not depend on where a message begins and ends.
SPLIT_AS_ONE = ("halving-doubling", "shared")
FUSIONS = (0, 300_000, 128 << 20)


def exchanged(options: Options, images: int = IMAGES) -> npt.NDArray[Any]:
    """The gradients of two steps, the second of them after an update; the same on all ranks."""
    engine = NumpyEngine("mlp", "sgd", seed=0, rank=RANK)
    engine.initialise()
    exchange = GradientExchange(COMM, options, engine)
    (mine,) = rank_shares(0, images, images, RANKS, RANK)
    found = []
    for step in range(2):
        exchange.gradients(PIXELS[mine], LABELS[mine], step)
        found.append(engine.gradients.copy())
        engine.update(0.1, images)
    count = len(buckets(engine.tensors, 4, options.fusion_bytes))
    assert exchange.messages == 2 * count
    if not options.overlap:
        assert exchange.overlapped_s == 0
    exchange.close()
    assert np.isfinite(engine.gradients).all(), "readable after close"
    gradients = np.concatenate(found)
    digests = COMM.allgather(hashlib.sha256(gradients.tobytes()).hexdigest())
    assert len(set(digests)) == 1, f"ranks differ: {options}"
    return gradients


def assert_near(found: npt.NDArray[Any], whole: npt.NDArray[Any]) -> None:
    assert np.abs(found - whole).max() <= 1e-5 * np.abs(whole).max()


def check_fusion_and_overlap(name: str) -> None:
    base = Options(allreduce=name, batch_size=IMAGES, deterministic=True)
    whole = exchanged(base)
    for limit in FUSIONS:
        after = whole if limit == base.fusion_bytes else exchanged(replace(base, fusion_bytes=limit))
        beside = exchanged(replace(base, fusion_bytes=limit, overlap=True))
        assert np.array_equal(after, beside), f"{name}, {limit}: overlap has other bits"
        if name in SPLIT_AS_ONE or RANKS <= 2:
            assert np.array_equal(after, whole), f"{name}, {limit}: fusion has other bits"
        assert_near(after, whole)


def check_ranks_without_images() -> None:
    """The last step of an epoch may have fewer images than ranks."""
    for overlap in (False, True):
        options = Options(batch_size=4, fusion_bytes=4096, overlap=overlap)
        few = exchanged(options, images=1)
        assert np.abs(few).max() > 0


def check_accumulation(overlap: bool) -> None:
    """Micro-batches add up to the gradient of the batch, of any size."""
    base = Options(fusion_bytes=4096, overlap=overlap)
    whole = exchanged(replace(base, batch_size=16))
    for batch_size, accumulate in ((4, 4), (8, 2), (5, 4), (1, 16)):
        parts = exchanged(replace(base, batch_size=batch_size, accumulate=accumulate))
        assert_near(parts, whole)
        again = exchanged(replace(base, batch_size=batch_size, accumulate=accumulate, overlap=not overlap))
        assert np.array_equal(parts, again), (batch_size, accumulate)


class Disorderly(NumpyEngine):
    """Reports the first layer before the others, or omits one."""

    reordered: Callable[[list[slice]], list[slice]]

    def compute_gradients(self, images: Any, labels: Any, step: int, ready: Any = None) -> Any:
        parts: list[slice] = []
        sums = super().compute_gradients(images, labels, step, parts.append)
        for part in type(self).reordered(parts):
            ready(part)
        return sums


def check_disorder(reordered: Callable[[list[slice]], list[slice]], message: str) -> None:
    """Messages would be cut in another way than on other ranks: this rank stops."""
    Disorderly.reordered = reordered
    engine = Disorderly("mlp", "sgd", seed=0, rank=RANK)
    exchange = GradientExchange(COMM, Options(), engine)
    said = ""
    try:
        exchange.gradients(PIXELS, LABELS, 0)
    except RuntimeError as error:
        said = str(error)
    assert message in said
    exchange.close()


if __name__ == "__main__":
    check_disorder(lambda parts: parts[::-1], "gradients ready up to 200960, but expected up to 235146")
    check_disorder(lambda parts: parts[:-1], "the numpy engine left 200960 gradients unready")
    for algorithm in ALLREDUCES:
        check_fusion_and_overlap(algorithm)
    check_ranks_without_images()
    check_accumulation(overlap=False)
    check_accumulation(overlap=True)
