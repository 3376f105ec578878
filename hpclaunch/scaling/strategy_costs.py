"""The cost of a training step under each way to divide it: the formulas of Kahira et al. Pure.

Source: "An oracle for guiding large-scale model/hybrid parallel training of convolutional neural
networks", HPDC 2021,
arXiv 2104.09075, and the table of the talk "Large-Scale Design of Distributed Deep Learning" (AIST, 2021).
There the costs are per epoch of D samples; here they are per step, which is B / D of that. Symbols: B samples
of all workers per step, p GPUs, p1 workers of p2 GPUs, x and y input and output of a layer, w its weights
(elements, per sample), FW, BW and WU seconds of forward and backward per sample and of the update per step,
alpha seconds per message, beta seconds per byte, delta bytes per element, S segments of a pipeline.

``data+spatial`` is not in that table; its terms are those of data and spatial together.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from hpclaunch.package_data import package_constants
from hpclaunch.scaling.machine_speed import SPEEDS, Machine
from hpclaunch.scaling.model_table import Layer, Model

Strategy = Literal[
    "serial", "data", "spatial", "pipeline", "filter", "channel", "data+filter", "data+spatial", "3d"
]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)[:-1]
"""Those of the paper; ``3d`` is tensor x pipeline x data parallelism (grid_cost.py)."""
HYBRIDS: tuple[Strategy, ...] = ("data+filter", "data+spatial")
WHOLE_WORKERS: tuple[Strategy, ...] = ("spatial", "pipeline", "filter", "channel")
"""One worker of p GPUs: more GPUs do not see more samples."""


class LayerCost(NamedTuple):
    """One layer: sizes in elements per sample, times in seconds."""

    y: float
    w: float
    fw: float
    """Forward, per sample."""
    bw: float
    """Backward, per sample."""
    wu: float
    """Update of its weights, per step."""
    halo: float = 0.0
    """Of its input and its output."""
    passed: float = 0.0
    """Elements that the next stage of a pipeline gets."""


class Division(NamedTuple):
    """How a step is divided."""

    batch: float
    """B: samples of all workers per step."""
    p: int
    """GPUs."""
    p2: int = 1
    """GPUs of a worker, in the hybrids."""
    segments: int = 1
    """S of the pipeline; micro-batches of a worker's step in data and 3d."""
    tensor: int = 1
    """GPUs that divide each layer, in 3d."""
    pipeline: int = 1
    """Stages, in 3d."""

    @property
    def workers(self) -> int:
        """Workers of data and 3d."""
        return self.p // (self.tensor * self.pipeline)

    @property
    def p1(self) -> int:
        """Workers, in the hybrids."""
        return self.p // self.p2


class Traffic(NamedTuple):
    """Messages one after another, and elements through one link."""

    messages: float = 0.0
    elements: float = 0.0


class StepCost(NamedTuple):
    """A step on one GPU."""

    compute_s: float
    update_s: float
    inner: Traffic = Traffic()
    """Within a worker: what a division of layers needs."""
    outer: Traffic = Traffic()
    """Between workers: the gradients."""


def step_cost(strategy: Strategy, layers: Sequence[LayerCost], division: Division) -> StepCost:
    """Return what a step costs."""
    batch, p, p2, segments = division[:4]
    p1 = division.p1
    compute = sum(layer.fw + layer.bw for layer in layers)
    update = sum(layer.wu for layer in layers)
    weights = sum(layer.w for layer in layers)
    if strategy == "serial":
        return StepCost(batch * compute, update)
    if strategy == "data":
        return StepCost(batch / p * compute, update, outer=ring(p, weights))
    if strategy == "spatial":
        halo = _halo(layers, batch)
        inner = Traffic(*(a + b for a, b in zip(ring(p, weights), halo, strict=True)))
        return StepCost(batch / p * compute, update, inner=inner)
    if strategy == "pipeline":
        return _pipeline(layers, batch, p, segments)
    if strategy in ("filter", "channel"):
        return StepCost(batch / p * compute, update / p, inner=_gathers(layers, p, batch))
    if strategy == "data+filter":
        gathers = _gathers(layers, p2, batch / p1)
        messages, elements = ring(p1, weights / p2)
        return StepCost(batch / p * compute, update / p2, inner=gathers, outer=Traffic(messages, elements))
    halo = _halo(layers, batch / p1) if p2 > 1 else Traffic()
    return StepCost(batch / p * compute, update, inner=halo, outer=ring(p, weights))


def ring(p: int, elements: float) -> Traffic:
    """Return an allreduce in a ring: 2 (p - 1) (alpha + elements / p delta beta)."""
    return Traffic(2 * (p - 1), 2 * (p - 1) * elements / p)


def _gathers(layers: Sequence[LayerCost], p: int, batch: float) -> Traffic:
    """Return the exchange of outputs, of all but the last: 3 (p - 1) sum(alpha + B |y| / p delta beta)."""
    inner = layers[:-1]
    return Traffic(3 * (p - 1) * len(inner), 3 * (p - 1) * sum(batch * layer.y / p for layer in inner))


def _halo(layers: Sequence[LayerCost], batch: float) -> Traffic:
    """Return the exchange of borders: 2 sum(2 alpha + B (halo(x) + halo(dL/dy)) delta beta)."""
    return Traffic(4 * len(layers), 2 * batch * sum(layer.halo for layer in layers))


