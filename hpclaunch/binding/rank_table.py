"""Tables with one row per rank, for people: the cells."""

from __future__ import annotations

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
