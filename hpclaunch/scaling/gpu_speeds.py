"""Speeds of GPUs from their data sheets, and the share of them that training reached where it was measured.

Pure.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Precision = Literal["fp32", "tf32", "bf16"]


class GpuSpeed(NamedTuple):
    """One kind of GPU, as jobs number them: on MI250X and on Max 1550 a half."""

    model: str
    """Regular expression for the profile's ``gpu_model``."""
    tflops: dict[Precision, float]
    """10^12 operations per second, without sparsity."""
    memory_gb_s: float
    source: str


SPEEDS = (
    GpuSpeed("V100", {"fp32": 15.7}, 900, "NVIDIA V100 data sheet, SXM2"),
    GpuSpeed("A100", {"fp32": 19.5, "tf32": 156, "bf16": 312}, 1555, "NVIDIA A100 data sheet, SXM4 40 GB"),
    GpuSpeed("GH200", {"fp32": 67, "tf32": 494, "bf16": 990}, 4000, "NVIDIA GH200 data sheet, 96 GB HBM3"),
    GpuSpeed("H100", {"fp32": 67, "tf32": 494, "bf16": 990}, 3350, "NVIDIA H100 data sheet, SXM5 80 GB"),
    GpuSpeed("MI250X", {"fp32": 23.9, "bf16": 191.5}, 1638, "AMD Instinct MI250X data sheet, half of a card"),
)


class Share(NamedTuple):
    """The share of the data sheet's speed that training reaches, with its relative uncertainty."""

    value: float
    uncertainty: float
    origin: str


MEASURED_SHARES: dict[tuple[str, Precision], Share] = {
    ("V100", "fp32"): Share(
        0.785, 0.1, "measured: one V100, VGG16 and ResNet-50 in Chainer, public logs of arXiv 2104.09075"
    ),
}
ASSUMED_SHARE = Share(0.6, 0.35, "assumed: half to three quarters of the data sheet is usual")


def gpu_speed(model: str | None) -> GpuSpeed | None:
    """Return the data sheet's figures for a profile's GPU; None: not in the table."""
    return next((speed for speed in SPEEDS if re.search(rf"\b{speed.model}\b", model or "")), None)


def reached_share(speed: GpuSpeed | None, precision: Precision) -> Share:
    """Return the share that training reaches."""
    return MEASURED_SHARES.get((speed.model if speed else "", precision), ASSUMED_SHARE)
