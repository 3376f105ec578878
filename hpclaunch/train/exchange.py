"""How the gradients of a step come from all ranks. The only place where computing meets communicating."""

from __future__ import annotations

import time

from .allreduce import Allreduce
from .engine import Engine, Images, Labels, Sums


class GradientExchange:
    """Computes a rank's gradients and sums them over the ranks in one message."""

    def __init__(self, engine: Engine, allreduce: Allreduce) -> None:
        self._engine = engine
        self._allreduce = allreduce
        self.communication_s = 0.0
        """Time in the allreduce so far, waiting for slower ranks included."""

    @property
    def bytes_sent(self) -> int:
        """Gradient bytes that this rank has sent so far."""
        return self._allreduce.bytes_sent

    def gradients(self, images: Images, labels: Labels, step: int) -> Sums:
        """Leave the sum of all ranks' gradients in the engine; return this rank's loss and right answers."""
        sums = self._engine.compute_gradients(images, labels, step)
        start = time.perf_counter()
        self._allreduce.sum(self._engine.gradients)
        self.communication_s += time.perf_counter() - start
        return sums
