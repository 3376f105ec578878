"""The partitions of a Slurm cluster, as ``scontrol show partition --oneliner`` prints them. Pure.

Keys and values follow scontrol's manual and slurm.conf's (22.05 to 25.05): MaxTime and MaxNodes are UNLIMITED
or a limit, OverSubscribe=EXCLUSIVE gives whole nodes, State=UP takes jobs and starts them.
"""

from __future__ import annotations

import re

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.scheduler_interface import QueueFacts

COMMAND = ("scontrol", "show", "partition", "--oneliner")
_WALLTIME = re.compile(r"(\d+-)?\d+:\d\d:\d\d")


def parse_partitions(answer: CommandResult) -> tuple[QueueFacts, ...]:
    """Return the partitions that take jobs of users, the default one first. Raises RefusedError."""
    if answer.exit_code != 0:
        said = (answer.stderr or answer.stdout).strip().splitlines() or ["no reason given"]
        raise RefusedError(f"scontrol show partition: {said[0]}")
    rows = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in answer.stdout.splitlines()]
    open_ones = [row for row in rows if "PartitionName" in row and _takes_jobs(row)]
    return tuple(_facts(row) for row in sorted(open_ones, key=lambda row: row.get("Default") != "YES"))


def _takes_jobs(row: dict[str, str]) -> bool:
    return row.get("State", "UP") == "UP" and row.get("RootOnly") != "YES"


def _facts(row: dict[str, str]) -> QueueFacts:
    limits = [int(row[key]) for key in ("MaxNodes", "TotalNodes") if row.get(key, "").isdigit()]
    walltime = row.get("MaxTime", "")
    return QueueFacts(
        name=row["PartitionName"],
        kind="partition",
        min_nodes=max(1, int(row["MinNodes"])) if row.get("MinNodes", "").isdigit() else 1,
        max_nodes=min((limit for limit in limits if limit), default=None),
        max_walltime=walltime if _WALLTIME.fullmatch(walltime) else None,
        whole_node=row.get("OverSubscribe") == "EXCLUSIVE",
        has_gpus="gres/gpu" in row["TRES"] if row.get("TRES", "(null)") != "(null)" else None,
    )
