"""The networks by name, as sequences of layers over one flat buffer of parameters, and numpy's engine."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from . import Engine, Images, Labels, Ready, Sums, Tensor, step_draws
from .layers import Array, Conv2D, Dense, Dropout, Layer, MaxPool2, ReLU, Scratch, softmax_cross_entropy
from .optimizers import OPTIMIZERS

PIXEL_MEAN = 0.1307
PIXEL_DEVIATION = 0.3081
"""Over MNIST's 60,000 training images, as shares of full ink."""


def mlp() -> list[Layer]:
    """A perceptron with two hidden layers: 784-256-128-10; 235,146 parameters."""
    return [Dense(784, 256), ReLU(), Dense(256, 128), ReLU(), Dense(128, 10)]


def cnn() -> list[Layer]:
    """The convolutional network of the Keras and Horovod MNIST examples; 1,199,882 parameters.

    horovod/examples/keras/keras_mnist.py: Conv 32 3x3, Conv 64 3x3, max-pool 2, dropout .25, dense 128,
    dropout .5, dense 10, ReLU in between, no padding.
    """
    convolutions: list[Layer] = [Conv2D(1, 32), ReLU(), Conv2D(32, 64), ReLU(), MaxPool2(), Dropout(0.25)]
    return [*convolutions, Dense(12 * 12 * 64, 128), ReLU(), Dropout(0.5), Dense(128, 10)]


NUMPY_MODELS: dict[str, Callable[[], list[Layer]]] = {"mlp": mlp, "cnn": cnn}


class Network:
    """Layers in a row whose parameters, and gradients, are views of one flat buffer each.

    One buffer each means that the gradients of all layers are summed over the ranks in one message.
    """

    def __init__(self, layers: list[Layer], dtype: npt.DTypeLike = np.float32) -> None:
        items = sum(math.prod(shape) for layer in layers for shape in layer.parameter_shapes)
        self.layers = layers
        self.spans: list[slice] = []
        """By layer: its part of the buffers; empty where it has no parameters."""
        self.tensors: list[Tensor] = []
        """The weights, and the biases, of each layer."""
        self.parameters: Array = np.zeros(items, dtype)
        self.gradients: Array = np.zeros(items, dtype)
        start = 0
        for index, layer in enumerate(layers):
            first, name = start, f"{type(layer).__name__.lower()}{index}"
            for kind, shape in zip(("weight", "bias"), layer.parameter_shapes, strict=False):
                part = slice(start, start + math.prod(shape))
                self.tensors.append(Tensor(f"{name}.{kind}", part, shape))
                start = part.stop
            self.spans.append(slice(first, start))
        self._bind()

    @property
    def parts(self) -> list[slice]:
        """Where the tensors stand in the buffers."""
        return [tensor.part for tensor in self.tensors]

    def place_gradients(self, buffer: Array) -> None:
        """Have the gradients written into ``buffer`` instead, which is as long."""
        if buffer.shape != self.gradients.shape or buffer.dtype != self.gradients.dtype:
            raise ValueError(f"a buffer of {buffer.size} {buffer.dtype} for {self.gradients.size} gradients")
        self.gradients = buffer
        self._bind()

    def _bind(self) -> None:
        """Give every layer its views of the buffers."""
        tensors = iter(self.tensors)
        for layer in self.layers:
            own = [next(tensors) for _ in layer.parameter_shapes]
            parameters, gradients = (
                [flat[tensor.part].reshape(tensor.shape) for tensor in own]
                for flat in (self.parameters, self.gradients)
            )
            layer.bind(parameters, gradients, Scratch(self.parameters.dtype))

    def initialise(self, generator: np.random.Generator) -> None:
        """Draw the first parameters of every layer."""
        for layer in self.layers:
            layer.initialise(generator)

    def forward(self, images: Array, generator: np.random.Generator | None = None) -> Array:
        """Logits (batch, classes) for ``images`` (batch, 28, 28, 1); with a generator, in training mode."""
        x = images
        for layer in self.layers:
            x = layer.forward(x, generator)
        return x

    def backward(self, gradient: Array, ready: Ready | None = None) -> None:
        """Fill `gradients` from the gradient of the loss with respect to the last `forward`'s logits.

        ``ready`` is called for each layer's gradients as soon as they are complete.
        """
        if ready is not None:
            ready(slice(len(self.gradients), len(self.gradients)))
        passed: Array | None = gradient
        for index in reversed(range(len(self.layers))):
            assert passed is not None  # noqa: S101
            passed = self.layers[index].backward(passed, need_input=index > 0)
            span = self.spans[index]
            if ready is not None and span.stop > span.start:
                ready(span)


class NumpyEngine(Engine):
    """A `Network` with an optimiser, on the cores of one rank: it needs nothing but numpy."""

    name = "numpy"

    def __init__(
        self, model: str, optimizer: str, seed: int, rank: int, dtype: npt.DTypeLike = np.float32
    ) -> None:
        """Build ``model`` of `NUMPY_MODELS` with ``optimizer`` of `OPTIMIZERS`; all parameters still zero."""
        self.network = Network(NUMPY_MODELS[model](), dtype)
        self._optimizer = OPTIMIZERS[optimizer](self.network.parameters.size, dtype, self.network.parts)
        self._seed = seed
        self._rank = rank
        self._scratch = Scratch(dtype)

    def compute_gradients(
        self, images: Images, labels: Labels, step: int, ready: Ready | None = None
    ) -> Sums:
        """One forward and backward pass in training mode."""
        if len(images) == 0:
            self.network.gradients[:] = 0
            if ready is not None:
                ready(slice(0, self.network.gradients.size))
            return Sums()
        logits = self.network.forward(self._as_input(images), step_draws(self._seed, self._rank, step))
        loss, correct, gradient = softmax_cross_entropy(logits, labels)
        self.network.backward(gradient, ready)
        return Sums(loss, correct, len(images))

    def update(self, lr: float, images: int) -> None:
        """Divide the summed gradients by ``images`` and take a step."""
        self.network.gradients /= images
        self._optimizer.step(self.network.parameters, self.network.gradients, lr)

    def _evaluate(self, images: Images, labels: Labels) -> Sums:
        loss, correct, _ = softmax_cross_entropy(self.network.forward(self._as_input(images)), labels)
        return Sums(loss, correct, len(images))

    def _live(self) -> dict[str, Any]:
        return {"parameters": self.network.parameters, **self._optimizer.state}

    def _as_input(self, images: Images) -> Array:
        """Pixels as (n, 28, 28, 1), shifted and scaled to mean 0 and deviation 1 over MNIST."""
        x = self._scratch.array("input", (*images.shape, 1))
        np.multiply(images[..., np.newaxis], x.dtype.type(1 / (255 * PIXEL_DEVIATION)), out=x)
        x -= x.dtype.type(PIXEL_MEAN / PIXEL_DEVIATION)
        return x
