"""The engine that needs nothing but numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from . import Engine, Images, Labels, Ready, Sums, step_draws
from .layers import Array, Scratch, softmax_cross_entropy
from .models import NUMPY_MODELS, PIXEL_DEVIATION, PIXEL_MEAN, Network
from .optimizers import OPTIMIZERS


class NumpyEngine(Engine):
    """A `Network` with an optimiser, on the cores of one rank."""

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
