"""Tables with one row per rank, for people: the cells and their alignment."""

from __future__ import annotations

from collections.abc import Sequence

from hpclaunch.binding.node_binding import RankBinding
from hpclaunch.cpuset import format_cpu_list

COLUMNS = ("rank", "CPUs", "NUMA", "L3", "GPU")


def rank_cells(rank: RankBinding) -> tuple[str, ...]:
    """Return the cells of one rank under ``COLUMNS``; ``-`` stands for nothing or unknown."""
    return (
        str(rank.local_rank),
        format_cpu_list(rank.cpus) or "-",
        format_cpu_list(rank.numa) or "-",
        format_cpu_list(rank.l3) or "-",
        ",".join(map(str, rank.gpus)) or "-",
    )


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of equally many cells as text, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return "\n".join("  ".join(cells).rstrip() for cells in padded)
