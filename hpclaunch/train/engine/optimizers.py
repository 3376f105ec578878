"""Optimisers on flat buffers, in place; their state is plain arrays, so that a checkpoint can contain it.

The arrays are numpy's, or tensors of torch on a device: `Optimizer.move`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .layers import Array

# A block of all arrays of a step stays in a core's second-level cache from one operation to the next.
_BLOCK_ITEMS = 1 << 14


class Optimizer(ABC):
    """A rule that changes parameters by their gradient: its state, and scratch memory."""

    name: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]]
    """Of what the rule stores between steps, as long as the parameters: the names."""
    start = 0.0
    """The first value of these arrays."""
    scratch_rows = 1

    def __init__(self, items: int, dtype: npt.DTypeLike, parts: Sequence[slice] = ()) -> None:
        """``items``: parameters, of ``dtype``; ``parts``: where each layer's stand, for `LARS`."""
        self.state: dict[str, Array] = {name: np.full(items, self.start, dtype) for name in self.arrays}
        """The arrays that the rule stores between steps, by name."""
        self._maths: Any = np
        self._block_items = _BLOCK_ITEMS
        self._scratch: Array = np.empty((self.scratch_rows, min(items, _BLOCK_ITEMS)), dtype)
        self._items = items
        self._parts = parts

    @abstractmethod
    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """Change ``parameters`` in place by the mean ``gradients``, which stay; ``lr``: the learning rate."""

    def move(self, maths: Any, place: Callable[[Array], Any]) -> None:
        """Put the state where ``place`` puts an array, and work with the functions of the module ``maths``.

        Those are numpy's ``add``, ``multiply``, ``divide``, ``sqrt`` and ``linalg.norm``, as torch has them.
        They work on whole arrays: there every operation costs a start, and no small cache helps.
        """
        self._maths, self._block_items = maths, self._items
        self.state = {name: place(array) for name, array in self.state.items()}
        self._scratch = place(np.empty((len(self._scratch), self._items), self._scratch.dtype))

    def _blocks(self) -> Iterator[slice]:
        return (slice(start, start + self._block_items) for start in range(0, self._items, self._block_items))

    def _step_by_root(self, p: Array, g: Array, a: Array, epsilon: float, lr: float, scratch: Array) -> None:
        """``p -= lr g / sqrt(a + epsilon)``."""
        self._maths.add(a, epsilon, out=scratch)
        self._maths.sqrt(scratch, out=scratch)
        self._maths.divide(g, scratch, out=scratch)
        scratch *= lr
        p -= scratch


class SGD(Optimizer):
    """Stochastic gradient descent with momentum: v = momentum * v + g; parameters -= lr * v.

    The learning rate stands outside of v (Goyal et al. 2017, arXiv:1706.02677, equation 9), so that it
    may change from step to step without a correction of v.
    """

    name = "sgd"
    arrays = ("velocity",)
    momentum = 0.9

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """One step of the rule above."""
        velocities = self.state["velocity"]
        for block in self._blocks():
            velocity = velocities[block]
            velocity *= self.momentum
            velocity += gradients[block]
            change = self._maths.multiply(velocity, lr, out=self._scratch[0, : len(velocity)])
            parameters[block] -= change


class Adadelta(Optimizer):
    """M. D. Zeiler, "ADADELTA: an adaptive learning rate method" (arXiv:1212.5701), and a learning rate.

    a = rho a + (1 - rho) g^2; d = g sqrt(u + eps) / sqrt(a + eps); u = rho u + (1 - rho) d^2;
    parameters -= lr * d. As keras.optimizers.Adadelta (rho .95, epsilon 1e-7); lr 1 is the paper's.
    """

    name = "adadelta"
    arrays = ("squared_gradients", "squared_changes")
    scratch_rows = 2
    rho, epsilon = 0.95, 1e-7

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """One step of the rule above."""
        for block in self._blocks():
            g = gradients[block]
            a = self.state["squared_gradients"][block]
            u = self.state["squared_changes"][block]
            d, other = self._scratch[0, : len(g)], self._scratch[1, : len(g)]
            self._decay_towards_square(a, g, other)
            self._maths.add(u, self.epsilon, out=d)
            self._maths.add(a, self.epsilon, out=other)
            d /= other
            self._maths.sqrt(d, out=d)
            d *= g
            self._decay_towards_square(u, d, other)
            d *= lr
            parameters[block] -= d

    def _decay_towards_square(self, average: Array, values: Array, scratch: Array) -> None:
        self._maths.multiply(values, values, out=scratch)
        scratch *= 1 - self.rho
        average *= self.rho
        average += scratch


