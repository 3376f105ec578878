"""Sum known values over the ranks, compare every element exactly, and time it.

On some machines a library silently returns wrong sums (NCCL's LL128 on GH200 with Slingshot, NVIDIA/nccl
issue 2001). The values are small whole numbers: every order of additions gives the same float32 sum, and any
other sum is wrong. A launcher runs this file, or its text with ``-c``: it imports nothing from hpclaunch.
Rank 0 prints one line, ``MARK`` and a JSON object.
"""

from __future__ import annotations

import argparse
import importlib
import json
import socket
import sys
import time
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

MARK = "HPCLAUNCH-ALLREDUCE "
_PERIOD = 251  # a prime: no chunk of a ring starts at the same value as its neighbour
_FACTORS = 8
# _PERIOD x the mean factor x ranks stays below 2**24, up to which float32 holds every whole number.
MAX_RANKS = 14000


class Sums(Protocol):
    """A way to sum over the ranks."""

    rank: int
    size: int
    library: str

    def sum(self, array: Array) -> tuple[Array, float]:
        """Return the sum of all ranks' arrays, and the seconds that the allreduce alone took."""

    def gather(self, item: Any) -> list[Any]:
        """Return every rank's item, on all ranks."""

    def close(self) -> None:
        """Shut it down, so that no rank waits for another at exit."""


class MpiSums:
    """MPI_Allreduce of host memory."""

    def __init__(self) -> None:
        self._mpi: Any = importlib.import_module("mpi4py.MPI")
        self._comm = self._mpi.COMM_WORLD
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self.library = self._mpi.Get_library_version().strip("\0 \n").splitlines()[0]

    def sum(self, array: Array) -> tuple[Array, float]:
        """Sum with MPI."""
        result = array.copy()
        self._comm.Barrier()
        start = time.perf_counter()
        self._comm.Allreduce(array, result, op=self._mpi.SUM)
        return result, time.perf_counter() - start

    def gather(self, item: Any) -> list[Any]:
        """Gather with MPI."""
        return list(self._comm.allgather(item))

    def close(self) -> None:
        """Do nothing: MPI ends automatically."""


class HorovodSums:
    """Horovod's allreduce of torch tensors, on the GPU of this rank where there is one."""

    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._hvd: Any = importlib.import_module("horovod.torch")
        self._hvd.init()
        self.rank, self.size = self._hvd.rank(), self._hvd.size()
        self._device = "cpu"
        if self._torch.cuda.is_available():
            self._device = f"cuda:{self._hvd.local_rank() % self._torch.cuda.device_count()}"
        nccl = self._hvd.nccl_built()
        through = "NCCL" if nccl and self._device != "cpu" else "its CPU operations"
        self.library = f"Horovod on {self._device.partition(':')[0]}, through {through}"

    def sum(self, array: Array) -> tuple[Array, float]:
        """Sum with Horovod; copies between host and GPU are not timed."""
        tensor = self._torch.from_numpy(array.copy()).to(self._device)
        self.gather(0)
        start = time.perf_counter()
        result = self._hvd.allreduce(tensor, op=self._hvd.Sum, name="known")
        if self._device != "cpu":
            self._torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        return result.cpu().numpy(), seconds

    def gather(self, item: Any) -> list[Any]:
        """Gather with Horovod."""
        return list(self._hvd.allgather_object(item))

    def close(self) -> None:
        """Shut down on all ranks."""
        self._hvd.shutdown()


class Size(NamedTuple):
    """The result for one buffer size, over all ranks."""

    message_bytes: int
    seconds: float
    """Fastest round of the slowest rank."""
    bus_gb_s: float
    """2(p-1)/p x bytes / time, as nccl-tests define it; 0 for one rank."""
    wrong: int
    """Elements that were wrong, over all ranks and rounds."""
    first_wrong: str | None


def contribution(rank: int, items: int, round_: int) -> Array:
    """Return a rank's values in a round: whole numbers from 1 to 251 x 8, different in every round."""
    values = ((np.arange(items) + round_) % _PERIOD + 1).astype(np.float32)
    given: Array = values * np.float32(rank % _FACTORS + 1)
    return given


def expected(ranks: int, items: int, round_: int) -> Array:
    """Return the exact sum of all ranks' contributions."""
    factor = sum(rank % _FACTORS + 1 for rank in range(ranks))
    total: Array = contribution(0, items, round_) * np.float32(factor)
    return total


def measure(sums: Sums, message_bytes: int, rounds: int) -> Size:
    """Sum a buffer of ``message_bytes`` bytes several times; collective."""
    items = max(1, message_bytes // 4)
    seconds: list[float] = []
    wrong, first = 0, None
    for round_ in range(rounds):
        mine = contribution(sums.rank, items, round_)
        result, taken = sums.sum(mine)
        seconds.append(max(sums.gather(taken)))
        right = expected(sums.size, items, round_)
        bad = (result != right).nonzero()[0]
        wrong += len(bad)
        if len(bad) and first is None:
            i = int(bad[0])
            where = f"rank {sums.rank} on {socket.gethostname()}, element {i} of {items}"
            first = f"{where}: {result[i]}, not {right[i]}"
    found = sums.gather((wrong, first))
    best = min(seconds)
    share = 2 * (sums.size - 1) / sums.size
    return Size(
        message_bytes=items * 4,
        seconds=best,
        bus_gb_s=share * items * 4 / best / 1e9,
        wrong=sum(count for count, _ in found),
        first_wrong=next((text for _, text in found if text), None),
    )


def main(argv: list[str] | None = None) -> int:
    """Run the test; exit status 0 if every sum was correct, 1 otherwise."""
    parser = argparse.ArgumentParser(description="Sum known values over the ranks and compare them exactly.")
    parser.add_argument("--via", choices=("mpi", "horovod"), default="mpi")
    parser.add_argument("--sizes", default="4096,1048576,16777216", help="bytes, comma-separated")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(argv)
    sums: Sums = MpiSums() if options.via == "mpi" else HorovodSums()
    if sums.size > MAX_RANKS:
        parser.error(f"float32 holds the sums exactly up to {MAX_RANKS} ranks, not {sums.size}")
    sizes = [measure(sums, int(text), options.rounds) for text in options.sizes.split(",")]
    hosts = sorted(set(sums.gather(socket.gethostname())))
    if sums.rank == 0:
        document = {
            "via": options.via,
            "library": sums.library,
            "ranks": sums.size,
            "hosts": hosts,
            "sizes": [size._asdict() for size in sizes],
        }
        sys.stdout.write("\n" + MARK + json.dumps(document) + "\n")
        sys.stdout.flush()
    sums.close()
    return 1 if any(size.wrong for size in sizes) else 0


if __name__ == "__main__":
    sys.exit(main())
