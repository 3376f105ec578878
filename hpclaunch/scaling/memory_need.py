"""The memory that training needs on each GPU: parameters, gradients, optimiser, saved tensors, reserve. Pure.

ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054) divides the optimiser (stage 1), the gradients (2) and the
parameters (3) among the workers. Tensor parallelism, its sequence parallelism and the micro-batches that a
1F1B pipeline has under way count as in Korthikanti et al. 2022, arXiv 2205.05198. Full recomputation stores
the input of each block and, for a moment, all tensors of one block; selective recomputation drops what
attention saves of tokens x tokens.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec

from hpclaunch.amounts import grouped
from hpclaunch.package_data import package_constants
from hpclaunch.scaling.model_table import Layer
from hpclaunch.scaling.strategy_costs import Division, Strategy

GIB = 1 << 30
SLOTS = {"sgd": 0, "momentum": 1, "adam": 2}
"""Optimiser -> tensors that it stores per parameter."""
Recompute = Literal["none", "selective", "full"]
Copies = Literal["fp32", "master", "master-fp32-gradients", "deepspeed-fp16", "deepspeed-bf16", "pure"]
"""Copies of a parameter: all in fp32; half-precision parameters and gradients with a master copy and
the optimiser in fp32 (ZeRO's 16 bytes for Adam); the same with gradients in fp32 (Megatron-LM's 18);
DeepSpeed's two, of which that for bf16 has both kinds of gradients; all in bf16."""
_NEEDS = package_constants("scaling/constants.yaml", "memory")


class MemoryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that change the memory."""

    slots: int = 1
    zero: int = 0
    recompute: Recompute = "none"
    saved_bytes: int = 4
    copies: Copies = "fp32"
    sequence_parallel: bool = False
    interleave: int = 1
    reserved: bool = False


class MemoryNeed(msgspec.Struct, frozen=True, kw_only=True):
    """GiB on each GPU."""

    parameters: float
    gradients: float
    optimiser: float
    saved: float
    working: float = 0.0
    reserve: float = 0.0

    @property
    def total(self) -> float:
        """Return the sum."""
        return float(sum(msgspec.structs.astuple(self)))


def memory_need(
    strategy: Strategy, stages: Sequence[Sequence[Layer]], division: Division, options: MemoryOptions
) -> MemoryNeed:
    """Return what the fullest GPU needs. ``stages``: those of a pipeline, else one with all layers."""
    parts = {"filter": division.p, "channel": division.p, "data+filter": division.p2}.get(strategy, 1)
    hybrid = strategy in ("data+filter", "data+spatial")
    workers = division.p1 if hybrid else division.workers if strategy in ("data", "3d") else 1
    # Samples whose saved tensors one GPU holds; a spatial division holds a part of each.
    held = division.batch / (division.p if strategy in ("spatial", "data+spatial") else workers)
    if strategy in ("data", "3d"):
        held /= division.segments
    needs = []
    for number, stage in enumerate(stages):
        under_way = 1.0
        if strategy == "3d":  # the micro-batches whose tensors a stage of a 1F1B pipeline holds
            more = (len(stages) - 1) / options.interleave if options.interleave > 1 else 0.0
            under_way = min(len(stages) - number + more, float(division.segments))
        needs.append(_stage_need(stage, held, under_way, workers, parts, division, options))
    return max(needs, key=lambda need: need.total)


def _stage_need(
    stage: Sequence[Layer],
    held: float,
    under_way: float,
    workers: int,
    parts: int,
    division: Division,
    options: MemoryOptions,
) -> MemoryNeed:
    per_parameter, per_gradient, per_master, per_slot = _NEEDS.bytes[options.copies]
    twice = division.pipeline > 1
    count = sum(weights_of(layer, division.tensor, twice) for layer in stage) / parts / GIB

    def divided(from_stage: int) -> float:
        return count / (workers if options.zero >= from_stage else 1)

    stored = held * _stored(stage, under_way, division.tensor, options) / GIB
    working = held * _at_the_fullest(stage, under_way, division.tensor, options) / GIB
    if options.copies == "fp32" and options.saved_bytes == 2 and options.zero < 3:
        working += options.saved_bytes * count  # autocast keeps a half of each weight until the step's end
    if options.zero == 3 and workers > 1:
        working += _gathered(stage, division.tensor) * options.saved_bytes / GIB
    gradients = per_gradient * divided(2)
    # torch.optim sets gradients to None since 2.0: they come while the saved tensors go. What stays are the
    # buckets of several workers, sums of micro-batches, and what Megatron-LM and DeepSpeed hold.
    alone = workers == division.segments == division.pipeline == 1
    if alone and options.copies in ("fp32", "pure"):
        gradients = max(0.0, gradients - stored - working)
    return MemoryNeed(
        parameters=per_parameter * divided(3),
        gradients=gradients,
        optimiser=(per_master + per_slot * options.slots) * divided(1),
        saved=stored,
        working=working,
        reserve=_reserve(stored + working, options),
    )


def _reserve(tensors: float, options: MemoryOptions) -> float:
    if not options.reserved:
        return 0.0
    buckets = options.copies.startswith("deepspeed") and options.zero in (1, 2)
    return float(_NEEDS.context_gib + _NEEDS.fragments * tensors + buckets * _NEEDS.buckets_gib)


def _stored(stage: Sequence[Layer], under_way: float, tensor: int, options: MemoryOptions) -> float:
    blocks = by_block(stage)
    saved = [sum(_saved(layer, tensor, options) for layer in some) for some in blocks.values()]
    if options.recompute != "full":
        return under_way * sum(saved)
    inputs = sum(layers[0].x for layers in blocks.values()) * options.saved_bytes
    return under_way * inputs / (tensor if options.sequence_parallel else 1) + max(saved, default=0)


def _at_the_fullest(stage: Sequence[Layer], under_way: float, tensor: int, options: MemoryOptions) -> float:
    """Return what the fullest moment needs in addition to all that is stored.

    When the first layers of a network go back, the later ones have none of theirs any more.
    """
    moments = [_moment(layer, tensor, options) for layer in stage]
    if options.recompute == "full" or under_way != 1:
        return max(moments, default=0.0)
    later = 0.0
    needs = [0.0]
    for layer, moment in zip(reversed(stage), reversed(moments), strict=True):
        needs.append(moment - later)
        later += _saved(layer, tensor, options)
    return max(needs)


def _gathered(stage: Sequence[Layer], tensor: int) -> float:
    """Return the parameters that ZeRO's stage 3 has at a time: a block, and the one that is fetched."""
    sums = [sum(weights_of(layer, tensor) for layer in some) for some in by_block(stage).values()]
    return min(2, len(sums)) * max(sums)


