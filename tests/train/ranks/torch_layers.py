"""Prints, by layer, how far the numpy engine's outputs and gradients are from torch's, in float64."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from hpclaunch.train.engine.layers import (
    Conv2D,
    Dense,
    Dropout,
    Layer,
    MaxPool2,
    ReLU,
    dropout_factors,
    softmax_cross_entropy,
)
from hpclaunch.train.engine.models import Network

Tensors = Sequence[Any]
SEED = 9


def dense(x: Any, parameters: Tensors) -> Any:
    return functional.linear(x.flatten(1), parameters[0].t(), parameters[1])


def convolution(x: Any, parameters: Tensors) -> Any:
    kernel, bias = parameters
    y = functional.conv2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), bias)
    return y.permute(0, 2, 3, 1)


def pool(x: Any, parameters: Tensors) -> Any:
    return functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)


def dropout(x: Any, parameters: Tensors) -> Any:
    factors = np.empty(tuple(x.shape))
    dropout_factors(np.random.default_rng(SEED), 0.4, factors)
    return x * torch.from_numpy(factors)


CASES: dict[str, tuple[Layer, tuple[int, ...], Callable[[Any, Tensors], Any]]] = {
    "dense": (Dense(5, 3), (4, 5), dense),
    "dense on images": (Dense(12, 3), (4, 3, 2, 2), dense),
    "convolution": (Conv2D(2, 3), (3, 6, 5, 2), convolution),
    "convolution 2x2 of one channel": (Conv2D(1, 4, size=2), (2, 5, 5, 1), convolution),
    "convolution in many blocks": (Conv2D(8, 6), (50, 16, 16, 8), convolution),
    "relu": (ReLU(), (4, 3, 3, 2), lambda x, _: torch.relu(x)),
    "max-pool": (MaxPool2(), (3, 6, 4, 2), pool),
    "max-pool, odd": (MaxPool2(), (3, 5, 7, 2), pool),
    "dropout": (Dropout(0.4), (6, 7), dropout),
}


def compare(layer: Layer, shape: tuple[int, ...], reference: Callable[[Any, Tensors], Any]) -> dict[str, Any]:
    """The largest differences of output, input's and parameters' gradients; and the largest gradient."""
    generator = np.random.default_rng(1)
    network = Network([layer], np.float64)
    network.parameters[:] = generator.standard_normal(network.parameters.size)
    x = generator.standard_normal(shape)
    y = layer.forward(x.copy(), np.random.default_rng(SEED)).copy()
    weights = generator.standard_normal(y.shape)
    dx = layer.backward(weights.copy())
    assert dx is not None

    own = [network.parameters[tensor.part].reshape(tensor.shape or (-1,)) for tensor in network.tensors]
    there = [torch.tensor(array, requires_grad=True) for array in [x, *own]]
    output = reference(there[0], there[1:])
    output.backward(torch.from_numpy(weights))
    gradients = [network.gradients[tensor.part].reshape(tensor.shape or (-1,)) for tensor in network.tensors]
    pairs = [(dx, there[0].grad), *zip(gradients, [one.grad for one in there[1:]], strict=True)]
    return {
        "output": far(y, output.detach()),
        "gradients": [far(here, grad) for here, grad in pairs],
        "largest": [float(grad.abs().max()) for _, grad in pairs],
    }


def compare_loss() -> dict[str, Any]:
    """The same for softmax and cross-entropy."""
    generator = np.random.default_rng(6)
    logits = 3 * generator.standard_normal((7, 10))
    labels = generator.integers(0, 10, 7).astype(np.uint8)
    loss, _, gradient = softmax_cross_entropy(logits, labels)
    there = torch.tensor(logits, requires_grad=True)
    expected = functional.cross_entropy(there, torch.tensor(labels, dtype=torch.int64), reduction="sum")
    expected.backward()
    return {
        "output": abs(loss - float(expected.detach())),
        "gradients": [far(gradient, there.grad)],
        "largest": [float(there.grad.abs().max())],
    }


def far(here: Any, there: Any) -> float:
    assert here.shape == tuple(there.shape)
    return float(np.abs(here - there.numpy()).max())


if __name__ == "__main__":
    found = {name: compare(*case) for name, case in CASES.items()}
    print(json.dumps({**found, "softmax cross-entropy": compare_loss()}))
