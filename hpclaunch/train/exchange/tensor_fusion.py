"""Tensor fusion: the gradients of many layers in one message. Pure; the same on every rank.

All gradients lie in one flat buffer, so a message of neighbouring tensors is a part of it: nothing is copied
into a fusion buffer and back, as Horovod does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..engine import Tensor


@dataclass(frozen=True)
class Bucket:
    """Neighbouring tensors that are summed in one message."""

    part: slice
    tensors: tuple[Tensor, ...]


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor, flat where the engine does not give it."""
    return (tensor.part.stop - tensor.part.start,) if tensor.shape is None else tensor.shape


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
