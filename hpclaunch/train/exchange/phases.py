"""An exchange on a timeline, in the words of Horovod: one lane a tensor, and one for what computes."""

from __future__ import annotations

import json

from ..engine import Engine
from ..timeline import COMPUTING, Timeline
from .fusion import Bucket, shape_of


class Phases:
    """Per tensor and step: NEGOTIATE_ALLREDUCE while a gradient that is ready waits for its message to begin,
    ALLREDUCE, and in it the algorithm, such as RING_ALLREDUCE; tensors of one message have the same times.

    Nothing is copied into a fusion buffer, so Horovod's MEMCPY phases have nothing to show.
    """

    def __init__(self, timeline: Timeline, engine: Engine, algorithm: str) -> None:
        """``algorithm``: as ``--allreduce`` names it."""
        self._timeline = timeline
        self._algorithm = f"{algorithm.upper().replace('-', '_')}_ALLREDUCE"
        self._lanes = {tensor.name: timeline.lane(tensor.name) for tensor in engine.tensors}
        self._tensors = engine.tensors
        self._computing = timeline.lane(COMPUTING)
        dtype = engine.gradients.dtype
        self._facts = {
            tensor.name: json.dumps({"dtype": str(dtype), "shape": str(list(shape_of(tensor)))})
            for tensor in engine.tensors
        }

    def buffer(self, start: float, stop: float) -> None:
        """The memory for all gradients was taken."""
        for lane in self._lanes.values():
            self._timeline.begin(lane, "INIT_FUSION_BUFFER", start)
            self._timeline.end(lane, stop)

    def computed(self, start: float, backward: float | None, stop: float) -> None:
        """A micro-batch; its back-propagation began at ``backward``, None where the engine does not tell."""
        parts = [("FORWARD", start, backward), ("BACKWARD", backward, stop)]
        if backward is None:
            parts = [("FORWARD_BACKWARD", start, stop)]
        for name, begin, end in parts:
            assert begin is not None and end is not None  # noqa: S101, PT018
            self._timeline.begin(self._computing, name, begin)
            self._timeline.end(self._computing, end)

    def ready(self, part: slice, at: float) -> None:
        """Gradients are ready to be summed."""
        for tensor in self._tensors:
            if part.start <= tensor.part.start < part.stop:
                self._timeline.begin(self._lanes[tensor.name], "NEGOTIATE_ALLREDUCE", at)

    def message(self, bucket: Bucket, start: float, stop: float) -> None:
        """One sum over the ranks."""
        timeline = self._timeline
        for tensor in bucket.tensors:
            lane = self._lanes[tensor.name]
            timeline.end(lane, start)
            timeline.begin(lane, "ALLREDUCE", start)
            timeline.begin(lane, self._algorithm, start)
            timeline.end(lane, stop)
            timeline.end(lane, stop, self._facts[tensor.name])
