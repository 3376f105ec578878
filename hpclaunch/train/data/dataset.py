"""The data of a training run: MNIST from a folder, the cache or a mirror, else synthetic digits."""

import hashlib
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..allreduce import Comm
from ..run_errors import BadDataError, BadRequestError, text_of
from .idx_format import Bytes, check_pair, parse_content, read_bytes, unpack
from .mnist_files import MNIST_FILES, Log, NoNetworkError, chosen_mirrors, default_cache, obtain
from .synthetic_digits import SEED, TEST_IMAGES, TRAIN_IMAGES, synthetic_digits

DATASETS = ("auto", "mnist", "synthetic")
_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclass(frozen=True)
class Dataset:
    """Grey images of the digits 0..9 with their labels; the arrays may be read-only.

    ``name`` is "mnist" or "synthetic"; ``source`` says in words for a record where the data came from.
    Images are uint8 (n, 28, 28), 0 the background and 255 full ink; labels are uint8 (n,). ``train_file`` and
    ``test_file`` are the IDX files that hold the images uncompressed, where there are such; not broadcast.
    """

    name: str
    source: str
    train_images: Bytes
    train_labels: Bytes
    test_images: Bytes
    test_labels: Bytes
    train_file: Path | None = None
    test_file: Path | None = None


def load_dataset(
    dataset: str = "auto",
    data_dir: Path | None = None,
    cache_dir: Path | None = None,
    mirrors: Sequence[str] | None = None,
    log: Log = lambda line: print(line, file=sys.stderr, flush=True),
) -> Dataset:
    """The data set ``dataset``: "mnist", "synthetic", or "auto" (MNIST unless there is no network).

    MNIST comes from the IDX files in ``data_dir`` if that is given (nothing else is tried then), else from
    ``cache_dir`` (by default `mnist_files.default_cache`), else from ``mirrors`` (by default those of
    `mnist_files.chosen_mirrors`) into the cache. Only where no mirror answers at all does "auto" turn to
    synthetic digits, and says so through ``log``; damaged data are an error. Raises BadDataError and
    BadRequestError.
    """
    if dataset == "synthetic":
        if data_dir is not None:
            raise BadRequestError(f"--dataset synthetic contradicts --data {data_dir}: leave one out")
        return _synthetic("synthetic digits (requested)")
    if data_dir is not None:
        return _from_folder(data_dir, log)
    try:
        contents, source = obtain(MNIST_FILES, cache_dir or default_cache(), chosen_mirrors(mirrors), log)
    except NoNetworkError:
        if dataset == "mnist":
            raise
        log(text_of("no network"))
        return _synthetic("synthetic digits (no network)")
    return _mnist(source, contents, [file.name for file in MNIST_FILES])


def _synthetic(source: str) -> Dataset:
    return Dataset("synthetic", source, *synthetic_digits(TRAIN_IMAGES, TEST_IMAGES, SEED))


def _from_folder(folder: Path, log: Log) -> Dataset:
    """The IDX files in the user's folder; files other than the original MNIST's are used, with a log line."""
    paths = _named_files(folder)
    raw = [read_bytes(path) for path in paths]
    contents = [unpack(content, str(path)) for content, path in zip(raw, paths, strict=True)]
    source = str(folder.resolve())
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    if digests != [file.content_sha256 for file in MNIST_FILES]:
        log(f"The files in {folder} are not the original MNIST (other checksums); they are used unchanged.")
        source += " (not the original MNIST)"
    data = _mnist(source, contents, [str(path) for path in paths])
    train, test = (paths[index].resolve() if contents[index] is raw[index] else None for index in (0, 2))
    return replace(data, train_file=train, test_file=test)


def _named_files(folder: Path) -> list[Path]:
    """The four files in ``folder``, each under the first of its usual names that is there."""
    if not folder.is_dir():
        found = "is not a folder" if folder.exists() else "does not exist"
        raise BadDataError(f"--data {folder}: {found}", "Name the folder that holds MNIST's four IDX files.")
    paths = []
    missing = []
    for file in MNIST_FILES:
        plain = file.name.removesuffix(".gz")
        dotted = plain.replace("-idx", ".idx")
        candidates = [folder / name for name in (f"{plain}.gz", plain, f"{dotted}.gz", dotted)]
        path = next((path for path in candidates if path.exists()), None)
        if path is None:
            missing.append(plain)
        else:
            paths.append(path)
    if missing:
        raise BadDataError.of("no files", folder=folder, missing=", ".join(missing))
    return paths


def _mnist(source: str, contents: Sequence[bytes], where: Sequence[str]) -> Dataset:
    """The data set in the contents of the four IDX files, in the order of `mnist_files.MNIST_FILES`."""
    arrays = [parse_content(content, name) for content, name in zip(contents, where, strict=True)]
    train = check_pair(arrays[0], arrays[1], where[0], where[1])
    test = check_pair(arrays[2], arrays[3], where[2], where[3])
    return Dataset("mnist", source, *train, *test)


def broadcast_dataset(data: Dataset | None, comm: Comm) -> Dataset:
    """The data set of rank 0 on every rank: only rank 0 has to see its files; collective."""
    own = None if data is None else [getattr(data, field) for field in _ARRAYS]
    head = None if data is None or own is None else (data.name, data.source, [array.shape for array in own])
    name, source, shapes = comm.bcast(head, root=0)
    arrays: list[Bytes] = [np.empty(shape, np.uint8) for shape in shapes] if own is None else own
    for array in arrays:
        comm.Bcast(array, root=0)
    train_images, train_labels, test_images, test_labels = arrays
    return Dataset(name, source, train_images, train_labels, test_images, test_labels)


Given = TypeVar("Given")
Made = TypeVar("Made")

_AHEAD = 4  # more than one, since the thread may get its turn late


def prefetched(make: Callable[[Given], Made], wanted: Iterable[Given]) -> Generator[Made, None, None]:
    """``make(item)`` for each item in turn, a few items ahead in another thread.

    What ``make`` raises is raised where its result would have come. ``make`` may use no MPI. The thread ends
    with the generator.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as thread:
        made: deque[Future[Made]] = deque()
        try:
            for item in wanted:
                made.append(thread.submit(make, item))
                if len(made) > _AHEAD:
                    yield made.popleft().result()
            while made:
                yield made.popleft().result()
        finally:
            for future in made:
                future.cancel()
