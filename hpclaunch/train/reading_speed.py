"""How fast a folder's file system is read: sequentially, at random, many small files; by one rank and by all.

The files are written for the measurement, made durable, and dropped from this node's cache before each
reading (posix_fadvise); caches of file servers and disks stay. On several nodes each rank reads what a rank
of another node has written.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .collective import largest, on_all_ranks, on_rank_0, wait_for_all
from .run_errors import BadRequestError, TrainError

if TYPE_CHECKING:
    from mpi4py import MPI

SMALL_FILE_BYTES = 4096
RANDOM_BLOCK_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20
_MOST_RANDOM_BLOCKS = 1024
_KEPT_FREE = 1.1  # of what is needed, so that the measurement does not fill a file system


class Amounts(NamedTuple):
    """What each rank writes and reads."""

    file_bytes: int
    small_files: int


class Pattern(NamedTuple):
    """A way to read; the function reads and returns bytes, and files where these are what is counted."""

    name: str
    read: Callable[[], tuple[int, int]]


def measure_reading(comm: MPI.Intracomm, folder: Path, amounts: Amounts) -> list[dict[str, Any]]:
    """One row per pattern, first of one process alone, then of all ranks at once; collective.

    Rows have ``pattern``, ``processes``, ``bytes``, ``files`` (None for large ones), ``seconds`` of the
    slowest rank, ``mb_s``, ``files_s``, and ``of_one``: MB/s over those of one process. Raises AgreedError
    where the folder cannot be used.
    """
    with _scratch(comm, folder, amounts) as scratch:
        on_all_ranks(comm, lambda: _write(scratch, comm.Get_rank(), amounts))
        source = (comm.Get_rank() + _ranks_of_node(comm)) % comm.Get_size()
        readers = sorted({1, comm.Get_size()})
        rows = []
        for pattern in _patterns(scratch, source, amounts):
            found = [_row(comm, pattern, count) for count in readers]
            rows += [{**row, "of_one": row["mb_s"] / found[0]["mb_s"]} for row in found]
    return rows


def file_system(folder: Path) -> str:
    """Type and mount point of the file system of ``folder`` on this node, such as ``lustre on /scratch``."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    path, found, where = folder.resolve(), "unknown", Path("/")
    for line in mounts:  # proc(5): fields, " - ", type, source, options; later mounts hide earlier ones
        before, _, after = line.partition(" - ")
        point = Path(before.split()[4].encode().decode("unicode_escape"))
        if path.is_relative_to(point) and len(point.parts) >= len(where.parts):
            found, where = f"{after.split()[0]} on {point}", point
    return found


@contextmanager
def _scratch(comm: MPI.Intracomm, folder: Path, amounts: Amounts) -> Iterator[Path]:
    """A new folder in ``folder``, which goes away at the end; collective."""
    scratch = on_rank_0(comm, lambda: _make(folder, amounts, comm.Get_size()))
    try:
        yield scratch
    finally:
        if comm.Get_rank() == 0:
            shutil.rmtree(scratch, ignore_errors=True)


def _make(folder: Path, amounts: Amounts, ranks: int) -> Path:
    needed = ranks * (amounts.file_bytes + amounts.small_files * SMALL_FILE_BYTES)
    try:
        room = os.statvfs(folder)
        if room.f_bavail * room.f_frsize < needed * _KEPT_FREE:
            raise BadRequestError(
                f"--io {folder}: {room.f_bavail * room.f_frsize:,} bytes are free, {needed:,} are needed",
                "Use a smaller --io-size, or another folder.",
            )
        return Path(tempfile.mkdtemp(prefix="hpclaunch-io-", dir=folder))
    except OSError as error:
        hint = "Name a folder that you may write to and that all ranks see."
        raise BadRequestError(f"--io {folder}: {error.strerror or error}", hint) from error


