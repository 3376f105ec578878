"""Optimisers on flat buffers, in place; their state is plain arrays, so that a checkpoint can contain it.

The arrays are numpy's, or tensors of torch on a device (`Optimizer.move`): rules use what both have.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .layers import Array

# A block of all arrays of a step stays in a core's second-level cache from one operation to the next.
_BLOCK_ITEMS = 1 << 13


class Optimizer(ABC):
    """A rule that changes parameters by their gradient, and what it stores between steps."""

    name: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]]
    """Of what the rule stores between steps, as long as the parameters: the names."""
    start = 0.0
    """The first value of these arrays."""
    by_layer = False
    """Whether the rule needs each layer as a whole."""

    def __init__(self, items: int, dtype: npt.DTypeLike, parts: Sequence[slice] = ()) -> None:
        """``items``: parameters, of ``dtype``; ``parts``: where each layer's stand."""
        self.state: dict[str, Array] = {name: np.full(items, self.start, dtype) for name in self.arrays}
        """The arrays that the rule stores between steps, by name."""
        blocks = [slice(start, start + _BLOCK_ITEMS) for start in range(0, items, _BLOCK_ITEMS)]
        self._blocks = parts if self.by_layer else blocks

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """Change ``parameters`` in place by the mean ``gradients``, which stay; ``lr``: the learning rate."""
        for block in self._blocks:
            stored = [self.state[name][block] for name in self.arrays]
            parameters[block] -= lr * self._change(parameters[block], gradients[block], *stored)

    @abstractmethod
    def _change(self, w: Array, g: Array, *stored: Array) -> Array:
        """Return what `step` takes off the parameters ``w`` at rate 1; ``stored``: `arrays`, in place."""

    def move(self, place: Callable[[Array], Any]) -> None:
        """Put the state where ``place`` puts an array, such as on a GPU, and work on whole arrays.

        There every operation costs a start, and no small cache helps.
        """
        self.state = {name: place(array) for name, array in self.state.items()}
        if not self.by_layer:
            self._blocks = [slice(None)]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum: v = momentum * v + g; parameters -= lr * v.

    The learning rate stands outside of v (Goyal et al. 2017, arXiv:1706.02677, equation 9), so that it
    may change from step to step without a correction of v.
    """

    name = "sgd"
    arrays = ("velocity",)
    momentum = 0.9

    def _change(self, w: Array, g: Array, *stored: Array) -> Array:
        (v,) = stored
        v *= self.momentum
        v += g
        return v


class Adadelta(Optimizer):
    """M. D. Zeiler, "ADADELTA: an adaptive learning rate method" (arXiv:1212.5701), and a learning rate.

    a = rho a + (1 - rho) g^2; d = g sqrt(u + eps) / sqrt(a + eps); u = rho u + (1 - rho) d^2;
    parameters -= lr * d. As keras.optimizers.Adadelta (rho .95, epsilon 1e-7); lr 1 is the paper's.
    """

    name = "adadelta"
    arrays = ("squared_gradients", "squared_changes")
    rho, epsilon = 0.95, 1e-7

    def _change(self, w: Array, g: Array, *stored: Array) -> Array:
        a, u = stored
        a *= self.rho
        a += g * g * (1 - self.rho)
        d = u + self.epsilon
        d /= a + self.epsilon
        d **= 0.5
        d *= g
        u *= self.rho
        u += d * d * (1 - self.rho)
        return d


class Adam(Optimizer):
    """D. P. Kingma, J. Ba, "Adam" (arXiv:1412.6980), in the form of its section 2's last paragraph.

    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; after t steps
    parameters -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps). As keras.optimizers.Adam.
    """

    name = "adam"
    arrays = ("first_moments", "second_moments")
    betas, epsilon = (0.9, 0.999), 1e-7

    def __init__(self, items: int, dtype: npt.DTypeLike, parts: Sequence[slice] = ()) -> None:
        super().__init__(items, dtype, parts)
        self.state["steps"] = np.zeros(1, np.float64)

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """As the other rules, with both moments corrected for their start at 0."""
        self.state["steps"] += 1
        first, second = (1 - beta ** float(self.state["steps"][0]) for beta in self.betas)
        super().step(parameters, gradients, lr * math.sqrt(second) / first)

    def _change(self, w: Array, g: Array, *stored: Array) -> Array:
        m, v = stored
        beta_1, beta_2 = self.betas
        m *= beta_1
        m += g * (1 - beta_1)
        v *= beta_2
        v += g * g * (1 - beta_2)
        change: Array = m / (v**0.5 + self.epsilon)
        return change


class RMSProp(Optimizer):
    """T. Tieleman, G. Hinton, lecture 6.5 of "Neural Networks for Machine Learning" (2012).

    a = rho a + (1 - rho) g^2; parameters -= lr g / sqrt(a + eps). As keras.optimizers.RMSprop.
    """

    name = "rmsprop"
    arrays = ("squared_gradients",)
    rho, epsilon = 0.9, 1e-7

    def _change(self, w: Array, g: Array, *stored: Array) -> Array:
        (a,) = stored
        a *= self.rho
        a += g * g * (1 - self.rho)
        change: Array = g / (a + self.epsilon) ** 0.5
        return change


class Adagrad(Optimizer):
    """J. Duchi et al., "Adaptive subgradient methods" (JMLR 12, 2011).

    a += g^2, from 0.1 on; parameters -= lr g / sqrt(a + eps). As keras.optimizers.Adagrad.
    """

    name = "adagrad"
    arrays = ("squared_gradients",)
    start, epsilon = 0.1, 1e-7

    def _change(self, w: Array, g: Array, *stored: Array) -> Array:
        (a,) = stored
        a += g * g
        change: Array = g / (a + self.epsilon) ** 0.5
        return change


class LARS(Optimizer):
    """Y. You, I. Gitman, B. Ginsburg, "Large batch training of convolutional networks" (arXiv:1708.03888).

    For the parameters w and gradients g of each layer apart:
    local = trust |w| / (|g| + decay |w|); v = momentum v + local (g + decay w); w -= lr v.
    Where |w| or |g| is 0 (biases before the first step), local is 1. The paper's algorithm 1 has lr inside of
    v: the same while lr stays; outside, v needs no correction where lr changes, as in `SGD`.
    """

    name = "lars"
    arrays = ("velocity",)
    by_layer = True
    momentum, weight_decay, trust = 0.9, 5e-4, 1e-3

    def _change(self, w: Array, g: Array, *stored: Array) -> Array:
        (v,) = stored
        weights, slope = float(w @ w) ** 0.5, float(g @ g) ** 0.5
        v *= self.momentum
        local = self.trust * weights / (slope + self.weight_decay * weights) if weights and slope else 1.0
        v += local * (g + self.weight_decay * w)
        return v


OPTIMIZERS: dict[str, type[Optimizer]] = {
    kind.name: kind for kind in (SGD, Adadelta, Adam, RMSProp, Adagrad, LARS)
}
