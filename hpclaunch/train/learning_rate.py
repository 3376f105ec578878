"""The learning rate as a function of how far the training is: scaling, warm-up, decay. Pure.

Time is counted in epochs, so a schedule does not depend on the steps of an epoch. The momentum correction of
Goyal et al. 2017 (arXiv:1706.02677, section 3: v times new rate / old rate) is built in: no optimiser here
includes the rate in its momentum (their equation 9), which is the same.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .run_errors import BadRequestError

DEFAULT_WARMUP_EPOCHS = 3.0
"""The longest warm-up by default; a short run gets a third of its epochs, with steps a sixth."""

SCALINGS: Mapping[str, Callable[[int], float]] = {
    "none": lambda ranks: 1.0,
    "linear": lambda ranks: float(ranks),  # Goyal et al. 2017
    "sqrt": lambda ranks: math.sqrt(ranks),  # Krizhevsky 2014, arXiv:1404.5997
}
"""The factor of a base rate for a number of ranks, and so for the images of a step."""

_STEPS = (30 / 90, 60 / 90, 80 / 90)  # of the run; the rate falls tenfold at each (Goyal et al. 2017)
_POWER = 2  # You et al. 2017, arXiv:1708.03888
_LAST_SHARE = 0.01  # of the rate, at the end of an exponential decay

DECAYS: Mapping[str, Callable[[float], float]] = {
    "none": lambda share: 1.0,
    "polynomial": lambda share: (1 - share) ** _POWER,
    "step": lambda share: float(0.1 ** sum(share >= step for step in _STEPS)),
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,  # Loshchilov and Hutter, arXiv:1608.03983
    "exponential": lambda share: float(_LAST_SHARE**share),
}
"""The factor of the rate after a share (0..1) of the epochs: "step" counts all epochs, the other decays count
those after the warm-up."""


def default_warmup(epochs: int, decay: str) -> float:
    """Epochs of warm-up to a scaled rate by default: as many as leave it most of the run."""
    return min(DEFAULT_WARMUP_EPOCHS, epochs * (_STEPS[0] / 2 if decay == "step" else 1 / 3))


@dataclass(frozen=True)
class Schedule:
    """From ``base`` to ``base * scale`` evenly over the first ``warmup_epochs``, then down by ``decay``."""

    base: float
    scale: float
    warmup_epochs: float
    decay: str
    epochs: int

    @property
    def peak(self) -> float:
        """The scaled rate, which the warm-up ends with and the decay begins with."""
        return self.base * self.scale

    def rate(self, epoch: float) -> float:
        """The learning rate after ``epoch`` epochs (0 <= epoch < epochs), a fraction in the middle of one."""
        if epoch < self.warmup_epochs:
            return self.base * (1 + (self.scale - 1) * epoch / self.warmup_epochs)
        start = 0.0 if self.decay == "step" else self.warmup_epochs
        return self.peak * DECAYS[self.decay]((epoch - start) / (self.epochs - start))

    def check(self, steps_per_epoch: int) -> None:
        """Raise BadRequestError, with the arithmetic, where warm-up or decay do not fit the run."""
        steps = self.epochs * steps_per_epoch
        last = self.rate((steps - 1) / steps_per_epoch)
        values = {"schedule": self, "steps": steps_per_epoch, "last": last}
        first = math.ceil(self.warmup_epochs * steps_per_epoch)  # step with the scaled rate, counted from 0
        usual = default_warmup(self.epochs, self.decay)
        if first >= steps and self.warmup_epochs > usual:  # a run of one step has the first rate only
            fits = min(usual, (steps - 1) / steps_per_epoch)
            more = math.floor(self.warmup_epochs) + 1
            raise BadRequestError.of("long warm-up", more=more, fits=_down(fits), **values)
        falls = _STEPS[0] * self.epochs
        if self.decay == "step" and first >= falls * steps_per_epoch:
            values |= {"more": math.floor(self.warmup_epochs / _STEPS[0]) + 1, "falls": falls}
            raise BadRequestError.of("decay in the warm-up", fits=_down(falls / 2), **values)
        if self.decay != "none" and last >= self.peak:
            raise BadRequestError.of("no decay", **values)


def _down(epochs: float) -> str:
    """Rounded down to hundredths."""
    return f"{math.floor(epochs * 100) / 100:g}"
