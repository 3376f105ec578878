"""Wheels that pip installs for each vendor's GPUs: package, index, source."""

import msgspec


class Wheels(msgspec.Struct, frozen=True, kw_only=True):
    """What ``pip install`` gets."""

    words: tuple[str, ...]
    """Requirements."""
    index: str | None = None
    """Index to take them from; None: pip's own."""
    versions: dict[str, str] = {}
    source: str


_TORCH = "https://pytorch.org/get-started/previous-versions/"
_TENSORFLOW = "https://www.tensorflow.org/install/pip"
_JAX = "https://docs.jax.dev/en/latest/installation.html"
WHEELS = {
    ("torch", "cpu"): Wheels(
        words=("torch", "numpy"), index="https://download.pytorch.org/whl/cpu", source=_TORCH
    ),
    ("torch", "amd"): Wheels(
        # With its local version: pip would else take the build for CUDA from the usual index.
        words=("torch==2.6.0+rocm6.2.4", "numpy"),
        index="https://download.pytorch.org/whl/rocm6.2.4",
        versions={"torch": "2.6.0", "rocm": "6.2.4"},
        source=_TORCH,
    ),
    ("tensorflow", "cpu"): Wheels(words=("tensorflow-cpu",), source=_TENSORFLOW),
    ("jax", "cpu"): Wheels(words=("jax",), source=_JAX),
    ("jax", "nvidia"): Wheels(words=("jax[cuda12]",), versions={"cuda": "12"}, source=_JAX),
}
"""(goal, vendor or cpu) -> wheels. torch for NVIDIA is left out: which index fits Arm was not read."""
