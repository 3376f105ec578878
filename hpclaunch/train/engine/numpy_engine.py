"""The engine that needs nothing but numpy."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from . import Images, Labels, Ready, Sums, Tensor
from .layers import Array, Scratch, softmax_cross_entropy
from .models import NUMPY_MODELS, PIXEL_DEVIATION, PIXEL_MEAN, Network
from .optimizers import OPTIMIZERS

_EVALUATION_BATCH = 128
_INITIAL, _DROPOUT = 1, 2  # keep the random streams of one seed apart


def first_draw(seed: int) -> np.random.Generator:
    """The generator of a run's first parameters."""
    return np.random.default_rng([seed, _INITIAL])


def step_draws(seed: int, rank: int, step: int) -> np.random.Generator:
    """The generator of what a rank draws in a step; of numpy's fastest kind, for dropout draws much."""
    return np.random.Generator(np.random.SFC64([seed, _DROPOUT, rank, step]))


def check_state(own: Mapping[str, Any], state: Mapping[str, Array]) -> None:
    """KeyError or ValueError where ``state`` has not the names and shapes of an engine's ``own``."""
    if own.keys() != state.keys():
        raise KeyError(f"arrays {sorted(state)} instead of {sorted(own)}")
    for name, array in own.items():
        if state[name].shape != tuple(array.shape):
            raise ValueError(f"{name} has the shape {state[name].shape} instead of {tuple(array.shape)}")


class NumpyEngine:
    """A `Network` with an optimiser, on the cores of one rank."""

    name = "numpy"
    device = "cpu"
    peak_device_bytes: int | None = None
    versions: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self, model: str, optimizer: str, seed: int, rank: int, dtype: npt.DTypeLike = np.float32
    ) -> None:
        """Build ``model`` of `NUMPY_MODELS` with ``optimizer`` of `OPTIMIZERS`; all parameters still zero."""
        self.network = Network(NUMPY_MODELS[model](), dtype)
        self._optimizer = OPTIMIZERS[optimizer](self.network.parameters.size, dtype, self.network.parts)
        self._seed = seed
        self._rank = rank
        self._scratch = Scratch(dtype)

    @property
    def gradients(self) -> Array:
        """The network's flat gradient buffer."""
        return self.network.gradients

    @property
    def tensors(self) -> Sequence[Tensor]:
        """Weights and biases of the layers, in their order."""
        return self.network.tensors

    def place_gradients(self, buffer: Array) -> None:
        """Let the layers write into ``buffer``."""
        self.network.place_gradients(buffer)

    def initialise(self) -> None:
        """Draw the first parameters from the seed."""
        self.network.initialise(first_draw(self._seed))

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

    def evaluate(self, images: Images, labels: Labels) -> Sums:
        """Forward passes in blocks."""
        total = Sums()
        for start in range(0, len(images), _EVALUATION_BATCH):
            block = slice(start, start + _EVALUATION_BATCH)
            logits = self.network.forward(self._as_input(images[block]))
            loss, correct, _ = softmax_cross_entropy(logits, labels[block])
            total += Sums(loss, correct, len(logits))
        return total

    def state(self) -> dict[str, Array]:
        """The live arrays, not copies."""
        return {"parameters": self.network.parameters, **self._optimizer.state}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Copy ``state`` into the live arrays."""
        own = self.state()
        check_state(own, state)
        for name, array in own.items():
            array[:] = state[name]

    def _as_input(self, images: Images) -> Array:
        """Pixels as (n, 28, 28, 1), shifted and scaled to mean 0 and deviation 1 over MNIST."""
        x = self._scratch.array("input", (*images.shape, 1))
        np.multiply(images[..., np.newaxis], x.dtype.type(1 / (255 * PIXEL_DEVIATION)), out=x)
        x -= x.dtype.type(PIXEL_MEAN / PIXEL_DEVIATION)
        return x
