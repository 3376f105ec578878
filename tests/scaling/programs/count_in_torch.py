"""What torch itself counts for networks written by hand: operations, parameters, bytes that autograd saves.

Run with a Python that has torch; prints JSON by network. Not named test_*: it is no test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

BATCH = 2


def vgg16() -> nn.Module:
    parts: list[nn.Module] = []
    channels = 3
    for filters, times in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(times):
            parts += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(inplace=True)]
            channels = filters
        parts.append(nn.MaxPool2d(2))
    parts += [nn.Flatten(), nn.Linear(25088, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU()]
    return nn.Sequential(*parts, nn.Dropout(), nn.Linear(4096, 1000))


def alexnet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(), nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten()),
        *(nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU()),
        nn.Linear(4096, 1000),
    )


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 with the stride, 1 x 1, and a short cut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
        )
        self.short: nn.Module = nn.Identity()
        if stride > 1 or channels != 4 * width:
            convolution = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.short = nn.Sequential(convolution, nn.BatchNorm2d(4 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


def resnet50() -> nn.Module:
    parts: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    parts.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            parts.append(Bottleneck(channels, width, 2 if stage and not block else 1))
            channels = 4 * width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def mnist_cnn() -> nn.Module:
    convolutions = (nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2))
    dense = (nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(), nn.Linear(128, 10))
    return nn.Sequential(*convolutions, nn.Dropout(0.25), nn.Flatten(), *dense)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


IMAGE = (3, 224, 224)
NETWORKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "vgg16": (vgg16, IMAGE),
    "alexnet": (alexnet, IMAGE),
    "resnet50": (resnet50, IMAGE),
    "mnist-cnn": (mnist_cnn, (1, 28, 28)),
    "mlp": (mlp, (784,)),
}


def counted(network: nn.Module, loss_of: Callable[[], torch.Tensor]) -> dict[str, int]:
    """Return the counts of one step of training; ``loss_of``: its forward pass."""
    own = {one.untyped_storage().data_ptr() for one in [*network.parameters(), *network.buffers()]}
    saved: dict[int, int] = {}
    held = []  # a storage that is freed could give its address to another

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
            held.append(tensor)
        return tensor

    with (
        FlopCounterMode(display=False) as forward,
        torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
    ):
        loss = loss_of()
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    return {
        "forward_flops": forward.get_total_flops(),
        "backward_flops": backward.get_total_flops(),
        "weights": sum(parameter.numel() for parameter in network.parameters()),
        "saved_bytes": sum(saved.values()),
    }


def of_images(network: nn.Module, shape: tuple[int, ...]) -> dict[str, int]:
    """Return the counts of a step with images of this shape."""
    images, labels = torch.rand(BATCH, *shape), torch.zeros(BATCH, dtype=torch.long)
    return counted(network, lambda: nn.functional.cross_entropy(network(images), labels))


if __name__ == "__main__":
    torch.manual_seed(1)
    print(json.dumps({name: of_images(make(), shape) for name, (make, shape) in NETWORKS.items()}))
