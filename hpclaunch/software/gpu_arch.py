"""Which CUDA versions support which GPU."""

import re

# Architecture -> first CUDA toolkit that supports it (NVIDIA, CUDA Toolkit release notes: 9.0 Volta,
# 10.0 Turing, 11.0 A100, 11.1 GA10x, 11.8 Ada and Hopper, 12.8 Blackwell).
FIRST_CUDA = {
    "sm_70": (9, 0),
    "sm_75": (10, 0),
    "sm_80": (11, 0),
    "sm_86": (11, 1),
    "sm_89": (11, 8),
    "sm_90": (11, 8),
    "sm_100": (12, 8),
    "sm_120": (12, 8),
}


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: ``12.4.1`` -> (12, 4, 1), ``2.13.0+cpu`` -> (2, 13, 0)."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def cuda_addresses(cuda: str, arch: str) -> bool | None:
    """Return whether this CUDA version can build code for ``arch`` (sm_90); None: not known."""
    first = FIRST_CUDA.get(arch)
    have = version_numbers(cuda)
    return have[:2] >= first if first and have else None


def first_cuda(arch: str) -> str | None:
    """Return the first CUDA version for an architecture, such as ``11.8``; None: not known."""
    first = FIRST_CUDA.get(arch)
    return ".".join(map(str, first)) if first else None
