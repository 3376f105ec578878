"""The data of a training run: MNIST from a folder, the cache or a mirror, else synthetic digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

Log = Callable[[str], None]


@dataclass(frozen=True)
class Dataset:
    """Grey images of the digits 0..9 with their labels; the arrays may be read-only.

    ``name`` is "mnist" or "synthetic"; ``source`` says in words for a record where the data came from.
    Images are uint8 (n, 28, 28), 0 the background and 255 full ink; labels are uint8 (n,).
    """

    name: str
    source: str
    train_images: npt.NDArray[np.uint8]
    train_labels: npt.NDArray[np.uint8]
    test_images: npt.NDArray[np.uint8]
    test_labels: npt.NDArray[np.uint8]


def load_dataset(
    dataset: str = "auto",
    data_dir: Path | None = None,
    cache_dir: Path | None = None,
    mirrors: Sequence[str] | None = None,
    comm: Comm | None = None,
    log: Log = print,
) -> Dataset:
    """Not built yet."""
    raise NotImplementedError
