"""Our allreduce algorithms and MPI_Allreduce side by side, float32 sums in place.

    mpiexec -n 2 python benchmarks/allreduce.py [--sizes 4K,64K,1M,16M,64M] [--rounds 7] [--json]

In each round every algorithm takes its turn at every size; the medians over the rounds are printed, and
the ratio to MPI_Allreduce. Above 1: faster than the library.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

from hpclaunch.train.allreduce import ALLREDUCES
from hpclaunch.train.allreduce.chunks import Array

COMM = MPI.COMM_WORLD
ROUND_S = 0.03


def size_in_bytes(text: str) -> int:
    """``64K`` is 64 * 1024."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1].upper())
    return int(text[:-1]) * unit if unit else int(text)


def seconds_per_call(call: Callable[[], None], repeats: int) -> float:
    """The mean over ``repeats`` calls between two barriers, and over the ranks."""
    COMM.Barrier()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    seconds = (time.perf_counter() - start) / repeats
    return float(sum(COMM.allgather(seconds)) / COMM.Get_size())


def candidates(array: Array) -> dict[str, Callable[[], None]]:
    """Each algorithm on the same buffer, after its sum was checked."""
    ours = {name: make(COMM) for name, make in ALLREDUCES.items()}
    for name, algorithm in ours.items():
        array[:] = COMM.Get_rank() + 1
        algorithm.sum(array)
        if not (array == COMM.Get_size() * (COMM.Get_size() + 1) / 2).all():
            raise SystemExit(f"{name}: wrong sum")
    array[:] = 0

    def library() -> None:
        COMM.Allreduce(MPI.IN_PLACE, array)

    def bound(name: str) -> Callable[[], None]:
        return lambda: ours[name].sum(array)

    return {"MPI_Allreduce": library, **{name: bound(name) for name in ours}}


def measure(sizes: list[int], rounds: int) -> list[dict[str, float | int | str]]:
    """One row a size and algorithm."""
    samples: dict[tuple[int, str], list[float]] = {}
    for size in sizes:
        calls = candidates(np.zeros(size // 4, np.float32))
        repeats = {name: COMM.bcast(_repeats(call)) for name, call in calls.items()}
        for _ in range(rounds):
            for name, call in calls.items():
                samples.setdefault((size, name), []).append(seconds_per_call(call, repeats[name]))
    medians = {key: statistics.median(values) for key, values in samples.items()}
    return [
        {
            "bytes": size,
            "algorithm": name,
            "ranks": COMM.Get_size(),
            "median_us": seconds * 1e6,
            "least_us": min(samples[size, name]) * 1e6,
            "most_us": max(samples[size, name]) * 1e6,
            "times_mpi": medians[size, "MPI_Allreduce"] / seconds,
        }
        for (size, name), seconds in medians.items()
    ]


def _repeats(call: Callable[[], None]) -> int:
    """Calls that fill about a round; the first calls also warm up."""
    seconds = min(seconds_per_call(call, 3), seconds_per_call(call, 3))
    return max(2, int(ROUND_S / max(seconds, 1e-7)))


def main() -> None:
    """Measure on all ranks, print on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", default="4K,64K,256K,1M,4M,16M,64M")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure([size_in_bytes(text) for text in options.sizes.split(",")], options.rounds)
    if COMM.Get_rank() > 0:
        return
    machine = (
        f"{platform.processor() or platform.machine()}, {MPI.Get_library_version().splitlines()[0].strip()}"
    )
    date = time.strftime("%Y-%m-%d")
    if options.json:
        print(json.dumps({"machine": machine, "date": date, "rows": rows}, indent=2))
        return
    print(f"# {date}, {COMM.Get_size()} ranks on {machine}")
    print(f"{'bytes':>10} {'algorithm':<14} {'median us':>10} {'least':>10} {'most':>10} {'x MPI':>6}")
    for row in rows:
        print(
            f"{row['bytes']:>10} {row['algorithm']:<14} {row['median_us']:>10.1f} {row['least_us']:>10.1f} "
            f"{row['most_us']:>10.1f} {row['times_mpi']:>6.2f}"
        )


if __name__ == "__main__":
    main()
