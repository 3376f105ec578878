"""Sums of all ranks' gradients in a step, by ``--comm``: only here does computing meet communicating."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ..allreduce import Algorithm, Comm, when_made
from ..engine import Engine, Images, Labels, Sums
from ..run_options import Options
from ..timeline_writer import Timeline


class Exchange(ABC):
    """Gradients of all ranks, step by step. Making one is collective, and so is every call."""

    communication_s = 0.0
    """Seconds so far in which this rank only communicated, waiting for slower ranks included."""
    overlapped_s: float | None = None
    """Seconds so far of communication hidden behind computing; None: not known."""
    messages: int | None = None
    """Sums over the ranks so far, of one tensor or of many fused; None: not known."""

    allreduce: Algorithm | None = None
    """The allreduce that sums; None: that of another project."""

    @abstractmethod
    def gradients(self, images: Images, labels: Labels, step: int) -> Sums:
        """Leave the sum of all ranks' gradients in the engine; return this rank's loss and right answers.

        ``images`` are all of this rank's images in the global ``step``: those of `micro_batches`, maybe none.
        """

    @abstractmethod
    def close(self) -> None:
        """Free what was taken; the engine's gradients stay readable."""


class MicroBatch(NamedTuple):
    """A part of the batch that an engine computes at once."""

    images: Images
    labels: Labels
    step: int
    """The number that the engine gets as its step: another one for every micro-batch of the run."""


def micro_batches(images: Images, labels: Labels, step: int, options: Options) -> Iterator[MicroBatch]:
    """A rank's images of a step, at most ``--batch-size`` at a time; one empty micro-batch where it has none.

    Their gradients add up (``--accumulate``) and are exchanged once.
    """
    size = options.batch_size
    for index, start in enumerate(range(0, max(1, len(images)), size)):
        part = slice(start, start + size)
        yield MicroBatch(images[part], labels[part], step * options.accumulate + index)


Make = Callable[[Comm, Options, Engine, Timeline | None], Exchange]
"""A rank without a timeline passes None."""

COMMS: Mapping[str, Make] = {
    "ddp": when_made(__name__, "torch_exchange", "DdpExchange"),
    "horovod": when_made(__name__, "torch_exchange", "HorovodExchange"),
    "ring": when_made(__name__, "gradient_exchange", "GradientExchange"),
}
"""By the name that ``--comm`` takes."""
