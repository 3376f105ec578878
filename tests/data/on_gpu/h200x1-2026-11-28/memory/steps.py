"""Three training steps with 256 images; print the memory that torch has allocated at most."""

from __future__ import annotations

import json
from typing import Any

import torch


def network() -> Any:
    """Return a convolutional network for images of 3 x 64 x 64."""
    blocks: list[Any] = []
    for before, after in ((3, 64), (64, 128), (128, 256)):
        blocks += [torch.nn.Conv2d(before, after, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    return torch.nn.Sequential(
        *blocks,
        torch.nn.Flatten(),
        torch.nn.Linear(256 * 8 * 8, 1024),
        torch.nn.ReLU(),
        torch.nn.Linear(1024, 10),
    )


def main() -> None:
    """Train with SGD and momentum, in float32, on the first GPU or on the CPU."""
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch = 256 if on_gpu else 8
    for _ in range(3):
        optimizer.zero_grad()
        images = torch.randn(batch, 3, 64, 64, device=device)
        labels = torch.randint(10, (batch,), device=device)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    gib = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None
    reserved = torch.cuda.max_memory_reserved() / 2**30 if on_gpu else None
    print(json.dumps({"batch": batch, "allocated_gib": gib, "reserved_gib": reserved}))


if __name__ == "__main__":
    main()
