"""How the images come from their files to the ranks; each rank gets the same ones with every ``--reading``.

Labels are small: rank 0 reads them, and every rank has all. A rank's images of an epoch are requested at its
start (`Source.epoch`), in the order in which the steps use them.
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..allreduce import Comm, chunk_bounds
from ..collective import digest, on_all_ranks, on_rank_0_alone
from ..run_errors import BadDataError, BadRequestError, TrainError
from ..whole_files import write_whole
from .dataset import Dataset, broadcast_dataset, load_dataset
from .idx_format import IMAGE_SIDE, Bytes
from .mnist_files import Log, default_cache

Indices = npt.NDArray[np.int64]
Take = Callable[[slice], Bytes]
"""From places in a rank's epoch to their images, uint8 (n, 28, 28); any thread may call it."""

_IMAGE_BYTES = IMAGE_SIDE * IMAGE_SIDE
_HEADER_BYTES = 16


class Source:
    """The data of a run as one rank sees them. Creating one is collective."""

    name: str
    """ "mnist" or "synthetic"."""
    source: str
    """Text for a record: where the data came from."""
    train_labels: Bytes
    """All of them, uint8 (n,), on every rank."""
    test_labels: Bytes
    test_part: slice
    """Which of the test images are this rank's to evaluate."""
    test_images: Bytes
    """Those, uint8 (n, 28, 28)."""
    _images: Bytes
    """All training images, in memory or in the file."""

    def _describe(self, comm: Comm, name: str, source: str, train: Bytes, test: Bytes) -> None:
        self.name, self.source, self.train_labels, self.test_labels = name, source, train, test
        self._comm, self._rank, self._ranks = comm, comm.Get_rank(), comm.Get_size()
        bounds = chunk_bounds(len(test), self._ranks)
        self.test_part = slice(bounds[self._rank], bounds[self._rank + 1])

    def epoch(self, wanted: Callable[[int], Indices]) -> Take:
        """Make the training images ``wanted(rank)`` ready for each rank, in that order; collective.

        Every rank can compute what every other rank wants, so that no rank has to ask. Here nothing moves: a
        batch is gathered when it is taken.
        """
        images, indices = self._images, wanted(self._rank)
        return lambda places: np.take(images, indices[places], axis=0)  # lets other threads run meanwhile


class BroadcastSource(Source):
    """Rank 0 reads, and every rank has all in memory: only rank 0 has to see the files, if there are any."""

    def __init__(self, comm: Comm, data: Dataset) -> None:
        """``data``: the same on all ranks."""
        self._describe(comm, data.name, data.source, data.train_labels, data.test_labels)
        self._images = data.train_images
        self.test_images = data.test_images[self.test_part]


class FileSource(Source, ABC):
    """The base of sources that read one uncompressed file from several ranks."""

    option: ClassVar[str]

    def __init__(self, comm: Comm, data: Dataset | None, cache: Path) -> None:
        """``data``: of rank 0; gzip files are unpacked to ``cache``; AgreedError: ranks see other files."""
        described = on_all_ranks(comm, lambda: None if data is None else _announce(data, cache))
        files, name, source, train, test = comm.bcast(described, root=0)
        self._describe(comm, name, source, train, test)
        # One rank per node checks every byte.
        self._first_of_node = _node(comm).Get_rank() == 0
        on_all_ranks(comm, lambda: [file.check(content=self._first_of_node) for file in files])
        self._open(*files)

    @abstractmethod
    def _open(self, train: _File, test: _File) -> None:
        """Read what is needed of the files, which are checked already; collective."""


class ShardSource(FileSource):
    """Every rank reads its own share of each epoch from the file, as the steps come to need it."""

    option = "shard"

    def _open(self, train: _File, test: _File) -> None:
        self._images = train.map()
        self.test_images = test.map()[self.test_part]


class DealtSource(FileSource):
    """Some ranks read a contiguous part of the file each; before every epoch they distribute it to all."""

    def _open(self, train: _File, test: _File) -> None:
        self._bounds = self._parts(train.images)
        self._own = self._read(train, self._bounds)
        bounds = self._parts(test.images)
        evaluated = chunk_bounds(test.images, self._ranks)
        self.test_images = self._deal(
            self._read(test, bounds), bounds, lambda rank: np.arange(evaluated[rank], evaluated[rank + 1])
        )

    @abstractmethod
    def _parts(self, images: int) -> list[int]:
        """The ranks + 1 bounds between the images that each rank reads."""

    def _read(self, file: _File, bounds: Sequence[int]) -> Bytes:
        """This rank's part; collective."""
        first, last = bounds[self._rank], bounds[self._rank + 1]
        part = np.empty((last - first, IMAGE_SIDE, IMAGE_SIDE), np.uint8)
        on_all_ranks(self._comm, lambda: self._read_into(part, file, first))
        return part

    @abstractmethod
    def _read_into(self, part: Bytes, file: _File, first: int) -> None:
        """Fill ``part`` with the images from ``first`` on; BadDataError if that fails."""

    def epoch(self, wanted: Callable[[int], Indices]) -> Take:
        """Distribute what each rank needs in one MPI_Alltoallv."""
        dealt = self._deal(self._own, self._bounds, wanted)
        return lambda places: dealt[places]

    def _deal(self, own: Bytes, bounds: Sequence[int], wanted: Callable[[int], Indices]) -> Bytes:
        """The images ``wanted(this rank)``, from the ranks that have them."""
        first, last = bounds[self._rank], bounds[self._rank + 1]
        sent = []
        for rank in range(self._ranks):
            theirs = wanted(rank)
            sent.append(theirs[(theirs >= first) & (theirs < last)] - first)
        mine = wanted(self._rank)
        owners = np.searchsorted(np.array(bounds[1:]), mine, side="right")
        counts = np.bincount(owners, minlength=self._ranks)
        arrived = np.empty((len(mine), IMAGE_SIDE, IMAGE_SIDE), np.uint8)
        self._comm.Alltoallv(
            [own[np.concatenate(sent)], [len(part) * _IMAGE_BYTES for part in sent]],
            [arrived, [int(count) * _IMAGE_BYTES for count in counts]],
        )
        images = np.empty_like(arrived)
        images[np.argsort(owners, kind="stable")] = arrived
        return images


