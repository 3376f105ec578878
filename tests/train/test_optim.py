"""The optimisers against their formulas, one number at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpclaunch.train.optim import OPTIMIZERS, SGD, Adadelta

ITEMS = 40_000  # more than two blocks, the last one short


def test_sgd_with_momentum() -> None:
    generator = np.random.default_rng(0)
    parameters = generator.standard_normal(ITEMS)
    watched = [0, 16_384, ITEMS - 1]
    expected = {i: parameters[i] for i in watched}
    velocity = dict.fromkeys(watched, 0.0)
    optimizer = SGD(ITEMS, np.float64, momentum=0.8)
    for lr in (0.1, 0.1, 0.03):
        gradients = generator.standard_normal(ITEMS)
        optimizer.step(parameters, gradients, lr)
        for i in watched:
            velocity[i] = 0.8 * velocity[i] + gradients[i]
            expected[i] -= lr * velocity[i]
            assert parameters[i] == pytest.approx(expected[i], rel=1e-12)


def test_adadelta() -> None:
    generator = np.random.default_rng(1)
    parameters = generator.standard_normal(ITEMS)
    watched = [0, 16_383, 16_384, ITEMS - 1]
    expected = {i: parameters[i] for i in watched}
    squares = dict.fromkeys(watched, 0.0)
    changes = dict.fromkeys(watched, 0.0)
    optimizer = Adadelta(ITEMS, np.float64)
    for lr in (1.0, 1.0, 0.5):
        gradients = generator.standard_normal(ITEMS)
        optimizer.step(parameters, gradients, lr)
        for i in watched:
            squares[i] = 0.95 * squares[i] + 0.05 * gradients[i] ** 2
            change = gradients[i] * math.sqrt(changes[i] + 1e-7) / math.sqrt(squares[i] + 1e-7)
            changes[i] = 0.95 * changes[i] + 0.05 * change**2
            expected[i] -= lr * change
            assert parameters[i] == pytest.approx(expected[i], rel=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_restored_state_goes_on_with_the_same_bits(name: str) -> None:
    generator = np.random.default_rng(2)
    gradients = [generator.standard_normal(100).astype(np.float32) for _ in range(4)]

    def run(restore_after: int | None) -> bytes:
        optimizer = OPTIMIZERS[name](100, np.float32)
        parameters = np.ones(100, np.float32)
        for index, gradient in enumerate(gradients):
            if index == restore_after:
                kept = {key: array.copy() for key, array in optimizer.state.items()}
                optimizer = OPTIMIZERS[name](100, np.float32)
                for key, array in kept.items():
                    optimizer.state[key][:] = array
            optimizer.step(parameters, gradient, 0.1)
        return parameters.tobytes()

    assert run(restore_after=2) == run(restore_after=None)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_are_left_as_they_are(name: str) -> None:
    gradients = np.ones(10)
    OPTIMIZERS[name](10, np.float64).step(np.zeros(10), gradients, 0.1)
    assert gradients.tolist() == [1] * 10
