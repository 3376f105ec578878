"""The request for a binding, and the binding."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from hpclaunch.cpuset import format_cpu_list
from hpclaunch.text_table import text_table

Order = Literal["gpu", "numa"]


class BindingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How the ranks of one node are to be bound."""

    tasks_per_node: int
    cpus_per_task: int | None = None
    gpus_per_task: int | None = None
    threads_per_core: int = 1
    order: Order = "gpu"
    share_cores: bool = False


class RankBinding(msgspec.Struct, frozen=True, kw_only=True):
    """The cores, memory and GPUs of one local rank."""

    local_rank: int
    cpus: tuple[int, ...]
    gpus: tuple[int, ...] = ()
    numa: tuple[int, ...] = ()
    l3: tuple[int, ...] = ()
    nic: str | None = None


class NodeBinding(msgspec.Struct, frozen=True, kw_only=True):
    """The binding of one node: one entry per local rank, in order."""

    ranks: tuple[RankBinding, ...]
    notes: tuple[str, ...] = ()


def rank_table(
    ranks: Sequence[RankBinding], heading: str, last_column: Sequence[str], width: int | None = None
) -> str:
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
    return text_table(rows, ("rank", "CPUs", "NUMA", "L3", "GPU", heading), width=width, drop=("L3", "NUMA"))
