"""The numpy engine's layers as modules of torch, with their parameters in the numpy engine's layout.

Images go through them as (batch, channels, height, width) with the channels of a pixel together in memory
(torch calls it channels_last): that is how numpy's layers have them, and on CPUs 1.5 times as fast.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .layers import Conv2D, Dense, Dropout, Layer, MaxPool2, ReLU, Shape

DrawFactors = Callable[[float, Shape], torch.Tensor]
"""Factors of a dropout of that rate, in the shape that numpy's layer would ask for."""


class TorchDense(nn.Module):
    """`Dense`; its weight is (inputs, outputs), and pixels are flattened with their channels last."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x @ weight + bias``."""
        return torch.addmm(self.bias, _pixels_together(x).flatten(1), self.weight)


class TorchConv2D(nn.Module):
    """`Conv2D`; its weight is (size, size, channels, filters)."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The cross-correlation of ``x`` with the weight, plus the bias."""
        weight = self.weight.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        return functional.conv2d(x, weight, self.bias)


class TorchDropout(nn.Module):
    """`Dropout` with factors that the engine draws."""

    def __init__(self, rate: float, draw: DrawFactors) -> None:
        super().__init__()
        self._rate, self._draw = rate, draw

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Drop in training mode; else pass ``x`` on unchanged."""
        if not self.training:
            return x
        factors = self._draw(self._rate, tuple(_pixels_together(x).shape))
        return x * (factors.permute(0, 3, 1, 2) if factors.dim() == 4 else factors)


def _pixels_together(x: torch.Tensor) -> torch.Tensor:
    """Images as (batch, height, width, channels); anything else unchanged."""
    return x.permute(0, 2, 3, 1) if x.dim() == 4 else x


def torch_modules(
    layers: Sequence[Layer], parameters: Iterable[torch.Tensor], draw: DrawFactors
) -> nn.Sequential:
    """The network of ``layers``; ``parameters`` are used unchanged, in the order of the layers."""
    given = iter(parameters)
    return nn.Sequential(*[_module(layer, given, draw) for layer in _cheaper_order(layers)])


def _module(layer: Layer, parameters: Iterator[torch.Tensor], draw: DrawFactors) -> nn.Module:
    own: list[Any] = [next(parameters) for _ in layer.parameter_shapes]
    if isinstance(layer, Dropout):
        return TorchDropout(layer.rate, draw)
    simple: dict[type, Callable[..., nn.Module]] = {
        Dense: TorchDense,
        Conv2D: TorchConv2D,
        ReLU: lambda: nn.ReLU(inplace=True),
        MaxPool2: lambda: nn.MaxPool2d(2),
    }
    return simple[type(layer)](*own)


def _cheaper_order(layers: Sequence[Layer]) -> list[Layer]:
    """With the ReLU after the pooling that follows it: the same numbers from a quarter of the values."""
    ordered = list(layers)
    for index in range(len(ordered) - 1):
        if isinstance(ordered[index], ReLU) and isinstance(ordered[index + 1], MaxPool2):
            ordered[index : index + 2] = ordered[index + 1], ordered[index]
    return ordered
