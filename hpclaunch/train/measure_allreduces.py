"""``mpiexec -n P python -m hpclaunch.train bench``, as ``hpclaunch bench`` starts it: the allreduces in turn.

In each round every algorithm takes its turn at a size, on arrays in its own buffer ("window" where that is
shared memory) and on ordinary ones ("array"); the median over the rounds counts. A round is as many calls as
fill some milliseconds, between two barriers; its time is the mean over the ranks. Bandwidths as nccl-tests
define them: algorithmic, bytes / time; bus, times 2(p-1)/p. With ``copy`` all ranks copy an
array at once, which is the limit of memory: an allreduce in shared memory reads and writes as many bytes.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .allreduce import ALLREDUCES, Algorithm, Array, Comm
from .collective import AgreedError, on_all_ranks
from .exchange.rank_consistency import agree_on_options
from .launch_environment import launcher_rank, threads_per_rank
from .option_parser import QuietParser, options_or_help
from .run_errors import BadRequestError, TrainError
from .run_result import run_versions
from .whole_files import write_whole

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ROUND_S = 0.02
_ITEM_BYTES = 4  # float32
# Those whose own buffer is shared memory; the other algorithms have ordinary buffers only.
_IN_WINDOW = ("hierarchical", "shared")
_COPY = "copy"


class Candidate(NamedTuple):
    """An algorithm and an array to sum with it, of one size."""

    algorithm: str
    buffer: str
    """``window`` or ``array``."""
    sum: Callable[[Array], None]
    array: Array


def size_in_bytes(text: str) -> int:
    """``64K`` is 64 * 1024; argparse.ArgumentTypeError for anything but a positive multiple of an item."""
    digits, unit = (text[:-1], _UNITS[text[-1:].upper()]) if text[-1:].upper() in _UNITS else (text, 1)
    size = int(digits) * unit if digits.isdecimal() else 0
    if size <= 0 or size % _ITEM_BYTES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size of float32 numbers, such as 64K or 1M")
    return size


def _sizes(text: str) -> list[int]:
    return [size_in_bytes(part) for part in text.split(",")]


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in (*ALLREDUCES, _COPY):
            known = ", ".join(sorted((*ALLREDUCES, _COPY)))
            raise argparse.ArgumentTypeError(f"{name!r} is not an algorithm; there are {known}")
    return names


def measure(
    comm: Comm, names: Sequence[str], sizes: Sequence[int], rounds: int, *, fresh: bool = False
) -> list[dict[str, Any]]:
    """One row per size, algorithm and kind of buffer; collective.

    ``fresh``: each rank writes its array again before each sum, and only the sum is timed.
    Raises AgreedError on all ranks where a sum is wrong or an algorithm cannot work here.
    """
    rows = []
    made = on_all_ranks(comm, lambda: {name: ALLREDUCES[name](comm) for name in names if name != _COPY})
    for size in sizes:
        candidates = [found for name in names for found in _candidates(name, made.get(name), size)]
        for candidate in candidates:
            on_all_ranks(comm, lambda candidate=candidate: _check(comm, candidate))  # type: ignore[misc]
        timed = _seconds_per_fresh_call if fresh else _seconds_per_call
        repeats = [_repeats(comm, candidate) for candidate in candidates]
        samples = [
            [timed(comm, candidate, times) for candidate, times in zip(candidates, repeats, strict=True)]
            for _ in range(rounds)
        ]
        for candidate, seconds in zip(candidates, zip(*samples, strict=True), strict=True):
            on_all_ranks(comm, lambda candidate=candidate: _check(comm, candidate))  # type: ignore[misc]
            rows.append(_row(comm.Get_size(), candidate, statistics.median(seconds)))
    for algorithm in made.values():
        algorithm.close()
    return rows


def _candidates(name: str, algorithm: Algorithm | None, size: int) -> list[Candidate]:
    items = size // _ITEM_BYTES
    if algorithm is None:
        other = np.ones(items, np.float32)
        return [Candidate(name, "array", lambda array: np.copyto(array, other), np.zeros(items, np.float32))]
    ordinary = Candidate(name, "array", algorithm.sum, np.zeros(items, np.float32))
    if name not in _IN_WINDOW:
        return [ordinary]
    return [Candidate(name, "window", algorithm.sum, algorithm.buffer(items, np.float32)), ordinary]


def _check(comm: Comm, candidate: Candidate) -> None:
    """Sum whole numbers that differ by place and rank; exact in float32. TrainError where one is wrong."""
    ranks, rank, array = comm.Get_size(), comm.Get_rank(), candidate.array
    if candidate.algorithm == _COPY:
        return
    place = np.arange(array.size, dtype=np.float32) % 1000
    array[:] = place * (rank + 1)
    candidate.sum(array)
    wrong = int(np.count_nonzero(array != place * (ranks * (ranks + 1) // 2)))
    array[:] = 0
    if wrong:
        where = f"{candidate.algorithm}, {array.nbytes} bytes, {candidate.buffer}"
        raise TrainError(f"{where}: {wrong} of {array.size} sums are wrong")


def _seconds_per_call(comm: Comm, candidate: Candidate, repeats: int) -> float:
    comm.Barrier()
    start = time.perf_counter()
    for _ in range(repeats):
        candidate.sum(candidate.array)
    seconds = (time.perf_counter() - start) / repeats
    return float(sum(comm.allgather(seconds)) / comm.Get_size())


def _seconds_per_fresh_call(comm: Comm, candidate: Candidate, repeats: int) -> float:
    """As in a training: what a rank sums is in its own cache, and nothing of the arrays of other ranks."""
    seconds = 0.0
    for _ in range(repeats):
        candidate.array[:] = 0
        comm.Barrier()
        start = time.perf_counter()
        candidate.sum(candidate.array)
        seconds += time.perf_counter() - start
    return float(sum(comm.allgather(seconds)) / comm.Get_size() / repeats)


def _repeats(comm: Comm, candidate: Candidate) -> int:
    """Calls that fill a round, the same on all ranks; those made here warm up."""
    seconds = min(_seconds_per_call(comm, candidate, 3) for _ in range(2))
    return max(2, int(_ROUND_S / max(seconds, 1e-7)))


def _row(ranks: int, candidate: Candidate, seconds: float) -> dict[str, Any]:
    algorithmic = candidate.array.nbytes / seconds / 1e9
    return {
        "algorithm": candidate.algorithm,
        "ranks": ranks,
        "bytes": candidate.array.nbytes,
        "buffer": candidate.buffer,
        "median_us": seconds * 1e6,
        "algbw_gb_s": algorithmic,
        "busbw_gb_s": algorithmic * 2 * (ranks - 1) / ranks if ranks > 1 else None,
    }


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Raises UsageError, HelpRequested and BadRequestError."""
    parser = QuietParser(
        prog=f"python -m {__package__} bench",
        description="Measure the allreduce alone, on all ranks of an MPI job. "
        "The allreduce sums numpy arrays of float32 in host memory, on CPUs; no GPU takes part.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--sizes", type=_sizes, default="4K,64K,1M,16M", help="bytes of an array; K = 1024")
    algorithms = "as in --allreduce; copy: limit of memory"
    add("--algorithms", type=_names, default="ring,shared,mpi", help=algorithms)
    add("--rounds", type=int, default=7, help="the median of which counts")
    add("--fresh", action="store_true", help="write the arrays again before each sum, untimed")
    options = parser.parse_args(argv)
    if options.rounds < 1:
        raise BadRequestError(f"--rounds {options.rounds}: too small", "Use 1 or more.")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Measure on all ranks, print on rank 0; exit 1: a wrong sum, 2: wrong usage, 3: an algorithm fails."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    reports = comm.Get_rank() == 0 and not launcher_rank()
    try:
        requested = options_or_help(comm, lambda: parse(argv))
        if isinstance(requested, str):
            print(requested if reports else "", end="")
            return 0
        agree_on_options(comm, vars(requested))
        hosts: list[str] = comm.allgather(platform.node())
        document = {
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "ranks": comm.Get_size(),
            "host_by_rank": hosts,
            "ranks_by_host": {host: hosts.count(host) for host in dict.fromkeys(hosts)},
            "cpus_by_rank": comm.allgather(sorted(os.sched_getaffinity(0))),
            "cpus_of_host": os.cpu_count(),
            "machine": platform.machine(),
            "threads_per_rank": threads_per_rank(),
            "versions": run_versions(),
            "rounds": requested.rounds,
            "fresh": requested.fresh,
        }
        sums = requested.algorithms, requested.sizes, requested.rounds
        document["rows"] = measure(comm, *sums, fresh=requested.fresh)
    except AgreedError as agreed:
        if reports:
            print(f"{__package__} bench: {agreed}", file=sys.stderr)
        return agreed.error.exit_code
    if reports:
        text = json.dumps(document, indent=2)
        if file := os.environ.get("HPCLAUNCH_RESULT_FILE"):
            write_whole(Path(file), lambda result: result.write(text.encode()))
        print(text)
    return 0
