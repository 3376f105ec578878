"""The model of allreduce times compared with measurements, and its prediction for 8 to 23,824 ranks.

    mpiexec -n 2 python benchmarks/allreduce_model.py [--sizes 4K,64K,1M,16M] [--rounds 7] [--markdown]

Alpha and beta of messages inside this node come from a fit to exchanges in both directions at once. Gamma
and the cost of a copy come from arrays longer than the caches, added in blocks, and added and written to a
second place, on all ranks at once. Of the rounds the fastest counts; for the algorithms, the median. A
network cannot be measured here: ``--between-us`` and ``--between-gb-s`` describe that of a node. The defaults
are a node of LUMI-G: four Slingshot-11 links of 200 Gbit/s, 2 us (an assumption), eight ranks.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence

os.environ.setdefault("OMPI_MCA_osc", "^ucx")  # it prints errors about windows where that network is missing
import numpy as np
from mpi4py import MPI

from hpclaunch.scaling.allreduce_messages import COSTS, Link, Machine, allreduce_s
from hpclaunch.train.allreduce import ALLREDUCES
from hpclaunch.train.measure_allreduces import size_in_bytes

COMM = MPI.COMM_WORLD
FIT_BYTES = [8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]
LONG_BYTES = 32 << 20
BLOCK_ITEMS = 1 << 14
ROUND_S = 0.02
MANY_RANKS = (8, 64, 512, 4096, 23_824)
MANY_BYTES = (64 << 10, 1 << 20, 16 << 20, 100_000_000)


def fit_link(samples: Sequence[tuple[float, float]]) -> Link:
    """The link that fits ``samples`` of (bytes, seconds) best by relative error.

    Weighted least squares with weights 1/seconds^2. ValueError for samples of fewer than two sizes.
    """
    if len({nbytes for nbytes, _ in samples}) < 2:
        raise ValueError("a line needs samples of two sizes")
    w = [1 / seconds**2 for _, seconds in samples]
    x, y = zip(*samples, strict=True)
    total = sum(w)
    mean_x = sum(wi * xi for wi, xi in zip(w, x, strict=True)) / total
    mean_y = sum(wi * yi for wi, yi in zip(w, y, strict=True)) / total
    spread = sum(wi * (xi - mean_x) ** 2 for wi, xi in zip(w, x, strict=True))
    covariance = sum(wi * (xi - mean_x) * (yi - mean_y) for wi, xi, yi in zip(w, x, y, strict=True))
    slope = max(0.0, covariance / spread)
    return Link(max(0.0, mean_y - slope * mean_x), slope)


def round_s(call: Callable[[], object], rounds: int) -> list[float]:
    """By round, the mean of its calls and of the ranks."""
    COMM.Barrier()
    start = time.perf_counter()
    for _ in range(3):
        call()
    once = float(COMM.bcast((time.perf_counter() - start) / 3))
    repeats, samples = max(2, int(ROUND_S / max(once, 1e-7))), []
    for _ in range(rounds):
        COMM.Barrier()
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        seconds = (time.perf_counter() - start) / repeats
        samples.append(float(sum(COMM.allgather(seconds))) / COMM.Get_size())
    return samples


def exchange_s(nbytes: int, rounds: int) -> float:
    """Of a message to the right while one comes from the left."""
    right, left = (COMM.Get_rank() + 1) % COMM.Get_size(), (COMM.Get_rank() - 1) % COMM.Get_size()
    out, into = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    return min(round_s(lambda: COMM.Sendrecv(out, right, 0, into, left, 0), rounds))


A, B = np.zeros((2, LONG_BYTES // 4), np.float32)


def add_blocks(*, copy: bool) -> None:
    """Sum two arrays block by block, and perhaps write each sum to both."""
    for start in range(0, A.size, BLOCK_ITEMS):
        a, b = A[start : start + BLOCK_ITEMS], B[start : start + BLOCK_ITEMS]
        np.add(a, b, out=a)
        if copy:
            np.copyto(b, a)


def measured_machine(ranks_per_node: int, between: Link, rounds: int) -> Machine:
    """This node's figures, and the links between nodes as given."""
    inside = fit_link([(nbytes, exchange_s(nbytes, rounds)) for nbytes in FIT_BYTES])
    add = min(round_s(lambda: add_blocks(copy=False), rounds)) / LONG_BYTES
    both = min(round_s(lambda: add_blocks(copy=True), rounds)) / LONG_BYTES
    copy = max(0.0, both - add)
    if not inside.s_per_byte:
        raise SystemExit("longer messages took no longer: this machine is too busy to be measured")
    return Machine(ranks_per_node, inside, between, add, copy)


