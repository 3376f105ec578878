"""Facts that ranks must share before they exchange gradients, and which rank made a sum not finite.

Ranks that disagree would wait for messages that never come, or sum gradients of different tensors.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from ..allreduce import Comm
from ..collective import AgreedError
from ..engine import Engine
from ..run_errors import BadRequestError, TrainError
from . import MicroBatch

_OPTION_NAMES = {"data_dir": "--data"}


def agree_on_options(comm: Comm, options: Mapping[str, object]) -> None:
    """Raise AgreedError, naming rank and option, where ``options``, by name, differ; collective.

    Ranks may name different files and folders, but all or none must name one.
    """
    lines = []
    for name, value in options.items():
        option = _OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")
        shown = "(not given)" if value is None else value
        lines.append(f"{option} (a path)" if isinstance(value, Path) else f"{option} {shown}")
    if found := _first_difference(comm, lines):
        rank, _, there, here = found
        raise AgreedError(BadRequestError.of("options differ", rank=rank, there=there, here=here))


def agree_on_tensors(comm: Comm, engine: Engine) -> None:
    """Raise AgreedError, naming rank and tensor, where shapes, dtypes or order differ; collective."""
    dtype = engine.gradients.dtype
    lines = [f"{tensor.name} {dtype} {list(tensor.shape)}" for tensor in engine.tensors]
    found = _first_difference(comm, lines)
    if found:
        rank, index, there, here = found
        values = {"index": index, "rank": rank, "there": there, "here": here}
        raise AgreedError(TrainError.of("tensors differ", **values))


def not_finite(comm: Comm, engine: Engine, batches: Iterable[MicroBatch]) -> str:
    """Which tensor of the summed gradients is the first that is not finite, and on which ranks it came up.

    Computes the gradients of this rank's ``batches`` again: call it before the update. Collective; the
    engine's gradients are lost.
    """
    tensor = _first_not_finite(engine)
    if tensor is None:
        return "the gradients are too large to square"
    own = any(_has_not_finite(engine, batch) for batch in batches)
    ranks = [rank for rank, found in enumerate(comm.allgather(own)) if found]
    if not ranks:
        return f"first in {tensor}, though every rank's own gradients are finite"
    if len(ranks) == comm.Get_size():
        return f"first in {tensor}, on all ranks"
    return f"first in {tensor}, from rank {', '.join(map(str, ranks))}"


def _first_not_finite(engine: Engine) -> str | None:
    wrong = (each.name for each in engine.tensors if not np.isfinite(engine.gradients[each.part]).all())
    return next(wrong, None)


def _has_not_finite(engine: Engine, batch: MicroBatch) -> bool:
    engine.compute_gradients(*batch)
    return _first_not_finite(engine) is not None


def _first_difference(comm: Comm, lines: Sequence[str]) -> tuple[int, int, str, str] | None:
    """First rank with other ``lines`` than rank 0, the line's number, and the line on both ranks."""
    digests: list[bytes] = comm.allgather(hashlib.sha256("\n".join(lines).encode()).digest())
    odd = next((rank for rank, digest in enumerate(digests) if digest != digests[0]), None)
    if odd is None:
        return None
    everywhere: list[Sequence[str]] = comm.allgather(lines)
    pairs = zip_longest(everywhere[odd], everywhere[0], fillvalue="missing")
    return next((odd, index, there, here) for index, (there, here) in enumerate(pairs) if there != here)
