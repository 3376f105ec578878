"""The nodes and queues of a cluster as its scheduler describes them, before any job ran there."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError

_SLICE = re.compile(r"\d+g\.\d+gb", re.IGNORECASE)


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One queue as the scheduler itself describes it."""

    name: str
    kind: str
    """One of ``Scheduler.queue_kinds``."""
    min_nodes: int = 1
    max_nodes: int | None = None
    max_walltime: str | None = None
    """HH:MM:SS or D-HH:MM:SS; None: no limit."""
    whole_node: bool = True
    has_gpus: bool | None = None
    """None: the scheduler does not say."""
    max_cpus_per_node: int | None = None
    """Hardware threads of one job on a node; None: no limit."""
    only_for: str = ""
    """The groups or accounts that may use it, in the scheduler's words; empty: everybody."""
    preemptable: bool = False
    """Jobs of other queues may end its jobs at any time."""


class NodeGpus(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one type in a node."""

    type: str | None
    """The name by which a request calls them, such as ``a100`` or ``1g.5gb``; None: they have none."""
    count: int

    @property
    def are_slices(self) -> bool:
        """Whether they are MIG instances, as the names that NVIDIA gives them say (``1g.5gb``)."""
        return self.type is not None and _SLICE.search(self.type) is not None


class NodeKind(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a cluster that are alike; None: the scheduler does not say."""

    example: str
    """The name of one of them."""
    nodes: int
    """How many there are."""
    in_service: int
    """How many of them run jobs now or could."""
    queues: Mapping[str, int]
    """Name of a queue -> how many of them are in it."""
    sockets: int | None = None
    cores: int | None = None
    """Physical cores of one node."""
    threads_per_core: int = 1
    """Hardware threads of a core that jobs get."""
    usable_cpus: int | None = None
    """Hardware threads of a node that are not reserved for the system."""
    memory_mib: int | None = None
    """Of the one that has the least."""
    gpus: tuple[NodeGpus, ...] = ()
    features: tuple[str, ...] = ()
    """Those that all of them have."""
    arch: str | None = None
    """As ``uname -m`` prints it."""

    @property
    def usable_cores(self) -> int | None:
        """Physical cores of a node that are not reserved."""
        if self.usable_cpus is None:
            return self.cores
        return self.usable_cpus // self.threads_per_core


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as its scheduler describes it; None: it does not say."""

    version: str | None = None
    """As the scheduler prints it; ``release`` has its numbers."""
    cluster: str | None = None
    """Its name."""
    queues: tuple[QueueFacts, ...] = ()
    """Those that take jobs of users, the usual one first."""
    has_queues: bool = True
    """False: jobs name none here, and may run on any node."""
    nodes: tuple[NodeKind, ...] = ()
    whole_nodes: bool = False
    """Every job gets whole nodes, in whatever queue."""
    gpu_request: Literal["gpus-per-node", "gres"] | None = None
    """Slurm: the option that requests GPUs of a node."""
    counts_memory: bool | None = None
    """Memory is given out as cores are: a job gets what it requests."""
    confines_cpus: bool | None = None
    """A job can use none but its own cores (cgroups)."""
    mpi_default: str | None = None
    """Slurm: MpiDefault, the plugin of a plain srun."""

    @property
    def release(self) -> str | None:
        """The version as profiles write it, such as 22.05.8."""
        match = re.match(r"\d+(\.\d+){1,2}", self.version or "")
        return match[0] if match else None


def read_json_answer(answer: CommandResult, asked: str) -> dict[str, Any]:
    """Return the JSON object that the command ``asked`` printed.

    Raises RefusedError with the command's own words, or where it is none.
    """
    said = (answer.stderr.strip() or answer.stdout.strip() or "no reason given").splitlines()
    if answer.exit_code != 0:
        raise RefusedError(f"{asked}: {said[-1]}")
    try:
        document = json.loads(answer.stdout)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise RefusedError(f"{asked}: it prints no JSON object: {answer.stdout.strip()[:80]!r}")
    return document


def merged_kinds(kinds: Iterable[NodeKind]) -> tuple[NodeKind, ...]:
    """Return nodes that are alike as one kind: all but name, queues, features and memory are the same.

    Of memory one may have up to a tenth more than another. Pure. The kind with the most nodes comes first.
    """
    groups: list[NodeKind] = []
    for kind in sorted(kinds, key=lambda kind: kind.memory_mib or 0):
        for index, group in enumerate(groups):
            if _alike(group, kind):
                groups[index] = msgspec.structs.replace(
                    group,
                    nodes=group.nodes + kind.nodes,
                    in_service=group.in_service + kind.in_service,
                    queues=dict(Counter(group.queues) + Counter(kind.queues)),
                    features=tuple(each for each in group.features if each in kind.features),
                )
                break
        else:
            groups.append(kind)
    return tuple(sorted(groups, key=lambda kind: -kind.nodes))


def _alike(group: NodeKind, kind: NodeKind) -> bool:
    same = msgspec.structs.replace(
        kind,
        example=group.example,
        nodes=group.nodes,
        in_service=group.in_service,
        queues=group.queues,
        memory_mib=group.memory_mib,
        features=group.features,
    )
    near = (kind.memory_mib or 0) * 10 <= (group.memory_mib or 0) * 11
    return near and same == group
