"""Our own exchange: the gradients of all layers in one message, by any of `ALLREDUCES`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..allreduce import ALLREDUCES
from ..engine import Engine, Images, Labels, Sums
from ..options import Options
from ..timeline import Timeline
from . import MicroBatch, micro_batches

if TYPE_CHECKING:
    from mpi4py import MPI


class GradientExchange:
    """Computes a rank's gradients where the allreduce is fastest, and sums them there."""

    def __init__(
        self, comm: MPI.Intracomm, options: Options, engine: Engine, timeline: Timeline | None = None
    ) -> None:
        """Take the memory for the engine's gradients; collective."""
        self._options = options
        self._engine = engine
        self._timeline = timeline
        self._allreduce = ALLREDUCES[options.allreduce](comm)
        engine.place_gradients(self._allreduce.buffer(engine.gradients.size, engine.gradients.dtype))
        self._held = engine.gradients[:0]
        """Gradients of the micro-batches before the last."""
        self.communication_s = 0.0
        self.overlapped_s: float | None = 0.0
        self.messages: int | None = 0

    @property
    def bytes_sent(self) -> int:
        """Gradient bytes that this rank has sent so far."""
        return self._allreduce.bytes_sent

    def gradients(self, images: Images, labels: Labels, step: int) -> Sums:
        """Compute, then sum."""
        sums = self._compute(list(micro_batches(images, labels, step, self._options)))
        start = time.perf_counter()
        self._allreduce.sum(self._engine.gradients)
        self.communication_s += time.perf_counter() - start
        return sums

    def _compute(self, batches: list[MicroBatch]) -> Sums:
        """Leave the gradients of all ``batches`` in the engine."""
        sums, gradients = Sums(), self._engine.gradients
        for index, batch in enumerate(batches):
            if index == 1:
                self._held = gradients.copy()
            elif index > 1:
                self._held += gradients
            sums += self._engine.compute_gradients(*batch)
        if len(batches) > 1:
            gradients += self._held
        return sums

    def close(self) -> None:
        """Free the buffer; the engine keeps its gradients in ordinary memory."""
        self._engine.place_gradients(self._engine.gradients.copy())
        self._allreduce.close()
