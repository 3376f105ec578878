"""The base of every allreduce: its own communicator, the check of the array, messages in segments."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from . import Array

_LENGTH = 40


class CollectiveNumber:
    """Counts collectives and shows the newest, for ``hpclaunch stacks``.

    All ranks call the same allreduces in the same order, so a rank with another number than the other ranks
    is the one that they wait for.
    """

    def __init__(self, file: int) -> None:
        """Show them in an open file."""
        self._count = self._depth = 0
        self._file = file

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Show that this rank is in the next collective, then that it has left it.

        Those within it, which only some ranks may call, do not count.
        """
        self._depth += 1
        if self._depth == 1:
            self._count += 1
            self._show(name, "in")
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._show(name, "out")

    def _show(self, name: str, where: str) -> None:
        os.pwrite(self._file, f"{self._count} {name} {where}".ljust(_LENGTH)[:_LENGTH].encode(), 0)


def _requested() -> CollectiveNumber | None:
    """The count, where the job has the start-up file of ``hpclaunch stacks``; None where there is no room.

    Its file is in memory, and only /proc/PID/fd shows it.
    """
    if not os.environ.get("HPCLAUNCH_STACKS"):
        return None
    path = f"/dev/shm/hpclaunch-collective.{os.getpid()}.{os.urandom(4).hex()}"  # noqa: S108  (O_EXCL)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)
    except OSError:
        return None
    return CollectiveNumber(file)


COLLECTIVES = _requested()
"""Those of this process; None: they are not counted, which costs nothing."""

# Fits a core's cache together with what it is added to; MPI counts (32 bit) never overflow.
SEGMENT_BYTES = 1 << 18


class Algorithm(ABC):
    """An allreduce bound to a communicator. Creating one is collective, and so is every call of it.

    The communicator is duplicated, so that its messages cannot match those of others.
    """

    name: ClassVar[str]

    def __init__(self, comm: MPI.Intracomm, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Prepare for the ranks of ``comm``; ``segment_bytes`` bounds one message (same on all ranks)."""
        self._comm = comm.Dup()
        self._ranks = comm.Get_size()
        self._rank = comm.Get_rank()
        self._segment_bytes = segment_bytes
        self._scratch = np.empty(0, np.uint8)
        self._sent_bytes = 0

    @property
    def bytes_sent(self) -> int:
        """Payload that this rank has sent so far, in bytes, over all calls."""
        return self._sent_bytes

    def buffer(self, items: int, dtype: npt.DTypeLike) -> Array:
        """A zeroed array of ``items`` where `sum` is fastest; valid until `close`. Collective.

        Ordinary memory unless an algorithm has better. Any other array can be summed too.
        """
        return np.zeros(items, dtype)

    def sum(self, array: Array) -> None:
        """Replace ``array`` by the element-wise sum over the ranks' arrays, in place.

        ``array`` is one-dimensional, contiguous, writable and of the same length and dtype (any that
        numpy adds) on all ranks; ValueError otherwise. All ranks end with the same bits.
        """
        flags = array.flags
        if array.ndim != 1 or not flags.c_contiguous or not flags.writeable:
            raise ValueError("allreduce needs a one-dimensional, contiguous, writable array")
        if self._ranks > 1 and array.size > 0:
            if COLLECTIVES is None:
                self._sum(array)
            else:
                with COLLECTIVES.within("allreduce"):
                    self._sum(array)

    @abstractmethod
    def _sum(self, array: Array) -> None:
        """`sum` of an array that has items, on two ranks or more."""

    def close(self) -> None:
        """Free what was taken; collective."""
        self._comm.Free()

    def _exchange(self, send: Array, to: int, receive: Array, source: int, *, add: bool) -> None:
        """Send to one rank while what comes from another is added to, or replaces, ``receive``.

        All messages are non-blocking, so no order of ranks can deadlock. Both sides cut an array into the
        same segments; an empty array makes no message.
        """
        sends = self._start_sends(send, to)
        self._receive(receive, source, add=add)
        MPI.Request.Waitall(sends)

    def _send(self, array: Array, to: int) -> None:
        MPI.Request.Waitall(self._start_sends(array, to))

    def _start_sends(self, array: Array, to: int) -> list[MPI.Request]:
        self._sent_bytes += array.nbytes
        return [self._comm.Isend([part, MPI.BYTE], to) for part in self._segments(array)]

    def _receive(self, array: Array, source: int, *, add: bool) -> None:
        for _ in self._arriving(self._segments(array), source, add=add):
            pass

    def _arriving(self, parts: list[Array], source: int, *, add: bool) -> Iterator[Array]:
        """Each of ``parts`` once what ``source`` sends is in it, or added; the next one travels then."""
        zones = self._landing_zones(parts[0], min(2, len(parts))) if add and parts else parts
        targets = [zones[index % len(zones)][: part.size] for index, part in enumerate(parts)]
        requests = [self._comm.Irecv([target, MPI.BYTE], source) for target in targets[: len(zones)]]
        for index, part in enumerate(parts):
            requests[index].Wait()
            if add:
                np.add(part, targets[index], out=part)
                if len(requests) < len(parts):
                    requests.append(self._comm.Irecv([targets[len(requests)], MPI.BYTE], source))
            yield part

    def _landing_zones(self, array: Array, count: int) -> list[Array]:
        """``count`` reused buffers of one segment each, viewed with the dtype of ``array``."""
        items = self._segment_items(array)
        needed = count * items * array.itemsize
        if self._scratch.nbytes < needed:
            self._scratch = np.empty(needed, np.uint8)
        zones = self._scratch[:needed].view(array.dtype)
        return [zones[index * items : (index + 1) * items] for index in range(count)]

    def _segment_items(self, array: Array) -> int:
        return max(1, min(array.size, self._segment_bytes // array.itemsize))

    def _segments(self, array: Array) -> list[Array]:
        items = self._segment_items(array)
        return [array[start : start + items] for start in range(0, array.size, items)]
