"""The table of ranks that a binding and a judgement print."""

from __future__ import annotations

from collections.abc import Sequence

from hpclaunch.binding.node_binding import RankBinding
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.text_table import text_table


def rank_table(ranks: Sequence[RankBinding], heading: str, last_column: Sequence[str]) -> str:
    """Return one line per rank, ``-`` for nothing or unknown; ``last_column`` has one cell per rank."""
    rows = [
        (
            str(rank.local_rank),
            format_cpu_list(rank.cpus) or "-",
            format_cpu_list(rank.numa) or "-",
            format_cpu_list(rank.l3) or "-",
            ",".join(map(str, rank.gpus)) or "-",
            last,
        )
        for rank, last in zip(ranks, last_column, strict=True)
    ]
    return text_table(rows, ("rank", "CPUs", "NUMA", "L3", "GPU", heading))
