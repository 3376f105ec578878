"""Synthetic digits: the same bytes everywhere, and neither trivial nor impossible to learn."""

from __future__ import annotations

import hashlib

import numpy as np

from hpclaunch.train.data.synthetic_digits import GLYPHS, SEED, TEST_IMAGES, TRAIN_IMAGES, synthetic_digits


def digest(*arrays: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def test_the_same_bytes_on_every_machine() -> None:
    """The digest was taken once (x86-64, NumPy 2); a change of it is a change of everyone's data."""
    arrays = synthetic_digits(TRAIN_IMAGES, TEST_IMAGES, SEED)
    assert [array.shape for array in arrays] == [(12_000, 28, 28), (12_000,), (2_000, 28, 28), (2_000,)]
    assert all(array.dtype == np.uint8 for array in arrays)
    assert digest(*arrays) == "71f2e5a2a1b857875a8c165e6786b77e417269ff581a4f3c9576f1ac0458cc71"


def test_digits_come_equally_often() -> None:
    _, train_labels, _, test_labels = synthetic_digits(5000, 1000, seed=3)
    for labels in (train_labels, test_labels):
        shares = np.bincount(labels, minlength=10) / len(labels)
        assert len(shares) == 10
        assert shares.min() > 0.07
        assert shares.max() < 0.13


def test_train_and_test_images_differ_and_follow_the_seed() -> None:
    train, _, test, _ = synthetic_digits(300, 300, seed=5)
    other, _, _, _ = synthetic_digits(300, 300, seed=6)
    seen = [image.tobytes() for part in (train, test, other) for image in part]
    assert len(set(seen)) == 900


def test_digits_stand_inside_the_image_in_ink_on_a_dark_ground() -> None:
    images, _, _, _ = synthetic_digits(1000, 1, seed=7)
    assert images.max(axis=(1, 2)).min() >= 140
    bright = images >= 128
    assert 0.05 < bright.mean() < 0.2
    assert bright[:, [0, -1], :].mean() < 0.01, "strokes seldom touch the edge"
    assert bright[:, :, [0, -1]].mean() < 0.01


def test_nearest_mean_is_neither_a_guess_nor_enough() -> None:
    """A classifier that compares with each digit's mean image: far over 10 %, far from solved."""
    train, train_labels, test, test_labels = synthetic_digits(4000, 1000, seed=SEED)
    means = np.stack([train[train_labels == digit].mean(axis=0) for digit in range(10)]).reshape(10, -1)
    pixels = test.reshape(len(test), -1).astype(np.float64)
    distances = (means**2).sum(axis=1) - 2 * pixels @ means.T
    accuracy = (distances.argmin(axis=1) == test_labels).mean()
    assert 0.4 < accuracy < 0.9


def test_every_digit_has_its_ways() -> None:
    assert len(GLYPHS) == 10
    assert all(len(ways) >= 2 for ways in GLYPHS)
