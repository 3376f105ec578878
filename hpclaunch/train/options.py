"""The settings of a training run, checked before anything starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from .errors import BadRequestError

# model -> the optimiser it trains with unless told otherwise, and the learning rates per optimiser.
# Chosen on MNIST for three epochs of 64 images a rank with 1, 2 and 4 ranks.
DEFAULT_OPTIMIZER = {"mlp": "sgd", "cnn": "adadelta"}
DEFAULT_LR = {
    ("mlp", "sgd"): 0.03,
    ("mlp", "adadelta"): 1.0,
    ("cnn", "sgd"): 0.03,
    ("cnn", "adadelta"): 1.0,
}


@dataclass(frozen=True)
class Options:
    """What a run does; every rank has the same."""

    model: str = "mlp"
    optimizer: str = "sgd"
    lr: float = 0.03
    epochs: int = 3
    batch_size: int = 64
    """Images a rank and step."""
    seed: int = 0
    engine: str = "numpy"
    allreduce: str = "ring"
    dataset: str = "auto"
    data_dir: Path | None = None
    checkpoint_dir: Path | None = None
    checkpoint_every: int | None = None
    """Steps between checkpoints beside those at the end of each epoch."""
    keep: int = 3
    """Checkpoints of a run that stay; older ones are removed."""
    resume: bool = False

    def check(self) -> None:
        """Raise BadRequestError, naming the option, where a value cannot be."""
        least = {"epochs": 1, "batch_size": 1, "keep": 1, "checkpoint_every": 1, "seed": 0}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is not None and value < smallest:
                option = f"--{name.replace('_', '-')}"
                raise BadRequestError(f"{option} {value}: too small", f"Use {smallest} or more.")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise BadRequestError(
                f"--lr {self.lr}: not a learning rate", "Use a number above 0, such as 0.03."
            )
        if self.checkpoint_dir is None and (self.resume or self.checkpoint_every):
            option = "--resume" if self.resume else "--checkpoint-every"
            raise BadRequestError(f"{option} without --checkpoint-dir", "Name the folder of the checkpoints.")
