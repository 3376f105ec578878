"""Samples of jobs as the sampler writes them, with figures that are known."""

from __future__ import annotations

MIB = 1 << 10
"""In KiB."""
START = 1_700_000_000
EVERY = 30


def node_file(
    ranks: tuple[int, ...],
    *,
    cpus: int = 8,
    looks: int = 11,
    busy: float = 2.0,
    gpu: str = "",
    watts: int | None = None,
    start: int = START,
    run: int = 0,
) -> str:
    """Return the file of a node of 8 CPUs and 64 GiB.

    Each rank keeps ``busy`` CPUs busy and has 1 GiB, 2 GiB in its fifth look; the node has 10 GiB in use;
    ``gpu``: PCI address of the first rank's GPU, 50 % busy; ``watts``: power of the node by Cray's counters.
    """
    lines = [f"rank {rank} {4000 + rank} {start}" for rank in ranks]
    lines.append(f"start {start} every={EVERY} run={run} cpus={cpus} mem={64 << 20} cgroup=none")
    for look in range(looks):
        time = start + look * EVERY
        ticks = int(100 * busy * len(ranks) * look * EVERY)
        energy = "" if watts is None else f" energy={10_000_000 + watts * look * EVERY}"
        lines.append(f"node {time} cpu={ticks}/{100 * cpus * look * EVERY + 1000} mem={10 << 20}{energy}")
        for rank in ranks:
            rss = 2048 * MIB if look == 4 else 1024 * MIB
            lines.append(f"proc {time} {rank} {int(100 * busy * look * EVERY)} {rss} {1500 * MIB} 3")
        if gpu:
            lines.append(f"nvidia-smi {time} 0000{gpu.upper()}, {100 * (look % 2)}, 40000, 81559, 400.00")
    return "\n".join([*lines, f"end {start + (looks - 1) * EVERY}"]) + "\n"
