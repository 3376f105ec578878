"""What the training loop asks of an engine: the part that computes. The loop itself knows no layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .layers import Array
from .options import Options

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Sums:
    """Loss, right answers and images, summed over some images; sums add up over steps and ranks."""

    loss: float = 0.0
    correct: int = 0
    images: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.loss + other.loss, self.correct + other.correct, self.images + other.images)

    @property
    def mean_loss(self) -> float:
        """Cross-entropy per image, in nats."""
        return self.loss / max(1, self.images)

    @property
    def accuracy(self) -> float:
        """Share of right answers, 0..1."""
        return self.correct / max(1, self.images)


class Engine(Protocol):
    """A model, its optimiser, and the arithmetic of a step on one rank."""

    name: str

    @property
    def gradients(self) -> Array:
        """The flat buffer of all gradients in host memory, to be summed over the ranks in place."""

    def initialise(self) -> None:
        """Draw the first parameters from the seed."""

    def compute_gradients(self, images: Images, labels: Labels, step: int) -> Sums:
        """Fill `gradients` with the sum (not the mean) over ``images``, in training mode.

        ``images`` uint8 (n, 28, 28), ``labels`` uint8 (n,); n may be 0: zeros. What is random depends on
        seed, rank and global ``step`` alone, so that a resumed run draws the same.
        """

    def update(self, lr: float, images: int) -> None:
        """Let the optimiser take a step with `gradients` / ``images``, the mean over all ranks' images."""

    def evaluate(self, images: Images, labels: Labels) -> Sums:
        """Loss and right answers without dropout; any number of images."""

    def state(self) -> dict[str, Array]:
        """All that training changes, as flat host arrays: "parameters", and the optimiser's by name."""

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Take over arrays as `state` gives them; KeyError or ValueError for other names or lengths."""


def _numpy(options: Options, rank: int) -> Engine:
    from .numpy_engine import NumpyEngine

    return NumpyEngine(options.model, options.optimizer, options.seed, rank)


# By the name that --engine takes; an engine's module is imported only when it is asked for.
ENGINES: dict[str, Callable[[Options, int], Engine]] = {"numpy": _numpy}
