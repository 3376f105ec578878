"""Every layer's gradient against finite differences in float64, and its output against a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hpclaunch.train.engine.layers import (
    Conv2D,
    Dense,
    Dropout,
    Layer,
    MaxPool2,
    ReLU,
    softmax_cross_entropy,
)
from hpclaunch.train.engine.models import Network

Array = npt.NDArray[Any]
STEP = 1e-6

CASES: dict[str, tuple[Callable[[], Layer], tuple[int, ...]]] = {
    "dense": (lambda: Dense(5, 3), (4, 5)),
    "dense on images": (lambda: Dense(12, 3), (4, 3, 2, 2)),
    "convolution": (lambda: Conv2D(2, 3), (3, 6, 5, 2)),
    "convolution 2x2 of one channel": (lambda: Conv2D(1, 4, size=2), (2, 5, 5, 1)),
    "convolution in many blocks": (lambda: Conv2D(8, 6), (50, 16, 16, 8)),
    "relu": (ReLU, (4, 3, 3, 2)),
    "max-pool": (MaxPool2, (3, 6, 4, 2)),
    "max-pool, odd": (MaxPool2, (3, 5, 7, 2)),
    "dropout": (lambda: Dropout(0.4), (6, 7)),
}


def derivative(function: Callable[[], float], values: Array, index: tuple[int, ...]) -> float:
    """Central difference of ``function`` when one of ``values`` moves."""
    kept = values[index]
    values[index] = kept + STEP
    above = function()
    values[index] = kept - STEP
    below = function()
    values[index] = kept
    return (above - below) / (2 * STEP)


def sampled_indices(values: Array, most: int = 60) -> list[tuple[int, ...]]:
    """All places of an array, or some if they are many."""
    chosen = np.random.default_rng(3).permutation(values.size)[:most]
    return [tuple(int(i) for i in np.unravel_index(place, values.shape)) for place in chosen]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    make, shape = CASES[name]
    generator = np.random.default_rng(1)
    network = Network([make()], np.float64)
    network.parameters[:] = generator.standard_normal(network.parameters.size)
    layer = network.layers[0]
    x = generator.standard_normal(shape)
    weights = generator.standard_normal(forward(layer, x).shape)

    def weighted_output() -> float:
        return float(np.sum(forward(layer, x) * weights))

    weighted_output()
    dx = layer.backward(weights.copy())
    assert dx is not None
    dx = dx.copy()
    gradients = network.gradients.copy()
    for index in sampled_indices(x):
        assert dx[index] == pytest.approx(derivative(weighted_output, x, index), rel=1e-5, abs=1e-7)
    for index in sampled_indices(network.parameters):
        numeric = derivative(weighted_output, network.parameters, index)
        assert gradients[index] == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def forward(layer: Layer, x: Array) -> Array:
    """In training mode, drawing the same each time; ``x`` stays though a layer may overwrite its input."""
    return layer.forward(x.copy(), np.random.default_rng(9))


def test_a_network_passes_gradients_through_all_its_layers() -> None:
    layers: list[Layer] = [Conv2D(1, 4), ReLU(), Conv2D(4, 5), ReLU(), MaxPool2(), Dropout(0.25)]
    network = Network([*layers, Dense(5 * 3 * 3, 6), ReLU(), Dropout(0.5), Dense(6, 10)], np.float64)
    generator = np.random.default_rng(2)
    network.initialise(generator)
    network.parameters += 0.01 * generator.standard_normal(network.parameters.size)
    images = generator.random((5, 10, 10, 1))
    labels = generator.integers(0, 10, 5).astype(np.uint8)

    def loss() -> float:
        return softmax_cross_entropy(network.forward(images, np.random.default_rng(4)), labels)[0]

    _, _, gradient = softmax_cross_entropy(network.forward(images, np.random.default_rng(4)), labels)
    network.backward(gradient)
    gradients = network.gradients.copy()
    assert np.count_nonzero(gradients) > gradients.size / 3
    for index in sampled_indices(network.parameters, 150):
        numeric = derivative(loss, network.parameters, index)
        assert gradients[index] == pytest.approx(numeric, rel=1e-4, abs=1e-7)


def test_the_convolution_is_the_sum_over_its_window() -> None:
    generator = np.random.default_rng(5)
    network = Network([Conv2D(2, 3)], np.float64)
    network.parameters[:] = generator.standard_normal(network.parameters.size)
    kernel, bias = network.parameters[:54].reshape(3, 3, 2, 3), network.parameters[54:]
    x = generator.standard_normal((2, 5, 6, 2))
    y = network.forward(x)
    assert y.shape == (2, 3, 4, 3)
    for image, row, column in np.ndindex(2, 3, 4):
        window = x[image, row : row + 3, column : column + 3]
        expected = [np.sum(window * kernel[..., filter_]) for filter_ in range(3)] + bias
        assert y[image, row, column] == pytest.approx(expected)


def test_max_pool_gives_the_gradient_of_equal_values_to_the_first() -> None:
    layer = Network([MaxPool2()], np.float64).layers[0]
    layer.forward(np.ones((1, 2, 2, 1)), None)
    gradient = layer.backward(np.full((1, 1, 1, 1), 5.0))
    assert gradient is not None
    assert gradient.ravel().tolist() == [5, 0, 0, 0]


def test_dropout_keeps_the_mean_and_drops_its_share() -> None:
    layer = Network([Dropout(0.25)], np.float64).layers[0]
    y = layer.forward(np.ones((200, 500)), np.random.default_rng(0)).copy()
    assert np.mean(y == 0) == pytest.approx(0.25, abs=0.01)
    assert y.mean() == pytest.approx(1, abs=0.01)
    other = layer.forward(np.ones((200, 500)), np.random.default_rng(1))
    assert not np.array_equal(y, other)


def test_dropout_passes_everything_in_evaluation() -> None:
    x = np.ones((4, 4))
    assert Network([Dropout(0.5)]).forward(x) is x


def test_softmax_cross_entropy() -> None:
    generator = np.random.default_rng(6)
    logits = 3 * generator.standard_normal((7, 10))
    labels = generator.integers(0, 10, 7).astype(np.uint8)
    loss, correct, gradient = softmax_cross_entropy(logits, labels)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert loss == pytest.approx(-np.log(shares[np.arange(7), labels]).sum())
    assert correct == sum(int(np.argmax(row)) == label for row, label in zip(logits, labels, strict=True))
    for index in sampled_indices(logits):
        numeric = derivative(lambda: softmax_cross_entropy(logits, labels)[0], logits, index)
        assert gradient[index] == pytest.approx(numeric, rel=1e-5, abs=1e-8)


def test_softmax_cross_entropy_of_huge_logits_is_finite() -> None:
    loss, correct, gradient = softmax_cross_entropy(np.array([[1000.0, -1000.0]]), np.array([1], np.uint8))
    assert loss == pytest.approx(2000)
    assert correct == 0
    assert gradient.tolist() == [[1, -1]]
