"""Which nodes a job's last attempt blames: those to leave out of the next."""

from __future__ import annotations

import re

from hpclaunch.job.model import JobRecord

# What srun and slurmstepd write into the log where a node is at fault, tried with 22.05.8 except the last,
# which is PMIx' and known from its source. A program that fails on a node does not make the node bad.
_NODE_WORDS = (
    r"Node failure on (?P<node>[\w.-]+)",
    r"Task launch for \S+ failed on node (?P<node>[\w.-]+): (?!.*cpu bind)",
    r"[Ll]ost connection to (?:node|host) (?P<node>[\w.-]+)",
)


def first_death(log: str) -> str | None:
    """Return which rank srun saw end badly first; the others were then ended for its sake.

    srun itself exits with the highest code of all its ranks, which may be that of one it ended.
    """
    match = re.search(r"^srun: error: ([\w.-]+): tasks? ([\d,-]+): (.+)$", log, re.MULTILINE)
    return f"first ended rank {match[2]} on {match[1]}: {match[3].strip()}" if match else None


def bad_nodes(record: JobRecord, log: str) -> dict[str, str]:
    """Return node -> why it is blamed: its ranks did not get their binding, or it failed as Slurm says."""
    found: dict[str, str] = {}
    for rank in record.binding.ranks if record.binding else ():
        if not rank.ok:
            found.setdefault(rank.host, f"rank {rank.rank} did not get its binding ({rank.verdict})")
    for line in log.splitlines():
        for pattern in _NODE_WORDS:
            if match := re.search(pattern, line):
                found.setdefault(match["node"].rstrip("."), line.strip())
    return found