class Adam(Optimizer):
    """D. P. Kingma, J. Ba, "Adam" (arXiv:1412.6980), in the form of its section 2's last paragraph.

    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; after t steps
    parameters -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps). As keras.optimizers.Adam.
    """

    name = "adam"
    arrays = ("first_moments", "second_moments")
    scratch_rows = 2
    betas, epsilon = (0.9, 0.999), 1e-7

    def __init__(self, items: int, dtype: npt.DTypeLike, parts: Sequence[slice] = ()) -> None:
        super().__init__(items, dtype, parts)
        self.state["steps"] = np.zeros(1, np.float64)

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """One step of the rule above."""
        beta_1, beta_2 = self.betas
        self.state["steps"] += 1
        steps = float(self.state["steps"][0])
        rate = lr * math.sqrt(1 - beta_2**steps) / (1 - beta_1**steps)
        for block in self._blocks():
            g = gradients[block]
            m, v = self.state["first_moments"][block], self.state["second_moments"][block]
            change, other = self._scratch[0, : len(g)], self._scratch[1, : len(g)]
            self._maths.multiply(g, 1 - beta_1, out=other)
            m *= beta_1
            m += other
            self._maths.multiply(g, g, out=other)
            other *= 1 - beta_2
            v *= beta_2
            v += other
            self._maths.sqrt(v, out=other)
            other += self.epsilon
            self._maths.divide(m, other, out=change)
            change *= rate
            parameters[block] -= change


class RMSProp(Optimizer):
    """T. Tieleman, G. Hinton, lecture 6.5 of "Neural Networks for Machine Learning" (2012).

    a = rho a + (1 - rho) g^2; parameters -= lr g / sqrt(a + eps). As keras.optimizers.RMSprop.
    """

    name = "rmsprop"
    arrays = ("squared_gradients",)
    rho, epsilon = 0.9, 1e-7

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """One step of the rule above."""
        for block in self._blocks():
            g, a = gradients[block], self.state["squared_gradients"][block]
            scratch = self._maths.multiply(g, g, out=self._scratch[0, : len(g)])
            scratch *= 1 - self.rho
            a *= self.rho
            a += scratch
            self._step_by_root(parameters[block], g, a, self.epsilon, lr, scratch)


class Adagrad(Optimizer):
    """J. Duchi et al., "Adaptive subgradient methods" (JMLR 12, 2011).

    a += g^2, from 0.1 on; parameters -= lr g / sqrt(a + eps). As keras.optimizers.Adagrad.
    """

    name = "adagrad"
    arrays = ("squared_gradients",)
    start, epsilon = 0.1, 1e-7

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """One step of the rule above."""
        for block in self._blocks():
            g, a = gradients[block], self.state["squared_gradients"][block]
            scratch = self._maths.multiply(g, g, out=self._scratch[0, : len(g)])
            a += scratch
            self._step_by_root(parameters[block], g, a, self.epsilon, lr, scratch)


class LARS(Optimizer):
    """Y. You, I. Gitman, B. Ginsburg, "Large batch training of convolutional networks" (arXiv:1708.03888).

    For the parameters w and gradients g of each layer apart:
    local = trust |w| / (|g| + decay |w|); v = momentum v + local (g + decay w); w -= lr v.
    Where |w| or |g| is 0 (biases before the first step), local is 1. The paper's algorithm 1 has lr inside of
    v: the same while lr stays; outside, v needs no correction where lr changes, as in `SGD`.
    """

    name = "lars"
    arrays = ("velocity",)
    scratch_rows = 0
    momentum, weight_decay, trust = 0.9, 5e-4, 1e-3

    def step(self, parameters: Array, gradients: Array, lr: float) -> None:
        """One step of the rule above."""
        for part in self._parts:
            w, g, v = parameters[part], gradients[part], self.state["velocity"][part]
            local = self._local_rate(float(self._maths.linalg.norm(w)), float(self._maths.linalg.norm(g)))
            v *= self.momentum
            v += local * (g + self.weight_decay * w)
            w -= lr * v

    def _local_rate(self, weights: float, gradients: float) -> float:
        if weights == 0 or gradients == 0:
            return 1.0
        return self.trust * weights / (gradients + self.weight_decay * weights)


OPTIMIZERS: dict[str, type[Optimizer]] = {
    kind.name: kind for kind in (SGD, Adadelta, Adam, RMSProp, Adagrad, LARS)
}
