"""On every rank: the exchanged gradient of any shares is the gradient of the whole batch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

from hpclaunch.train.allreduce import ALLREDUCES
from hpclaunch.train.data.epoch_partition import rank_shares
from hpclaunch.train.data.synthetic_digits import synthetic_digits
from hpclaunch.train.engine import Engine
from hpclaunch.train.engine.models import NumpyEngine
from hpclaunch.train.exchange.gradient_exchange import GradientExchange
from hpclaunch.train.run_options import Options

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()


@cache
def digits(images: int) -> tuple[Any, ...]:
    return synthetic_digits(images, 1, 11)


def check(images: int, batch_size: int, algorithm: str) -> None:
    """The first step and the last, short one; there some ranks may have no image at all."""
    pixels, labels, _, _ = digits(images)
    engine = NumpyEngine("mlp", "sgd", seed=0, rank=RANK, dtype=np.float64)
    alone = NumpyEngine("mlp", "sgd", seed=0, rank=0, dtype=np.float64)
    steps = -(-images // (batch_size * RANKS))
    exchange = GradientExchange(COMM, Options(batch_size=batch_size, allreduce=algorithm), engine)
    for step in {0, steps - 1}:
        engine.initialise()
        alone.initialise()
        share = rank_shares(0, images, batch_size * RANKS, RANKS, RANK)[step]
        exchange.gradients(pixels[share], labels[share], step)
        batch = slice(step * batch_size * RANKS, min((step + 1) * batch_size * RANKS, images))
        size = batch.stop - batch.start
        alone.compute_gradients(pixels[batch], labels[batch], step)
        compare(engine, alone)
        engine.update(0.1, size)
        alone.update(0.1, size)
        assert np.abs(engine.state()["parameters"] - alone.state()["parameters"]).max() <= 1e-13


def compare(engine: Engine, alone: Engine) -> None:
    largest = np.abs(alone.gradients).max()
    assert largest > 0
    assert np.abs(engine.gradients - alone.gradients).max() <= 1e-13 * largest


if __name__ == "__main__":
    for name in ALLREDUCES:
        check(images=2 * 4 * RANKS + 1, batch_size=4, algorithm=name)
        check(images=3 * 5 * RANKS - 2, batch_size=5, algorithm=name)