def _pipeline(layers: Sequence[LayerCost], batch: float, p: int, segments: int) -> StepCost:
    """Return B (p + S - 1) / S (max FW + max BW) + max WU; 2 (p + S - 2) max(alpha + B/S |y| delta beta)."""
    stages = balanced_stages(layers, p)
    compute = max(sum(layer.fw for layer in stage) for stage in stages)
    compute += max(sum(layer.bw for layer in stage) for stage in stages)
    update = max(sum(layer.wu for layer in stage) for stage in stages)
    sent = [stage[-1].passed for stage in stages[:-1]]
    rounds = 2 * (p + segments - 2) if sent else 0
    traffic = Traffic(rounds, rounds * batch / segments * max(sent, default=0.0))
    return StepCost(batch * (p + segments - 1) / segments * compute, update, inner=traffic)


def balanced_stages(layers: Sequence[LayerCost], p: int) -> list[Sequence[LayerCost]]:
    """Divide the layers into p runs so that the longest FW + BW is as short as it can be."""
    count = len(layers)
    p = min(p, count)
    ends = [0.0]
    for layer in layers:
        ends.append(ends[-1] + layer.fw + layer.bw)
    # best[n]: the longest stage of the first n layers, and where its last stage starts; one stage more per
    # round.
    best = [(ends[n], 0) for n in range(count + 1)]
    starts = [[0] * (count + 1)]
    for stage in range(1, p):
        new = [(float("inf"), 0)] * (count + 1)
        for n in range(stage + 1, count + 1):
            new[n] = min((max(best[k][0], ends[n] - ends[k]), k) for k in range(stage, n))
        best = new
        starts.append([k for _, k in best])
    stages: list[Sequence[LayerCost]] = []
    end = count
    for round_starts in reversed(starts):
        stages.append(layers[round_starts[end] : end])
        end = round_starts[end]
    return stages[::-1]


def most_gpus(strategy: Strategy, layers: Sequence[Layer], batch: int) -> int:
    """Return the most GPUs that a step of ``batch`` samples can be divided among.

    Only layers with an area count for a spatial division. A division by channels begins at the second layer,
    as in the paper's measurements: images have three.
    """
    area = min((layer.area for layer in layers if layer.area > 1), default=1)
    filters = min(layer.filters for layer in layers)
    channels = min((layer.channels for layer in layers[1:]), default=1)
    return {
        "serial": 1,
        "data": batch,
        "spatial": area,
        "pipeline": len(layers),
        "filter": filters,
        "channel": channels,
        "data+filter": batch * filters,
        "data+spatial": batch * area,
        "3d": 1 << 40,
    }[strategy]


LIMIT = package_constants("scaling/constants.yaml", "strategies")


def groups_of(model: Model) -> list[tuple[Layer, ...]]:
    """Return the layers in groups that begin with a convolution or a linear layer, G of the formulas."""
    first = next((place for place, layer in enumerate(model.layers) if layer.weighted), len(model.layers))
    begins = [place for place, layer in enumerate(model.layers) if layer.weighted and place > first]
    return [model.layers[start:end] for start, end in pairwise((0, *begins, len(model.layers)))]


def main_layers(model: Model) -> list[Layer]:
    """Return of each group the layer that does its arithmetic."""
    return [_main(group) for group in groups_of(model)]


def _main(group: tuple[Layer, ...]) -> Layer:
    return next((layer for layer in group if layer.weighted), group[0])


def layer_costs(
    groups: Sequence[tuple[Layer, ...]], machine: Machine, batch: float, slots: int, bytes_per_element: int
) -> list[LayerCost]:
    """Return the cost of each group; ``batch``: samples of one worker, which share the reading of weights."""
    speed = machine.gpu_tflops.value * 1e12 * machine.gpu_share.value
    memory = machine.memory_gb_s.value * 1e9 * machine.gpu_share.value
    costs = []
    for group in groups:
        main = _main(group)
        weights = sum(layer.weights for layer in group)
        times = [layer_seconds(layer, speed, memory, batch, bytes_per_element) for layer in group]
        costs.append(
            LayerCost(
                y=main.y,
                w=weights,
                fw=sum(forward for forward, _ in times),
                bw=sum(backward for _, backward in times),
                wu=update_seconds(weights, slots, machine),
                halo=main.halo_x + main.halo_y,
                passed=group[-1].y,
            )
        )
    return costs


def update_seconds(weights: float, slots: int, machine: Machine) -> float:
    """Return the time of the update of that many parameters."""
    moved: float = 4 * (LIMIT.update_passes + 2 * slots) * weights
    return moved / (machine.memory_gb_s.value * 1e9 * machine.gpu_share.value)


def layer_seconds(layer: Layer, speed: float, memory: float, batch: float, size: int) -> tuple[float, float]:
    """Return forward and backward of one sample; ``speed``: operations, ``memory``: bytes per second."""
    if layer.forward_flops:
        moved = size * (layer.x + layer.y + layer.weights / batch)
        times = layer.backward_flops / layer.forward_flops
        scores = [size * passes * layer.scores / memory for passes in LIMIT.score_passes]
        forward = max(layer.forward_flops / speed, moved / memory)
        backward = max(layer.backward_flops / speed, times * moved / memory)
        return forward + scores[0], backward + scores[1]
    if layer.kind == "loss":
        return LIMIT.loss_bytes[0] * layer.y / memory, LIMIT.loss_bytes[1] * layer.y / memory
    if layer.kind in ("maxpool", "avgpool"):
        moved = size * (layer.x + layer.y) + (layer.kind == "maxpool") * 4 * LIMIT.index_passes * layer.y
        return moved / memory, moved / memory
    # How often forward and backward read or write a tensor of the output's size.
    passes = SPEEDS["passes"].get(layer.kind, (2, 3))
    return size * passes[0] * layer.y / memory, size * passes[1] * layer.y / memory