class MpiIoSource(DealtSource):
    """All ranks read the file together through MPI-IO, each an equal part (MPI_File_read_at_all)."""

    option = "mpi-io"

    def _parts(self, images: int) -> list[int]:
        return chunk_bounds(images, self._ranks)

    def _read_into(self, part: Bytes, file: _File, first: int) -> None:
        from mpi4py import MPI

        try:
            opened = MPI.File.Open(self._comm, file.path, MPI.MODE_RDONLY)
            opened.Read_at_all(_HEADER_BYTES + first * _IMAGE_BYTES, part)
            opened.Close()
        except MPI.Exception as error:
            raise BadDataError(f"{file.path}: MPI-IO cannot read it ({error})") from error


class ScatterSource(DealtSource):
    """The first rank of each node reads an equal part of the file; the other ranks get images by MPI."""

    option = "scatter"

    def _parts(self, images: int) -> list[int]:
        reads = np.array(self._comm.allgather(self._first_of_node))
        bounds = chunk_bounds(images, int(reads.sum()))
        return [bounds[count] for count in (0, *np.cumsum(reads))]

    def _read_into(self, part: Bytes, file: _File, first: int) -> None:
        try:
            with open(file.path, "rb") as opened:
                opened.seek(_HEADER_BYTES + first * _IMAGE_BYTES)
                found = opened.readinto(part.reshape(-1).data)
        except OSError as error:
            raise BadDataError(f"{file.path}: {error.strerror or error}") from error
        if found != part.nbytes:
            raise BadDataError(f"{file.path}: ends too early; it has become shorter since it was checked")


class _File:
    """An uncompressed IDX file of images, as rank 0 knows it."""

    def __init__(self, path: Path, images: Bytes) -> None:
        self.path = str(path)
        self.images = len(images)
        self._digest = digest(images)

    def check(self, *, content: bool) -> None:
        """BadDataError where this rank does not see the file that rank 0 saw."""
        where = f"{self.path} on {platform.node()}"
        try:
            size = Path(self.path).stat().st_size
            if size != _HEADER_BYTES + self.images * _IMAGE_BYTES:
                found = f"{size:,} bytes, another size than on rank 0"
                raise BadDataError.of("other file", where=where, found=found)
            if content and digest(self.map()) != self._digest:
                raise BadDataError.of("other file", where=where, found="other images than on rank 0")
        except OSError as error:
            raise BadDataError.of("other file", where=where, found=error.strerror or error) from error

    def map(self) -> Bytes:
        """The images where they are in the file."""
        shape = (self.images, IMAGE_SIDE, IMAGE_SIDE)
        return np.memmap(self.path, np.uint8, "r", _HEADER_BYTES, shape)


_SOURCES: Mapping[str, Callable[[Comm, Dataset | None, Path], FileSource]] = {
    kind.option: kind for kind in (ShardSource, MpiIoSource, ScatterSource)
}
READINGS = ("broadcast", *_SOURCES)
"""The values of ``--reading``."""


def open_source(
    reading: str, dataset: str, data_dir: Path | None, comm: Comm, log: Log, cache_dir: Path | None = None
) -> Source:
    """The data set (as in `load_dataset`) for the ranks of ``comm``, by one of `READINGS`; collective.

    Rank 0 checks all files first, so that damaged ones are one error on all ranks: AgreedError, or a
    TrainError that all ranks raise.
    """
    data = on_rank_0_alone(comm, lambda: load_dataset(dataset, data_dir, cache_dir, log=log))
    if reading == "broadcast":
        return BroadcastSource(comm, broadcast_dataset(data, comm))
    name = comm.bcast(data.name if data else None, root=0)
    if name == "synthetic":
        raise BadRequestError.of("no file to read", reading=reading)
    return _SOURCES[reading](comm, data, cache_dir or default_cache())


def _announce(data: Dataset, cache: Path) -> tuple[list[_File], str, str, Bytes, Bytes]:
    """Return the description of the data that rank 0 sends to the other ranks."""
    files = [
        _File(path or _unpacked(images, cache), images)
        for path, images in ((data.train_file, data.train_images), (data.test_file, data.test_images))
    ]
    return files, data.name, data.source, data.train_labels, data.test_labels


def _unpacked(images: Bytes, cache: Path) -> Path:
    """A file in ``cache`` with ``images`` as IDX, written unless it is there; TrainError if it cannot be."""
    path = cache / "unpacked" / f"{digest(images)}.idx3-ubyte"
    content = bytes([0, 0, 8, images.ndim]) + np.array(images.shape, ">u4").tobytes() + images.tobytes()
    try:
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, lambda file: file.write(content))
    except OSError as error:
        raise TrainError.of("not unpacked", path=path, reason=error.strerror or error) from error
    return path


def _node(comm: Comm) -> Any:
    """The ranks of this rank's node, in the order of ``comm``."""
    from mpi4py import MPI

    return comm.Split_type(MPI.COMM_TYPE_SHARED, key=comm.Get_rank())
