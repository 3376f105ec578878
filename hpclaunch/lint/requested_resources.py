"""What a script asks of the scheduler, as numbers, each with the line that says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.script_directives import Directive, chunks


class Given(NamedTuple):
    """A number and where it stands."""

    value: int
    line: int
    text: str
    """The option as written."""


class Asked(NamedTuple):
    """The job as its directives ask for it; None: not said, or not readable as a number."""

    nodes: Given | None
    tasks: Given | None
    tasks_per_node: Given | None
    cpus_per_task: Given | None
    cpus_per_node: Given | None
    """PBS' ncpus."""
    cpus_per_gpu: Given | None
    gpus: Given | None
    gpus_per_node: Given | None
    gpus_per_task: Given | None
    threads_per_core: Given | None
    walltime_s: Given | None

    @property
    def ranks_per_node(self) -> int | None:
        """Ranks on a node: said, or from all tasks and the nodes."""
        if self.tasks_per_node:
            return self.tasks_per_node.value
        if self.tasks and self.nodes and self.nodes.value:
            return -(-self.tasks.value // self.nodes.value)
        return None


def read_asked(script: Script) -> Asked:
    """Read what the active directives ask."""
    return _slurm(script) if script.kind == "slurm" else _pbs(script)


def directive(script: Script, *options: str) -> Directive | None:
    """Return the last active directive of these options; the last one holds."""
    found = [d for d in script.directives if d.active and d.kind == script.kind and d.option in options]
    return found[-1] if found else None


def whole_number(text: str | None) -> int | None:
    """Read a count, None where it is none."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def gpu_count(text: str | None) -> int | None:
    """Read ``8``, ``a100:8`` or ``a100:4,v100:4``."""
    counts = [whole_number(part.rpartition(":")[2]) for part in (text or "").split(",")]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _gres_gpus(text: str | None) -> int | None:
    """Read the GPUs of ``--gres=gpu:mi250:8,nvme:1``; ``gpu`` alone is one."""
    for part in (text or "").split(","):
        match = re.fullmatch(r"(?:gres[/:])?gpu(?:[:=][A-Za-z][\w.-]*)?(?:[:=](\d{1,6}))?(?:\(.*\))?", part)
        if match:
            return int(match[1] or 1)
    return None


def _nodes(text: str | None) -> int | None:
    """Read ``2`` or ``2-4``, of which the most counts against limits."""
    return whole_number((text or "").split("-")[-1])


def slurm_time_s(text: str | None) -> int | None:
    """Read a time as Slurm does (man sbatch, --time): minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", (text or "").strip())
    if match is None:
        return None
    days, *rest = match.groups()
    first, second, third = (int(part or 0) for part in rest)
    if days is not None:
        return ((int(days) * 24 + first) * 60 + second) * 60 + third
    if rest[2] is not None:
        return (first * 60 + second) * 60 + third
    return first * 60 + second


def pbs_time_s(text: str | None) -> int | None:
    """Read a time as PBS does (man pbs_resources): seconds, M:S or H:M:S."""
    match = re.fullmatch(r"(?:(?:(\d{1,6}):)?(\d{1,6}):)?(\d{1,9})(?:\.\d+)?", (text or "").strip())
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return (hours * 60 + minutes) * 60 + seconds


def _given(found: Directive | None, read: Callable[[str | None], int | None]) -> Given | None:
    value = read(found.value) if found else None
    return Given(value, found.line, found.text) if found and value is not None else None


def _slurm(script: Script) -> Asked:
    def number(option: str, read: Callable[[str | None], int | None] = whole_number) -> Given | None:
        return _given(directive(script, option), read)

    return Asked(
        nodes=number("nodes", _nodes),
        tasks=number("ntasks"),
        tasks_per_node=number("ntasks-per-node"),
        cpus_per_task=number("cpus-per-task"),
        cpus_per_node=None,
        cpus_per_gpu=number("cpus-per-gpu"),
        gpus=number("gpus", gpu_count),
        gpus_per_node=number("gpus-per-node", gpu_count) or number("gres", _gres_gpus),
        gpus_per_task=number("gpus-per-task", gpu_count),
        threads_per_core=number("threads-per-core"),
        walltime_s=number("time", slurm_time_s),
    )


def _pbs(script: Script) -> Asked:
    found = directive(script, "l:select")
    asked = chunks(found.value or "") if found else []
    first = asked[0][1] if asked else {}

    def wanted(name: str) -> Given | None:
        value = whole_number(first.get(name))
        return Given(value, found.line, f"{name}={value}") if found and value is not None else None

    nodes = Given(sum(count for count, _ in asked), found.line, found.text) if found else None
    return Asked(
        nodes=nodes
        or _given(directive(script, "l:nodes"), lambda text: whole_number((text or "").split(":")[0])),
        tasks=None,
        tasks_per_node=wanted("mpiprocs"),
        cpus_per_task=None,
        cpus_per_node=wanted("ncpus"),
        cpus_per_gpu=None,
        gpus=None,
        gpus_per_node=wanted("ngpus"),
        gpus_per_task=None,
        threads_per_core=None,
        walltime_s=_given(directive(script, "l:walltime"), pbs_time_s),
    )
