"""Seconds of each layer from its operations and the bytes that it moves: the longer of both. Pure."""

from collections.abc import Sequence

from hpclaunch.scaling.machine_speed import Machine
from hpclaunch.scaling.model_table import Kind, Layer, Model
from hpclaunch.scaling.strategy_costs import LayerCost

_PASSES: dict[Kind, tuple[int, int]] = {
    "relu": (2, 3),
    "gelu": (2, 3),
    "dropout": (3, 3),
    "softmax": (2, 3),
    "elementwise": (2, 3),
    "batchnorm": (3, 5),
    "layernorm": (3, 5),
    "add": (3, 0),
    "concat": (2, 2),
    "flatten": (0, 0),
}
"""Kind -> how often forward and backward read or write a tensor of the output's size."""
_INDEX_PASSES = 2
"""The places of the maxima have 8 bytes each."""
_UPDATE_PASSES = 3
"""The update reads weight and gradient and writes the weight; each slot is read and written in addition."""


def groups_of(model: Model) -> list[tuple[Layer, ...]]:
    """Return the layers in groups that begin with a convolution or a linear layer, G of the formulas."""
    groups: list[list[Layer]] = []
    before: list[Layer] = []
    for layer in model.layers:
        if layer.weighted:
            groups.append([*before, layer])
            before = []
        else:
            (groups[-1] if groups else before).append(layer)
    if not groups:
        return [tuple(before)]
    return [tuple(group) for group in groups]


def layer_costs(
    groups: Sequence[tuple[Layer, ...]], machine: Machine, batch: float, slots: int, bytes_per_element: int
) -> list[LayerCost]:
    """Return the cost of each group; ``batch``: samples of one worker, which share the reading of weights."""
    speed = machine.gpu_tflops.value * 1e12 * machine.gpu_share.value
    memory = machine.memory_gb_s.value * 1e9 * machine.gpu_share.value
    costs = []
    for group in groups:
        main = next((layer for layer in group if layer.weighted), group[0])
        weights = sum(layer.weights for layer in group)
        times = [_seconds(layer, speed, memory, batch, bytes_per_element) for layer in group]
        costs.append(
            LayerCost(
                x=main.x,
                y=main.y,
                w=weights,
                fw=sum(forward for forward, _ in times),
                bw=sum(backward for _, backward in times),
                wu=4 * (_UPDATE_PASSES + 2 * slots) * weights / memory,
                filters=main.filters,
                channels=main.channels,
                area=main.area,
                halo_x=main.halo_x,
                halo_y=main.halo_y,
                passed=group[-1].y,
            )
        )
    return costs


def _seconds(layer: Layer, speed: float, memory: float, batch: float, size: int) -> tuple[float, float]:
    """Return forward and backward of one sample."""
    if layer.weighted:
        moved = size * (layer.x + layer.y + layer.weights / batch)
        times = layer.backward_flops / layer.forward_flops if layer.forward_flops else 2
        forward = max(layer.forward_flops / speed, moved / memory)
        return forward, max(layer.backward_flops / speed, times * moved / memory)
    if layer.kind in ("maxpool", "avgpool"):
        moved = size * (layer.x + layer.y) + (layer.kind == "maxpool") * 4 * _INDEX_PASSES * layer.y
        return moved / memory, moved / memory
    forward_passes, backward_passes = _PASSES[layer.kind]
    return size * forward_passes * layer.y / memory, size * backward_passes * layer.y / memory
