"""An exchange on a timeline, with the names of Horovod: one lane per tensor, and one for computing."""

from ..engine import Engine
from ..timeline_writer import COMPUTING, Timeline, begins, ends
from .tensor_fusion import Bucket, shape_of


class Phases:
    """Per tensor and step: NEGOTIATE_ALLREDUCE while a gradient that is ready waits for its message to begin,
    ALLREDUCE, and in it the algorithm, such as RING_ALLREDUCE; tensors of one message have the same times.

    Nothing is copied into a fusion buffer, so Horovod's MEMCPY phases have nothing to show.
    """

    def __init__(self, timeline: Timeline, engine: Engine, algorithm: str) -> None:
        """``algorithm``: as ``--allreduce`` names it."""
        self._timeline = timeline
        self._tensors = engine.tensors
        self._computing = timeline.lane(COMPUTING)
        self._ready_at: dict[str, int] = {}
        self._events: dict[str, str] = {}  # of a tensor in a step, without times: formatting is expensive
        inner = f"{algorithm.upper().replace('-', '_')}_ALLREDUCE"
        for tensor in engine.tensors:
            lane = timeline.lane(tensor.name)
            facts = {"dtype": str(engine.gradients.dtype), "shape": str(list(shape_of(tensor)))}
            waits = [begins(lane, "NEGOTIATE_ALLREDUCE"), ends(lane)]
            sums = [begins(lane, "ALLREDUCE"), begins(lane, inner), ends(lane), ends(lane, facts)]
            self._events[tensor.name] = ",".join([*waits, *sums])

    def buffer(self, start: float, stop: float) -> None:
        """The memory for all gradients was taken."""
        for tensor in self._tensors:
            self._timeline.phase(self._timeline.lane(tensor.name), "INIT_FUSION_BUFFER", start, stop)

    def computed(self, start: float, backward: float | None, stop: float) -> None:
        """A micro-batch; its back-propagation began at ``backward``, None: not reported."""
        if backward is None:
            self._timeline.phase(self._computing, "FORWARD_BACKWARD", start, stop)
        else:
            self._timeline.phase(self._computing, "FORWARD", start, backward)
            self._timeline.phase(self._computing, "BACKWARD", backward, stop)

    def ready(self, part: slice, at: float) -> None:
        """Gradients may be sent."""
        now = self._timeline.microseconds(at)
        for tensor in self._tensors:
            if part.start <= tensor.part.start < part.stop:
                self._ready_at[tensor.name] = now

    def message(self, bucket: Bucket, start: float, stop: float) -> None:
        """One sum over the ranks."""
        began, ended = self._timeline.microseconds(start), self._timeline.microseconds(stop)
        times = (began, began, began, ended, ended)
        for tensor in bucket.tensors:
            ready = self._ready_at[tensor.name]
            self._timeline.add(self._events[tensor.name] % (ready, *times))
