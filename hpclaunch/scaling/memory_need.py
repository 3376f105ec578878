"""The memory that training needs on each GPU: parameters, gradients, optimiser slots, saved tensors. Pure.

Libraries, workspaces and fragments of the allocator come in addition; they are not counted. ZeRO (Rajbhandari
et al. 2020, arXiv 1910.02054) divides the slots (stage 1), the gradients (2) and the parameters (3) among the
workers. Recomputation stores the input of each block and, for a moment, all tensors of one block.
"""

from collections.abc import Callable, Sequence
from itertools import islice

import msgspec

from hpclaunch.scaling.model_table import Layer, Model
from hpclaunch.scaling.strategy_costs import Division, Strategy

GIB = 1 << 30
SLOTS = {"sgd": 0, "momentum": 1, "adam": 2}
"""Optimiser -> tensors that it stores per parameter."""


class MemoryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that change the memory."""

    slots: int = 1
    zero: int = 0
    recompute: bool = False
    saved_bytes: int = 4
    """Bytes per element of the saved tensors: 2 in mixed precision."""


class MemoryNeed(msgspec.Struct, frozen=True, kw_only=True):
    """GiB on each GPU."""

    parameters: float
    gradients: float
    optimiser: float
    saved: float

    @property
    def total(self) -> float:
        """Return the sum."""
        return self.parameters + self.gradients + self.optimiser + self.saved


def memory_need(
    strategy: Strategy,
    model: Model,
    stages: Sequence[Sequence[Layer]],
    division: Division,
    options: MemoryOptions,
) -> MemoryNeed:
    """Return what the fullest GPU needs. ``stages``: those of a pipeline, else one with all layers."""
    workers = {"data": division.p, "data+filter": division.p1, "data+spatial": division.p1}.get(strategy, 1)
    parts = {"filter": division.p, "channel": division.p, "data+filter": division.p2}.get(strategy, 1)
    # Samples whose saved tensors one GPU holds; a spatial division holds a part of each.
    held = division.batch / {
        "data": division.p,
        "spatial": division.p,
        "data+spatial": division.p,
        "data+filter": division.p1,
    }.get(strategy, 1)
    needs = [_stage_need(stage, held, workers, parts, options) for stage in stages]
    return max(needs, key=lambda need: need.total)


def _stage_need(
    stage: Sequence[Layer], held: float, workers: int, parts: int, options: MemoryOptions
) -> MemoryNeed:
    weights = 4 * sum(layer.weights for layer in stage) / parts / GIB

    def divided(from_stage: int) -> float:
        return weights / (workers if options.zero >= from_stage else 1)

    saved = _recomputed(stage) if options.recompute else sum(layer.saved_bytes for layer in stage)
    return MemoryNeed(
        parameters=divided(3),
        gradients=divided(2),
        optimiser=options.slots * divided(1),
        saved=held * saved * options.saved_bytes / 4 / GIB,
    )


def _recomputed(stage: Sequence[Layer]) -> float:
    """Return the inputs of the blocks and the tensors of the largest block."""
    inputs = 0.0
    blocks: dict[str, float] = {}
    for layer in stage:
        if layer.block not in blocks:
            inputs += 4 * layer.x
        blocks[layer.block] = blocks.get(layer.block, 0.0) + layer.saved_bytes
    return inputs + max(blocks.values(), default=0.0)


def what_would_fit(
    need: Callable[[float, MemoryOptions], MemoryNeed], batch: int, options: MemoryOptions, room_gib: float
) -> tuple[str, ...]:
    """Name the changes that make the need fit. ``need``: of a batch per worker and options."""

    def fits(batch: int, **changes: object) -> bool:
        return need(batch, msgspec.structs.replace(options, **changes)).total <= room_gib

    zeros = (f"--zero {zero}" for zero in range(options.zero + 1, 4) if fits(batch, zero=zero))
    again = ["--recompute"] if not options.recompute and fits(batch, recompute=True) else []
    halves = (batch >> times for times in range(1, batch.bit_length()))
    batches = (f"--batch-per-worker {smaller}" for smaller in halves if fits(smaller))
    return (*islice(zeros, 1), *again, *islice(batches, 1))
