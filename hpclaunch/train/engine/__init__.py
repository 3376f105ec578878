"""The interface of an engine, the part that computes. The training loop itself knows no layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..run_errors import TrainError
from ..run_options import Options
from .layers import Array

if TYPE_CHECKING:
    from .models import Network

_EVALUATION_BATCH = 128
_INITIAL, _DROPOUT = 1, 2  # keep the random streams of one seed apart

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


@dataclass(frozen=True)
class Tensor:
    """A parameter of the model with its name for users, such as ``dense1.weight``."""

    name: str
    part: slice
    """Where it lies in the flat buffers."""
    shape: tuple[int, ...]


Ready = Callable[[slice], None]
"""Called with each part of the gradients that is final, from the last layer's to the first's, without gaps.

An empty part at the end, before all others, means that back-propagation begins.
"""


def step_draws(seed: int, rank: int, step: int) -> np.random.Generator:
    """The generator of what a rank draws in a step; of numpy's fastest kind, for dropout draws much."""
    return np.random.Generator(np.random.SFC64([seed, _DROPOUT, rank, step]))


class Engine(ABC):
    """A model, its optimiser, and the arithmetic of a step on one rank."""

    name: str
    network: Network
    """The layers, with the flat buffers of all parameters and gradients in host memory."""
    _seed: int

    @property
    def device(self) -> str:
        """The device that computes on this rank: ``cpu``, or a GPU with its name."""
        return "cpu"

    @property
    def peak_device_bytes(self) -> int | None:
        """The most memory that this process has used on a GPU; None where the host's memory is used."""
        return None

    @property
    def versions(self) -> Mapping[str, str]:
        """By name, those of libraries that only this engine needs."""
        return {}

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All parameters in the order of the flat buffers, which they fill: of each layer weights, biases."""
        return self.network.tensors

    @property
    def gradients(self) -> Array:
        """The flat buffer of all gradients in host memory, to be summed over the ranks in place."""
        return self.network.gradients

    def place_gradients(self, buffer: Array) -> None:
        """Use ``buffer`` for the gradients from now on: flat, in host memory, as long as `gradients`."""
        self.network.place_gradients(buffer)

    def initialise(self) -> None:
        """Draw the first parameters from the seed."""
        self.network.initialise(np.random.default_rng([self._seed, _INITIAL]))

    @abstractmethod
    def compute_gradients(
        self, images: Images, labels: Labels, step: int, ready: Ready | None = None
    ) -> Sums:
        """Fill `gradients` with the sum (not the mean) over ``images``, in training mode.

        ``images`` uint8 (n, 28, 28), ``labels`` uint8 (n,); n may be 0: zeros. What is random depends on
        seed, rank and global ``step`` alone, so that a resumed run draws the same. ``ready`` is called
        while earlier layers are still to come.
        """

    @abstractmethod
    def update(self, lr: float, images: int) -> None:
        """Let the optimiser take a step with `gradients` / ``images``, the mean over all ranks' images."""

    def evaluate(self, images: Images, labels: Labels) -> Sums:
        """Loss and right answers without dropout; any number of images."""
        blocks = [slice(at, at + _EVALUATION_BATCH) for at in range(0, len(images), _EVALUATION_BATCH)]
        return sum((self._evaluate(images[block], labels[block]) for block in blocks), Sums())

    @abstractmethod
    def _evaluate(self, images: Images, labels: Labels) -> Sums:
        """`evaluate` a block of images."""

    def state(self) -> dict[str, Array]:
        """All that training changes, as flat host arrays: "parameters", and the optimiser's by name."""
        return self._live()

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Copy arrays as `state` returns them; KeyError or ValueError for other names or lengths."""
        own = self._live()
        if own.keys() != state.keys():
            raise KeyError(f"arrays {sorted(state)} instead of {sorted(own)}")
        for name, array in own.items():
            if state[name].shape != tuple(array.shape):
                raise ValueError(f"{name} has the shape {state[name].shape} instead of {tuple(array.shape)}")
        for name, array in own.items():
            self._copy(array, state[name])

    @abstractmethod
    def _live(self) -> dict[str, Any]:
        """The arrays of `state`, or tensors on a device, that the engine works on."""

    def _copy(self, live: Any, array: Array) -> None:
        live[:] = array


def _numpy(options: Options, rank: int) -> Engine:
    from .models import NumpyEngine

    return NumpyEngine(options.model, options.optimizer, options.seed, rank)


def _torch(options: Options, rank: int) -> Engine:
    try:
        from .torch_engine import torch_engine
    except ImportError as error:
        raise TrainError.of("no PyTorch", error=error) from error
    return torch_engine(options, rank)


# By the name that --engine takes; an engine's module is imported only when it is used. TrainError where it
# cannot be.
ENGINES: dict[str, Callable[[Options, int], Engine]] = {"numpy": _numpy, "torch": _torch}
