"""The nodes and queues of a cluster as its scheduler describes them, before any job ran there."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError

_SLICE = re.compile(r"\d+g\.\d+gb", re.IGNORECASE)


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One queue as the scheduler itself describes it."""

    name: str
    kind: str
    min_nodes: int = 1
    max_nodes: int | None = None
    max_walltime: str | None = None
    whole_node: bool = True
    has_gpus: bool | None = None
    max_cpus_per_node: int | None = None
    only_for: str = ""
    preemptable: bool = False


class NodeGpus(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one type in a node."""

    type: str | None
    count: int

    @property
    def are_slices(self) -> bool:
        """Whether they are MIG instances, as the names that NVIDIA gives them say (``1g.5gb``)."""
        return self.type is not None and _SLICE.search(self.type) is not None


class NodeKind(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a cluster that are alike; None: the scheduler does not say."""

    example: str
    nodes: int
    in_service: int
    queues: Mapping[str, int]
    sockets: int | None = None
    cores: int | None = None
    threads_per_core: int = 1
    usable_cpus: int | None = None
    memory_mib: int | None = None
    gpus: tuple[NodeGpus, ...] = ()
    features: tuple[str, ...] = ()
    arch: str | None = None

    @property
    def usable_cores(self) -> int | None:
        """Physical cores of a node that are not reserved."""
        if self.usable_cpus is None:
            return self.cores
        return self.usable_cpus // self.threads_per_core


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as its scheduler describes it; None: it does not say."""

    version: str | None = None
    cluster: str | None = None
    queues: tuple[QueueFacts, ...] = ()
    has_queues: bool = True
    nodes: tuple[NodeKind, ...] = ()
    whole_nodes: bool = False
    gpu_request: Literal["gpus-per-node", "gres"] | None = None
    counts_memory: bool | None = None
    confines_cpus: bool | None = None

    @property
    def release(self) -> str | None:
        """The version as profiles write it, such as 22.05.8."""
        match = re.match(r"\d+(\.\d+){1,2}", self.version or "")
        return match[0] if match else None


def json_facts(
    answers: Mapping[str, CommandResult],
    asked: Mapping[str, str],
    facts: Callable[[dict[str, dict[str, Any]]], ClusterFacts],
    describes: str,
) -> ClusterFacts:
    """Return what ``facts`` reads in the JSON objects that the commands ``asked`` printed, by name.

    Raises RefusedError with a command's own words, or where it printed something else.
    """
    said = {name: _json_object(answers[name], words) for name, words in asked.items() if name in answers}
    try:
        return facts(said)
    except (AttributeError, KeyError, TypeError, ValueError, BadInputError) as error:
        raise RefusedError(f"{describes} in a form that is not known: {error!r}") from None


def _json_object(answer: CommandResult, asked: str) -> dict[str, Any]:
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
    aside = ("example", "nodes", "in_service", "queues", "memory_mib", "features")
    same = msgspec.structs.replace(kind, **{name: getattr(group, name) for name in aside})
    near = (kind.memory_mib or 0) * 10 <= (group.memory_mib or 0) * 11
    return near and same == group