def _write(scratch: Path, rank: int, amounts: Amounts) -> None:
    """This rank's files: numbers that no file system compresses."""
    noise = np.random.default_rng(rank).bytes(_BLOCK_BYTES)
    try:
        with _file(scratch, rank).open("wb") as file:
            for _ in range(amounts.file_bytes // _BLOCK_BYTES):
                file.write(noise)
            file.write(noise[: amounts.file_bytes % _BLOCK_BYTES])
            _to_disk(file.fileno())
        _small(scratch, rank).mkdir()
        for number in range(amounts.small_files):
            with (_small(scratch, rank) / str(number)).open("wb") as file:
                file.write(noise[:SMALL_FILE_BYTES])
                _to_disk(file.fileno())
    except OSError as error:
        raise TrainError(f"{scratch}: cannot be written ({error.strerror or error})") from error


def _patterns(scratch: Path, source: int, amounts: Amounts) -> list[Pattern]:
    """What a rank reads of the files of rank ``source``."""
    path = _file(scratch, source)
    blocks = max(1, amounts.file_bytes // RANDOM_BLOCK_BYTES)
    order = np.random.default_rng(source).permutation(blocks)[:_MOST_RANDOM_BLOCKS]

    def sequential() -> tuple[int, int]:
        with path.open("rb", buffering=0) as file:
            buffer, total = bytearray(_BLOCK_BYTES), 0
            while count := file.readinto(buffer):
                total += count
            _forget(file.fileno())
        return total, 0

    def at_random() -> tuple[int, int]:
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            size, start = RANDOM_BLOCK_BYTES, file.fileno()
            total = sum(len(os.pread(start, size, int(block) * size)) for block in order)
            _forget(file.fileno())
        return total, 0

    def small_files() -> tuple[int, int]:
        total = 0
        for number in range(amounts.small_files):
            with (_small(scratch, source) / str(number)).open("rb", buffering=0) as file:
                total += len(file.read())
                _forget(file.fileno())
        return total, amounts.small_files

    return [
        Pattern("sequential", sequential),
        Pattern(f"random {RANDOM_BLOCK_BYTES >> 10} KiB", at_random),
        Pattern(f"files of {SMALL_FILE_BYTES >> 10} KiB", small_files),
    ]


def _row(comm: MPI.Intracomm, pattern: Pattern, readers: int) -> dict[str, Any]:
    """Read on the first ``readers`` ranks at once, while the other ranks sleep; collective."""
    done: tuple[int, int] = (0, 0)
    error: OSError | None = None
    seconds = 0.0
    comm.Barrier()
    if comm.Get_rank() < readers:
        start = time.perf_counter()
        try:
            done = pattern.read()
        except OSError as caught:
            error = caught
        seconds = time.perf_counter() - start
    wait_for_all(comm)
    on_all_ranks(comm, lambda: _raise(error))
    seconds = max(largest(comm, seconds), 1e-9)
    total, count = (sum(parts) for parts in zip(*comm.allgather(done), strict=True))
    return {
        "pattern": pattern.name,
        "processes": readers,
        "bytes": total,
        "files": count or None,
        "seconds": seconds,
        "mb_s": total / seconds / 1e6,
        "files_s": count / seconds if count else None,
    }


def _raise(error: OSError | None) -> None:
    if error is not None:
        hint = "All ranks must see the folder of --io."
        raise TrainError(f"{error.filename}: {error.strerror or error}", hint) from error


def _to_disk(descriptor: int) -> None:
    os.fsync(descriptor)
    _forget(descriptor)


def _forget(descriptor: int) -> None:
    """Drop a file from this node's cache, as far as its file system can."""
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _file(scratch: Path, rank: int) -> Path:
    return scratch / f"rank{rank}"


def _small(scratch: Path, rank: int) -> Path:
    return scratch / f"small{rank}"


def _ranks_of_node(comm: MPI.Intracomm) -> int:
    """The most that a node has; collective."""
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    ranks = int(comm.allreduce(node.Get_size(), op=MPI.MAX))
    node.Free()
    return ranks
