"""The optimisers against their formulas, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from hpclaunch.train.engine.optimizers import (
    LARS,
    OPTIMIZERS,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Optimizer,
    RMSProp,
)
from tests.in_one_test import in_one_test

ITEMS = 40_000  # more than two blocks, the last one short


def test_sgd_with_momentum() -> None:
    generator = np.random.default_rng(0)
    parameters = generator.standard_normal(ITEMS)
    watched = [0, 16_384, ITEMS - 1]
    expected = {i: parameters[i] for i in watched}
    velocity = dict.fromkeys(watched, 0.0)
    optimizer = SGD(ITEMS, np.float64)
    optimizer.momentum = 0.8
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


@in_one_test("name", OPTIMIZERS)
def test_a_restored_state_goes_on_with_the_same_bits(name: str) -> None:
    generator = np.random.default_rng(2)
    gradients = [generator.standard_normal(100).astype(np.float32) for _ in range(4)]

    def run(restore_after: int | None) -> bytes:
        optimizer = OPTIMIZERS[name](100, np.float32, [slice(0, 60), slice(60, 100)])
        parameters = np.ones(100, np.float32)
        for index, gradient in enumerate(gradients):
            if index == restore_after:
                kept = {key: array.copy() for key, array in optimizer.state.items()}
                optimizer = OPTIMIZERS[name](100, np.float32, [slice(0, 60), slice(60, 100)])
                for key, array in kept.items():
                    optimizer.state[key][:] = array
            optimizer.step(parameters, gradient, 0.1)
        return parameters.tobytes()

    assert run(restore_after=2) == run(restore_after=None)


@in_one_test("name", OPTIMIZERS)
def test_gradients_are_left_as_they_are(name: str) -> None:
    gradients = np.ones(10)
    OPTIMIZERS[name](10, np.float64, [slice(0, 10)]).step(np.zeros(10), gradients, 0.1)
    assert gradients.tolist() == [1] * 10


def adam() -> Callable[[float, float], float]:
    m = v = 0.0
    t = 0

    def change(g: float, lr: float) -> float:
        """With the moments corrected as in the paper's algorithm 1; its epsilon is then another."""
        nonlocal m, v, t
        t += 1
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        epsilon = 1e-7 / math.sqrt(1 - 0.999**t)
        return float(lr * m / (1 - 0.9**t) / (math.sqrt(v / (1 - 0.999**t)) + epsilon))

    return change


def rmsprop() -> Callable[[float, float], float]:
    a = 0.0

    def change(g: float, lr: float) -> float:
        nonlocal a
        a = 0.9 * a + 0.1 * g * g
        return lr * g / math.sqrt(a + 1e-7)

    return change


def adagrad() -> Callable[[float, float], float]:
    a = 0.1

    def change(g: float, lr: float) -> float:
        nonlocal a
        a += g * g
        return lr * g / math.sqrt(a + 1e-7)

    return change


@in_one_test(
    "rule, formula",
    [
        (Adam(ITEMS, np.float64), adam),
        (RMSProp(ITEMS, np.float64), rmsprop),
        (Adagrad(ITEMS, np.float64), adagrad),
    ],
)
def test_rules_without_layers(
    rule: Optimizer, formula: Callable[[], Callable[[float, float], float]]
) -> None:
    generator = np.random.default_rng(3)
    parameters = generator.standard_normal(ITEMS)
    watched = {i: formula() for i in (0, 16_383, 16_384, ITEMS - 1)}
    expected = {i: parameters[i] for i in watched}
    for lr in (0.01, 0.01, 0.003):
        gradients = generator.standard_normal(ITEMS)
        rule.step(parameters, gradients, lr)
        for i, change in watched.items():
            expected[i] -= change(float(gradients[i]), lr)
            assert parameters[i] == pytest.approx(expected[i], rel=1e-12)


def test_lars_has_a_rate_for_each_layer() -> None:
    generator = np.random.default_rng(4)
    w, b = np.array([3.0, 4.0]), np.zeros(1)
    parameters = np.concatenate([w, b])
    rule = LARS(3, np.float64, [slice(0, 2), slice(2, 3)])
    rule.weight_decay, rule.trust = 0.01, 0.1
    velocities = [np.zeros(2), np.zeros(1)]
    for lr in (0.5, 0.2):
        gradients = generator.standard_normal(3)
        rule.step(parameters, gradients, lr)
        for layer, v, g in ((w, velocities[0], gradients[:2]), (b, velocities[1], gradients[2:])):
            norm, slope = math.sqrt(sum(layer**2)), math.sqrt(sum(g**2))
            local = 0.1 * norm / (slope + 0.01 * norm) if norm else 1.0
            v[:] = 0.9 * v + local * (g + 0.01 * layer)
            layer -= lr * v
        assert parameters == pytest.approx(np.concatenate([w, b]), rel=1e-12)


@pytest.mark.parametrize("name", ["sgd", "lars"])
def test_momentum_is_corrected_where_the_rate_changes(name: str) -> None:
    """Against the rate inside of the momentum, v growing by new rate / old rate (Goyal et al. 2017, 3)."""
    generator = np.random.default_rng(5)
    parameters = generator.standard_normal(50)
    expected, velocity, last = parameters.copy(), np.zeros(50), 0.1
    rule = OPTIMIZERS[name](50, np.float64, [slice(0, 50)])
    for lr in (0.1, 0.2, 0.4, 0.4, 0.004):
        g = generator.standard_normal(50)
        rule.step(parameters, g, lr)
        local = 1.0
        if name == "lars":
            norm = np.linalg.norm(expected)
            g, local = g + 5e-4 * expected, 1e-3 * norm / (np.linalg.norm(g) + 5e-4 * norm)
        velocity = 0.9 * velocity * (lr / last) + lr * local * g
        expected, last = expected - velocity, lr
        assert parameters == pytest.approx(expected, rel=1e-9)
