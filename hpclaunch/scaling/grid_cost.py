"""The cost of a step under tensor x pipeline (1F1B) x data parallelism, with ZeRO. Pure.

After Narayanan et al. 2021, arXiv 2104.04473: a pipeline of P stages in V parts each works M + (P - 1) / V
rounds for M micro-batches; each layer that tensor parallelism joins sums its output in the forward pass and
its input's gradient in the backward pass. Sequence parallelism sends as much (Korthikanti et al. 2022).
"""

from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import NamedTuple

from hpclaunch.scaling import strategy_costs
from hpclaunch.scaling.machine_speed import Machine
from hpclaunch.scaling.memory_need import MemoryOptions, by_block, weights_of
from hpclaunch.scaling.model_table import Layer
from hpclaunch.scaling.strategy_costs import Division, Traffic, balanced_stages, ring, update_seconds


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
    seen = list(accumulate(any(layer.kind == "attention" for layer in run) for run in runs))
    if seen[-1] >= count:
        places = [max(0, number - 1) // ceil(seen[-1] / count) for number in seen]
    else:
        work = [float(sum(layer.forward_flops + layer.y for layer in run)) for run in runs]
        found = balanced_stages([strategy_costs.LayerCost(0, 0, one, 0, 0) for one in work], count)
        places = [number for number, stage in enumerate(found) for _ in stage]
    stages: dict[int, list[Layer]] = {}
    for place, run in zip(places, runs, strict=True):
        stages.setdefault(place, []).extend(run)
    return list(stages.values())


def grid_cost(
    stages: Sequence[Sequence[Layer]], division: Division, options: MemoryOptions, machine: Machine
) -> GridCost:
    """Return what a step costs."""
    tensor, count = division.tensor, division.segments
    micro = division.batch / division.workers / count
    rounds = count + (len(stages) - 1) / options.interleave
    weights = max(sum(weights_of(layer, tensor) for layer in stage) for stage in stages)
    update = update_seconds(weights / (division.workers if options.zero else 1), options.slots, machine)
    seconds = max(_seconds(stage, micro, tensor, options, machine) for stage in stages)
    per_node = machine.gpus_per_node or division.p
    here = division.p <= per_node
    inner = _joined(stages, tensor, rounds * micro, rounds, options)
    # All GPUs of a node send at once to the next stage, and their rings share its links.
    share = min(per_node, tensor)
    turns = 2 * rounds * options.interleave
    sent = max((stage[-1].y for stage in stages[:-1]), default=0) * micro * options.saved_bytes
    passed = Traffic(turns, turns * sent * share) if sent else Traffic()
    outer = ring(division.workers, weights * exchange_bytes(options))
    times = exchanges(options, count)
    links = [[Traffic()], [Traffic()]]  # within a node, between nodes
    links[tensor > per_node].append(inner)
    links[not here].append(passed)
    node, network = (Traffic(*map(sum, zip(*some, strict=True))) for some in links)
    gradients = Traffic(times * outer.messages, times * outer.elements * (1 if here else share))
    return GridCost(rounds * seconds + update, node, network, gradients)


def _joined(
    stages: Sequence[Sequence[Layer]], tensor: int, samples: float, rounds: float, options: MemoryOptions
) -> Traffic:
    """Return the sums over the GPUs of tensor parallelism, in the stage that has the most of them."""
    sizes = [[layer.y for layer in stage if layer.joins] for stage in stages]
    most = max(sizes, key=sum)
    passes = 3 if options.recompute == "full" else 2
    messages, size = ring(tensor, samples * sum(most) * options.saved_bytes)
    return Traffic(passes * rounds * len(most) * messages, passes * size)


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


def _seconds(
    stage: Sequence[Layer], micro: float, tensor: int, options: MemoryOptions, machine: Machine
) -> float:
    speed = machine.gpu_tflops.value * 1e12 * machine.gpu_share.value
    memory = machine.memory_gb_s.value * 1e9 * machine.gpu_share.value
    total = 0.0
    for layer in stage:
        forward, backward = strategy_costs.layer_seconds(layer, speed, memory, micro, options.saved_bytes)
        again = options.recompute == "full" or (
            options.recompute == "selective" and layer.kind == "attention"
        )
        divided = layer.parallel or layer.joins or options.sequence_parallel or layer.kind == "loss"
        total += (forward * (1 + again) + backward) / (tensor if divided else 1)
    return micro * total
