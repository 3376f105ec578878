"""The values of ``--compression``, read without starting MPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..run_errors import BadRequestError

_DEFAULT_DENSITY = 0.01
# By kind, the algorithms that support it; None: all.
KINDS: Mapping[str, tuple[str, ...] | None] = {
    "none": None,
    "fp16": ("ring", "hierarchical"),
    "bf16": ("ring", "hierarchical"),
    "topk": ("ring",),
}


class Compression(NamedTuple):
    """How sums travel."""

    kind: str = "none"
    """One of `KINDS`."""
    density: float = 1.0
    """Of topk: the share of an array's numbers that a rank sends at a time, above 0 and up to 1."""


def parse_compression(text: str) -> Compression:
    """``none``, ``fp16``, ``bf16``, ``topk`` or ``topk:DENSITY``; BadRequestError for anything else."""
    kind, colon, tail = text.partition(":")
    known = BadRequestError(
        f"--compression {text}: not a compression",
        "Use none, fp16, bf16, topk, or topk with a share of the numbers above 0 and up to 1, as topk:0.01.",
    )
    if kind not in KINDS or (colon and kind != "topk"):
        raise known
    if kind != "topk":
        return Compression(kind)
    try:
        density = float(tail) if colon else _DEFAULT_DENSITY
    except ValueError:
        raise known from None
    if not 0 < density <= 1:
        raise known
    return Compression(kind, density)


def check_compression(text: str, allreduce: str | None) -> Compression:
    """`parse_compression`; BadRequestError also where ``allreduce`` (None: default) does not support it."""
    found = parse_compression(text)
    able = KINDS[found.kind]
    if able is not None and allreduce is not None and allreduce not in able:
        message = f"--compression {text} with --allreduce {allreduce}: this algorithm does not compress"
        raise BadRequestError(message, f"Use --allreduce {' or '.join(able)}, or leave it out.")
    return found
