"""Tensor fusion: the gradients of many layers in one message. Pure; the same on every rank.

All gradients lie in one flat buffer, and a message of neighbouring tensors is a part of it, not a copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..engine import Engine, Tensor
from ..timeline_writer import COMPUTING, Timeline, begins, ends


@dataclass(frozen=True)
class Bucket:
    """Neighbouring tensors that are summed in one message."""

    part: slice
    tensors: tuple[Tensor, ...]


def buckets(tensors: Sequence[Tensor], item_bytes: int, limit_bytes: int) -> list[Bucket]:
    """``tensors`` (neighbours, in the order of their buffer) in messages of at most ``limit_bytes``.

    From the last tensor to the first, as back-propagation gives them. A tensor that is longer than the limit
    goes alone: with 0, each does.
    """
    groups: list[list[Tensor]] = []
    for tensor in reversed(tensors):
        if groups and (groups[-1][0].part.stop - tensor.part.start) * item_bytes <= limit_bytes:
            groups[-1].append(tensor)
        else:
            groups.append([tensor])
    return [Bucket(slice(group[-1].part.start, group[0].part.stop), tuple(group)) for group in groups]


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
            facts = {"dtype": str(engine.gradients.dtype), "shape": str(list(tensor.shape))}
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
