"""Optimisers on flat buffers, in place; their state is plain arrays, so that a checkpoint can keep it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .layers import Array

# A block of all arrays of a step stays in a core's second-level cache from one operation to the next.
_BLOCK_ITEMS = 1 << 14


class Optimizer(Protocol):
    """A rule that changes parameters by their gradient."""

    name: str
    state: dict[str, Array]
    """What the rule remembers between steps, by name; each of the parameters' length."""

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """Change ``parameters`` in place by the mean ``gradients``, which stay; ``lr``: the learning rate."""


class SGD:
    """Stochastic gradient descent with momentum: v = momentum * v + g; parameters -= lr * v.

    The learning rate stands outside of v (Goyal et al. 2017, arXiv:1706.02677, equation 9), so that it
    may change from step to step without a correction of v.
    """

    name = "sgd"

    def __init__(self, items: int, dtype: npt.DTypeLike, momentum: float = 0.9) -> None:
        """State for ``items`` parameters of ``dtype``."""
        self._momentum = momentum
        self.state: dict[str, Array] = {"velocity": np.zeros(items, dtype)}
        self._scratch: Array = np.empty(min(items, _BLOCK_ITEMS), dtype)

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """One step of the rule above."""
        velocities = self.state["velocity"]
        for block in _blocks(parameters.size):
            velocity = velocities[block]
            velocity *= self._momentum
            velocity += gradients[block]
            change = np.multiply(velocity, lr, out=self._scratch[: velocity.size])
            parameters[block] -= change


class Adadelta:
    """M. D. Zeiler, "ADADELTA: an adaptive learning rate method" (arXiv:1212.5701), and a learning rate.

    a = rho a + (1 - rho) g^2; d = g sqrt(u + eps) / sqrt(a + eps); u = rho u + (1 - rho) d^2;
    parameters -= lr * d. As keras.optimizers.Adadelta (rho .95, epsilon 1e-7); lr 1 is the paper's.
    """

    name = "adadelta"

    def __init__(self, items: int, dtype: npt.DTypeLike, rho: float = 0.95, epsilon: float = 1e-7) -> None:
        """State for ``items`` parameters of ``dtype``."""
        self._rho = rho
        self._epsilon = epsilon
        self.state: dict[str, Array] = {
            "squared_gradients": np.zeros(items, dtype),
            "squared_changes": np.zeros(items, dtype),
        }
        self._scratch: Array = np.empty((2, min(items, _BLOCK_ITEMS)), dtype)

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """One step of the rule above."""
        for block in _blocks(parameters.size):
            g = gradients[block]
            a = self.state["squared_gradients"][block]
            u = self.state["squared_changes"][block]
            d, other = self._scratch[0, : g.size], self._scratch[1, : g.size]
            self._decay_towards_square(a, g, other)
            np.add(u, self._epsilon, out=d)
            np.add(a, self._epsilon, out=other)
            d /= other
            np.sqrt(d, out=d)
            d *= g
            self._decay_towards_square(u, d, other)
            d *= lr
            parameters[block] -= d

    def _decay_towards_square(self, average: Array, values: Array, scratch: Array) -> None:
        np.multiply(values, values, out=scratch)
        scratch *= 1 - self._rho
        average *= self._rho
        average += scratch


def _blocks(items: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK_ITEMS) for start in range(0, items, _BLOCK_ITEMS))


OPTIMIZERS: dict[str, Callable[[int, npt.DTypeLike], Optimizer]] = {SGD.name: SGD, Adadelta.name: Adadelta}