def measured_s(algorithm: str, nbytes: int, rounds: int) -> float:
    """Of our algorithm, in the buffer that it likes best."""
    allreduce = ALLREDUCES[algorithm](COMM)
    array = allreduce.buffer(nbytes // 4, np.float32)
    seconds = statistics.median(round_s(lambda: allreduce.sum(array), rounds))
    allreduce.close()
    return seconds


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool) -> None:
    """Names to the left, numbers to the right."""
    if markdown:
        print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1))
        print(*("| " + " | ".join(row) + " |" for row in rows), sep="\n")
        return
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join([row[0].ljust(widths[0]), *cells]))


def microseconds(seconds: float) -> str:
    """Three digits that mean something."""
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Measure on all ranks, print on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", default="4K,64K,1M,16M")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ranks-per-node", type=int, default=8)
    parser.add_argument("--between-us", type=float, default=2.0)
    parser.add_argument("--between-gb-s", type=float, default=100.0)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    ranks = COMM.Get_size()
    if ranks < 2:
        raise SystemExit("two ranks or more are needed: mpiexec -n 2 python benchmarks/allreduce_model.py")
    between = Link(options.between_us * 1e-6, 1e-9 / options.between_gb_s)
    here = measured_machine(ranks, between, options.rounds)
    sizes = [size_in_bytes(text) for text in options.sizes.split(",")]
    measured = {(name, size): measured_s(name, size, options.rounds) for name in COSTS for size in sizes}
    if COMM.Get_rank() > 0:
        return
    print(f"{time.strftime('%Y-%m-%d')}, {ranks} ranks, {MPI.Get_library_version().splitlines()[0].strip()}")
    speeds = (
        f"{name} {1e-9 / s_per_byte:.1f} GB/s"
        for name, s_per_byte in {
            "beta": here.inside.s_per_byte,
            "gamma": here.add_s_per_byte,
            "copies": here.copy_s_per_byte,
        }.items()
        if s_per_byte
    )
    print(f"{platform.machine()}: alpha {here.inside.latency_s * 1e6:.2f} us, {', '.join(speeds)}\n")
    rows = []
    for (name, size), seconds in measured.items():
        model = allreduce_s(name, ranks, size, here)
        rows.append([name, f"{size:,}", microseconds(seconds), microseconds(model), f"{seconds / model:.2f}"])
    head = ["algorithm", "bytes", "measured us", "model us", "measured / model"]
    print_table(head, rows, markdown=options.markdown)
    many = Machine(options.ranks_per_node, here.inside, between, here.add_s_per_byte, here.copy_s_per_byte)
    print(
        f"\nThe model, microseconds, {many.ranks_per_node} ranks a node as above inside, "
        f"{options.between_us:g} us and {options.between_gb_s:g} GB/s a node between:\n"
    )
    rows = [
        [name, f"{size:,}", *(microseconds(allreduce_s(name, p, size, many)) for p in MANY_RANKS)]
        for size in MANY_BYTES
        for name in COSTS
    ]
    head = ["algorithm", "bytes", *(f"{p:,} ranks" for p in MANY_RANKS)]
    print_table(head, rows, markdown=options.markdown)


if __name__ == "__main__":
    main()
