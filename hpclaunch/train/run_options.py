"""The settings of a training run, checked before anything starts."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .learning_rate import SCALINGS, Schedule, default_warmup
from .run_errors import BadRequestError

COMPRESSIONS = ("none", "fp16", "bf16")
_ABLE = ("ring", "hierarchical")


def check_compression(text: str, allreduce: str | None) -> None:
    """BadRequestError where ``text`` is none, or ``allreduce`` (None: the default) does not support it."""
    if text not in COMPRESSIONS:
        message = f"--compression {text}: not a compression"
        raise BadRequestError(message, f"Use {', '.join(COMPRESSIONS[:-1])} or {COMPRESSIONS[-1]}.")
    if text != "none" and allreduce is not None and allreduce not in _ABLE:
        able = " or ".join(_ABLE)
        raise BadRequestError.of("no compression", text=text, allreduce=allreduce, able=able)


# By model the default optimiser, and by optimiser the learning rate, which is good for both models.
# Chosen on MNIST for three epochs of 64 images per rank with 1, 2 and 4 ranks.
DEFAULT_OPTIMIZER = {"mlp": "sgd", "cnn": "adadelta"}
DEFAULT_LR = {"sgd": 0.03, "adadelta": 1.0, "adam": 0.001, "rmsprop": 0.001, "adagrad": 0.01, "lars": 5.0}

_LEAST = {
    **dict.fromkeys(("epochs", "batch_size", "accumulate", "keep", "checkpoint_every", "timeline_steps"), 1),
    **dict.fromkeys(("timeline_after", "seed", "fusion_bytes"), 0),
}

OVERLAP_FUSION_BYTES = 256 << 10
"""Messages of this length are about as fast per byte as longer ones; a single one overlaps with nothing."""


@dataclass(frozen=True)
class Options:
    """The options of a run, as ``options.json`` explains them; every rank has the same."""

    model: str = "mlp"
    optimizer: str = "sgd"
    lr: float = 0.03
    lr_scaling: str = "none"
    warmup_epochs: float | None = None
    """None: `default_warmup`."""
    decay: str = "none"
    epochs: int = 3
    batch_size: int = 64
    accumulate: int = 1
    seed: int = 0
    engine: str = "numpy"
    comm: str = "ring"
    allreduce: str | None = None
    """None: the default of `resolve_allreduce` for one node or several."""
    compression: str = "none"
    fusion_bytes: int = 128 << 20
    overlap: bool = False
    timeline: Path | None = None
    timeline_ranks: str = "0"
    timeline_steps: int | None = None
    """How many steps are on the timeline; None: all after ``timeline_after``."""
    timeline_after: int = 0
    dataset: str = "auto"
    data_dir: Path | None = None
    reading: str = "broadcast"
    prefetch: bool | None = None
    """Whether a thread prepares batches; None: only where they come from a file."""
    checkpoint_dir: Path | None = None
    checkpoint_every: int | None = None
    keep: int = 3
    keep_best: bool = False
    resume: bool = False
    deterministic: bool = False
    baseline: bool = False
    log_json: Path | None = None
    target_accuracy: float | None = None

    @property
    def step_images(self) -> int:
        """Images per rank and step."""
        return self.batch_size * self.accumulate

    @property
    def prefetches(self) -> bool:
        """Whether a thread prepares batches: those in memory are gathered faster than passed to a thread."""
        return self.reading == "shard" if self.prefetch is None else self.prefetch

    def schedule(self, ranks: int) -> Schedule:
        """The learning rate over the run."""
        scale, warmup = SCALINGS[self.lr_scaling](ranks), self.warmup_epochs
        if warmup is None:
            warmup = default_warmup(self.epochs, self.decay) if scale != 1 else 0.0
        return Schedule(self.lr, scale, warmup, self.decay, self.epochs)

    def check(self) -> None:
        """Raise BadRequestError, naming the option, for an impossible value or combination."""
        for name, smallest in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < smallest:
                option = f"--{name.replace('_', '-')}"
                raise BadRequestError(f"{option} {value}: too small", f"Use {smallest} or more.")
        self._check_fractions()
        check_compression(self.compression, self.allreduce)
        for wrong, case in self._contradictions():
            if wrong:
                raise BadRequestError.of(case, options=self)

    def _check_fractions(self) -> None:
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise BadRequestError(f"--lr {self.lr}: not a learning rate", "Use a number above 0.")
        warmup, target = self.warmup_epochs, self.target_accuracy
        if warmup is not None and not (math.isfinite(warmup) and warmup >= 0):
            raise BadRequestError(f"--warmup-epochs {warmup}: not a number of epochs", "Use 0 or more.")
        if target is not None and not 0 < target <= 1:
            raise BadRequestError(f"--target-accuracy {target}: not a share of 1", "Use one such as 0.99.")

    def _contradictions(self) -> Iterator[tuple[object, str]]:
        """Yield whether two options contradict each other, and the case of ``texts.json``."""
        yield self.warmup_epochs and self.lr_scaling == "none", "warm-up without scaling"
        yield self.comm in ("ddp", "horovod") and self.engine != "torch", "torch's tensors without torch"
        yield self.compression != "none" and self.comm != "ring", "compression without ring"
        yield self.deterministic and self.comm == "horovod", "deterministic Horovod"
        lacks_file = self.timeline is None
        yield lacks_file and self.timeline_ranks == "all", "ranks without timeline"
        some = self.timeline_steps is not None or self.timeline_after > 0
        yield lacks_file and some, "steps without timeline"
        lacks_folder = self.checkpoint_dir is None
        yield lacks_folder and self.resume, "resume without folder"
        yield lacks_folder and self.checkpoint_every, "checkpoints without folder"
        yield lacks_folder and self.keep_best, "best without folder"
