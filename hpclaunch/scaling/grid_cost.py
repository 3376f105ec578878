"""The cost of a step under tensor x pipeline (1F1B) x data parallelism, with ZeRO. Pure.

After Narayanan et al. 2021, arXiv 2104.04473: a pipeline of P stages in V parts each works M + (P - 1) / V
rounds for M micro-batches; each layer that tensor parallelism joins sums its output in the forward pass and
its input's gradient in the backward pass. Sequence parallelism sends as much (Korthikanti et al. 2022).
"""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from hpclaunch.scaling.machine_speed import Machine
from hpclaunch.scaling.memory_need import MemoryOptions, by_block, weights_of
from hpclaunch.scaling.model_table import Layer
from hpclaunch.scaling.strategy_costs import (
    Division,
    LayerCost,
    Traffic,
    balanced_stages,
    layer_seconds,
    update_seconds,
)


class GridCost(NamedTuple):
    """A step on one GPU; traffic in messages and bytes."""

    compute_s: float
    node: Traffic
    network: Traffic
    gradients: Traffic
    """The exchange between workers, which the computation can hide."""


def grid_stages(layers: Sequence[Layer], count: int) -> list[list[Layer]]:
    """Divide the layers into stages: blocks with attention evenly, else by their arithmetic."""
    runs = list(by_block(layers).values())
    inner = [number for number, run in enumerate(runs) if any(layer.kind == "attention" for layer in run)]
    if len(inner) >= count:
        most = ceil(len(inner) / count)
        starts = [0, *(inner[min(most * stage, len(inner) - 1)] for stage in range(1, count))]
    else:
        work = [float(sum(layer.forward_flops + layer.y for layer in run)) for run in runs]
        found = balanced_stages([LayerCost(0, 0, 0, one, 0, 0) for one in work], count)
        starts = [sum(map(len, found[:stage])) for stage in range(len(found))]
    ends = [*starts[1:], len(runs)]
    stages = [[x for run in runs[a:b] for x in run] for a, b in zip(starts, ends, strict=True)]
    return [stage for stage in stages if stage]


def grid_cost(
    stages: Sequence[Sequence[Layer]], division: Division, options: MemoryOptions, machine: Machine
) -> GridCost:
    """Return what a step costs."""
    tensor, parts, count = division.tensor, options.interleave, division.segments
    per_node = machine.gpus_per_node or division.p
    micro = division.batch / division.workers / count
    rounds = count + (len(stages) - 1) / parts
    weights = max(sum(weights_of(layer, tensor) for layer in stage) for stage in stages)
    update = update_seconds(weights / (division.workers if options.zero else 1), options.slots, machine)
    seconds = rounds * max(_seconds(stage, micro, tensor, options, machine) for stage in stages) + update
    joining = max(stages, key=lambda stage: sum(layer.y for layer in stage if layer.joins))
    passes = rounds * (3 if options.recompute == "full" else 2)
    sums = _ring(tensor, micro * options.saved_bytes * sum(layer.y for layer in joining if layer.joins))
    inner = Traffic(passes * sum(layer.joins for layer in joining) * sums.messages, passes * sums.elements)
    passed = Traffic()
    if len(stages) > 1:  # all GPUs of a node send at once
        sent = max(stage[-1].y for stage in stages[:-1]) * micro * options.saved_bytes
        passed = Traffic(2 * rounds * parts, 2 * rounds * parts * sent * min(per_node, tensor))
    here, fits = division.p <= per_node, tensor <= per_node
    outer = _ring(division.workers, weights * exchange_bytes(options))
    times = exchanges(options, count)
    # The rings of one node's GPUs share its links.
    gradients = Traffic(
        times * outer.messages, times * outer.elements * (1 if here else min(tensor, per_node))
    )
    return GridCost(
        seconds,
        node=_sum(inner if fits else Traffic(), passed if here else Traffic()),
        network=_sum(Traffic() if fits else inner, Traffic() if here else passed),
        gradients=gradients,
    )


def _sum(one: Traffic, other: Traffic) -> Traffic:
    return Traffic(one.messages + other.messages, one.elements + other.elements)


def exchange_bytes(options: MemoryOptions) -> int:
    """Return the bytes of a gradient, or gathered parameter, in the exchange between workers."""
    half = options.copies not in ("fp32", "master-fp32-gradients") or options.zero == 3
    return 2 if half and options.saved_bytes == 2 else 4


def exchanges(options: MemoryOptions, micro_batches: int) -> float:
    """Return how many sums of all gradients a step's exchange is worth.

    ZeRO's third stage gathers the parameters in both passes and scatters the gradients, for each micro-batch:
    3 times the weights, not 2 (arXiv 1910.02054).
    """
    return 1.5 * micro_batches if options.zero == 3 else 1.0


def _ring(count: int, size: float) -> Traffic:
    return Traffic(2 * (count - 1), 2 * (count - 1) * size / count)


def _seconds(
    stage: Sequence[Layer], micro: float, tensor: int, options: MemoryOptions, machine: Machine
) -> float:
    """Return the seconds of a micro-batch in a stage."""
    speed = machine.gpu_tflops.value * 1e12 * machine.gpu_share.value
    memory = machine.memory_gb_s.value * 1e9 * machine.gpu_share.value
    total = 0.0
    for layer in stage:
        forward, backward = layer_seconds(layer, speed, memory, micro, options.saved_bytes)
        again = options.recompute == "full" or (
            options.recompute == "selective" and layer.kind == "attention"
        )
        divided = layer.parallel or layer.joins or options.sequence_parallel or layer.kind == "loss"
        total += (forward * (1 + again) + backward) / (tensor if divided else 1)
    return micro * total
