"""How fusion, overlap and a timeline change the time of a step of the numpy engine, one thread per rank.

    OMP_NUM_THREADS=1 mpiexec -n 2 python benchmarks/exchange.py [--model cnn] [--allreduce ring] [--rounds 9]

Every way trains some steps in turn, each after a turn of the first way, so that a slow moment of the machine
affects both. Printed are the median time of a step of the slowest rank, and the median ratio to the first
way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("OMPI_MCA_osc", "^ucx")

from mpi4py import MPI  # noqa: E402

from hpclaunch.train.data.synthetic_digits import synthetic_digits  # noqa: E402
from hpclaunch.train.engine.models import NumpyEngine  # noqa: E402
from hpclaunch.train.exchange.gradient_exchange import GradientExchange  # noqa: E402
from hpclaunch.train.run_options import Options  # noqa: E402
from hpclaunch.train.timeline_writer import Timeline  # noqa: E402

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()
BATCH = 64
TURN_S = 0.25
KIB = 1 << 10

Turn = Callable[[int], float]
"""Trains this number of steps and returns seconds per step of the slowest rank."""


def ways(allreduce: str) -> dict[str, Options]:
    """By name; all are compared with the first."""
    found = {"one message, after": Options(allreduce=allreduce)}
    for name, limit in (("1 MiB", KIB * KIB), ("64 KiB", 64 * KIB), ("1 per tensor", 0)):
        found[f"{name}, after"] = Options(allreduce=allreduce, fusion_bytes=limit)
        found[f"{name}, overlapped"] = Options(allreduce=allreduce, fusion_bytes=limit, overlap=True)
    return found


def turn(model: str, options: Options, timeline: Timeline | None = None) -> Turn:
    engine = NumpyEngine(model, "sgd", 0, RANK)
    engine.initialise()
    exchange = GradientExchange(COMM, options, engine, timeline)
    images, labels, _, _ = synthetic_digits(BATCH, 1, RANK)

    def train(steps: int) -> float:
        COMM.Barrier()
        start = time.perf_counter()
        for step in range(steps):
            exchange.gradients(images, labels, step)
            engine.update(1e-6, BATCH * RANKS)
            if timeline:
                timeline.flush()
        return float(COMM.allreduce((time.perf_counter() - start) / steps, op=MPI.MAX))

    return train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="cnn")
    parser.add_argument("--allreduce", default="ring")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        timeline = Timeline(Path(folder) / "timeline.json", time.perf_counter()) if RANK == 0 else None
        turns = {name: turn(given.model, options) for name, options in ways(given.allreduce).items()}
        turns["one message, timeline"] = turn(given.model, Options(allreduce=given.allreduce), timeline)
        base, *others = turns
        steps = max(2, round(TURN_S / min(turns[base](3) for _ in range(3))))
        steps = COMM.bcast(steps)
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in others}
        for _ in range(given.rounds):
            for name in others:
                seconds[name].append((turns[base](steps), turns[name](steps)))
    if RANK == 0:
        print(
            f"{given.model}, {given.allreduce}, {RANKS} ranks, {steps} steps per turn, {given.rounds} turns"
        )
        before = statistics.median(own for pairs in seconds.values() for own, _ in pairs)
        print(f"| {base} | {before * 1e3:.2f} ms | 1 |")
        for name, pairs in seconds.items():
            ratio = statistics.median(other / own for own, other in pairs)
            median = statistics.median(other for _, other in pairs)
            print(f"| {name} | {median * 1e3:.2f} ms | {ratio:.3f} |")


if __name__ == "__main__":
    main()