def weights_of(layer: Layer, tensor: int, twice: bool = False) -> float:
    """Return the parameters of a layer on one GPU; ``twice``: shared ones are on another stage, too."""
    weights = layer.weights + (layer.shared_weights if twice else 0)
    return weights / (tensor if layer.parallel or layer.joins else 1)


def by_block(layers: Iterable[Layer]) -> dict[str, list[Layer]]:
    """Return the layers of each block, in their order."""
    return grouped((layer.block, layer) for layer in layers)


def _saved(layer: Layer, tensor: int, options: MemoryOptions) -> float:
    size = 0.0
    for one in layer.saves:
        if not (one.core and options.recompute == "selective"):
            divided = one.parallel or options.sequence_parallel
            size += one.bytes(options.saved_bytes) / (tensor if divided else 1)
    return size


def _moment(layer: Layer, tensor: int, options: MemoryOptions) -> float:
    if layer.kind == "loss":
        return 4.0 * layer.x / tensor
    divided = tensor if layer.parallel or options.sequence_parallel else 1
    return options.saved_bytes * (layer.y / divided + (layer.x + layer.scores) / tensor)


def what_would_fit(
    need: Callable[[float, MemoryOptions], MemoryNeed], batch: int, options: MemoryOptions, room_gib: float
) -> tuple[str, ...]:
    """Name the changes that make the need fit. ``need``: of a batch per worker and options."""

    def first(changes: Iterable[tuple[str, int, dict[str, Any]]]) -> tuple[str, ...]:
        fit = (
            words
            for words, size, change in changes
            if need(size, msgspec.structs.replace(options, **change)).total <= room_gib
        )
        return (*islice(fit, 1),)

    halves = [batch >> times for times in range(1, batch.bit_length())]
    both, all_of_them = {"recompute": "full", "zero": 3}, "--zero 3 --recompute --batch-per-worker"
    return (
        *first((f"--zero {zero}", batch, {"zero": zero}) for zero in range(options.zero + 1, 4)),
        *first([("--recompute", batch, {"recompute": "full"})] if options.recompute != "full" else []),
        *first((f"--batch-per-worker {size}", size, {}) for size in halves),
    ) or first((f"{all_of_them} {size}", size, both) for size in (batch, 1))
