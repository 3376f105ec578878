"""Accuracy on the real MNIST, with the default optimiser, learning rate and batch of each model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.train.mpirun import train

MNIST = Path(os.environ["HPCLAUNCH_TEST_MNIST"])


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_perceptron_reaches_97_percent_in_three_epochs(ranks: int) -> None:
    result = train(ranks, "--data", MNIST, "--model", "mlp", "--epochs", "3")
    assert result["dataset"] == "mnist"
    assert result["train_images"] == sum(result["train_images_per_rank"]) == 60_000
    assert result["test_accuracy"] >= 0.97


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(2400)  # 40 s on two cores of its own; other tests run at the same time
def test_the_convolutional_network_reaches_97_percent_in_one_epoch() -> None:
    """The way to 99 % is measured by benchmarks/accuracy.py."""
    result = train(2, "--data", MNIST, "--model", "cnn", "--epochs", "1")
    assert result["gradient_bytes"] == 4 * 1_199_882
    assert result["test_accuracy"] >= 0.97
