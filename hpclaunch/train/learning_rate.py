"""The learning rate as a function of how far the training is: scaling, warm-up, decay. Pure.

Time counts in epochs, so a schedule does not depend on how an epoch is cut into steps. Momentum correction
(Goyal et al. 2017, arXiv:1706.02677, section 3: where the rate stands inside of the momentum, v grows by new
rate / old rate when it changes) is built in: every optimiser of this package keeps the rate outside of its
momentum (their equation 9), which is the same thing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

DEFAULT_WARMUP_EPOCHS = 3.0

SCALINGS: Mapping[str, Callable[[int], float]] = {
    "none": lambda ranks: 1.0,
    "linear": lambda ranks: float(ranks),  # Goyal et al. 2017
    "sqrt": lambda ranks: math.sqrt(ranks),  # Krizhevsky 2014, arXiv:1404.5997
}
"""By what a base rate grows with the number of ranks, and so with the images of a step."""

_STEPS = (30 / 90, 60 / 90, 80 / 90)  # of the run; the rate falls tenfold at each (Goyal et al. 2017)
_POWER = 2  # You et al. 2017, arXiv:1708.03888


def _steps(share: float) -> float:
    return float(0.1 ** sum(share >= step for step in _STEPS))


DECAYS: Mapping[str, Callable[[float], float]] = {
    "none": lambda share: 1.0,
    "polynomial": lambda share: (1 - share) ** _POWER,
    "step": _steps,
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,  # Loshchilov and Hutter, arXiv:1608.03983
}
"""What is left of the rate after a share (0..1) of the epochs: "step" counts all, the others those behind the
warm-up."""


@dataclass(frozen=True)
class Schedule:
    """From ``base`` to ``base * scale`` evenly over the first ``warmup_epochs``, then down by ``decay``."""

    base: float
    scale: float
    warmup_epochs: float
    decay: str
    epochs: int

    def rate(self, epoch: float) -> float:
        """The learning rate after ``epoch`` epochs (0 <= epoch < epochs), a fraction in the middle of one."""
        if epoch < self.warmup_epochs:
            return self.base * (1 + (self.scale - 1) * epoch / self.warmup_epochs)
        start = 0.0 if self.decay == "step" else self.warmup_epochs
        return self.base * self.scale * DECAYS[self.decay]((epoch - start) / (self.epochs - start))
