"""Accuracy on the real MNIST, with the default optimiser, learning rate and batch of each model."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.train.mpirun import train

MNIST = Path(os.environ["HPCLAUNCH_TEST_MNIST"])


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in (1, 4))])
def test_the_perceptron_reaches_97_percent_in_three_epochs(ranks: int) -> None:
    result = train(ranks, "--data", MNIST, "--model", "mlp", "--epochs", "3")
    assert result["dataset"] == "mnist"
    assert result["train_images"] == sum(result["train_images_per_rank"]) == 60_000
    assert result["test_accuracy"] >= 0.97


def first_of(folder: Path, train_images: int, test_images: int) -> Path:
    """Write the first of the real images and labels as files of the same format."""
    folder.mkdir()
    for path in MNIST.glob("*.gz"):
        text = gzip.decompress(path.read_bytes())
        dimensions = text[3]
        head, count = 4 + 4 * dimensions, train_images if path.name.startswith("train") else test_images
        items = text[head : head + count * (28 * 28 if dimensions == 3 else 1)]
        packed = text[:4] + count.to_bytes(4, "big") + text[8:head] + items
        (folder / path.name).write_bytes(gzip.compress(packed, 1))
    return folder


@pytest.mark.mpi
def test_the_convolutional_network_learns_from_a_tenth_of_the_images(tmp_path: Path) -> None:
    """To 91 % (numpy 2.4, OpenBLAS, 2 ranks); all of them: the long test below."""
    data = first_of(tmp_path / "mnist", 6_000, 2_000)
    result = train(2, "--data", data, "--model", "cnn", "--epochs", "1")
    assert (result["dataset"], result["train_images"]) == ("mnist", 6_000)
    assert result["gradient_bytes"] == 4 * 1_199_882
    assert result["test_accuracy"] >= 0.88


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(2400)  # 40 s on two cores of its own; other tests run at the same time
def test_the_convolutional_network_reaches_97_percent_in_one_epoch() -> None:
    """The way to 99 % is measured by benchmarks/accuracy.py."""
    result = train(2, "--data", MNIST, "--model", "cnn", "--epochs", "1")
    assert result["gradient_bytes"] == 4 * 1_199_882
    assert result["test_accuracy"] >= 0.97
