"""The profile of a cluster that none describes, from its scheduler's own account of nodes and queues. Pure.

A scheduler knows how many GPUs and cores a node has, not where the GPUs are attached: so the ranks bind
themselves at their start. Of several kinds of nodes the job gets one, and it is said which and why.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from hpclaunch.amounts import counted
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.package_data import package_table
from hpclaunch.scheduler.cluster_facts import ClusterFacts, NodeGpus, NodeKind, QueueFacts
from hpclaunch.site.profile_node import VISIBLE
from hpclaunch.site.schema import Binding, Node, Queue, SiteGpu, SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler
from hpclaunch.topology.node_topology import NodeTopology

Vendor = Literal["amd", "nvidia", "intel"]

_NO_TYPE = "GPUs without a type"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A job's request for nodes; None: the request leaves it open."""

    nodes: int
    queue: str | None
    gpu_type: str | None
    gpus: bool | None
    framework: str | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster as the job is planned for it."""

    profile: SiteProfile
    notes: tuple[str, ...]


class _Choice(msgspec.Struct, frozen=True, kw_only=True):
    kind: NodeKind
    gpus: NodeGpus | None
    queues: tuple[QueueFacts, ...]
    """Those of the kind's queues that the job may get, in the order of preference; empty: there are none."""

    @property
    def nodes(self) -> int:
        """The most nodes that one of these queues has."""
        return max((self.kind.queues[queue.name] for queue in self.queues), default=self.kind.nodes)

    @property
    def only_for(self) -> str:
        """The users of the first queue; empty: everybody."""
        return self.queues[0].only_for if self.queues else ""


def cluster_profile(base: SiteProfile, facts: ClusterFacts, want: Wanted, asked: str) -> Asked | None:
    """Return the profile for one job; None: the scheduler describes no node, or hides the named queue.

    ``asked``: what was asked, for messages. Raises BadInputError where no node has what the job wants.
    """
    choices = [choice for kind in facts.nodes for choice in _choices(kind, facts, want.queue)]
    if not choices:
        return None
    found = _fitting(choices, facts, want, asked)
    chosen = min(found, key=lambda choice: _order(choice, facts, want))
    _check_nodes(chosen, want, asked)
    cluster = f"{facts.cluster}, a cluster" if facts.cluster else "A cluster"
    version = f" {facts.version}" if facts.version else ""
    profile = replace(
        base,
        description=f"{cluster} with {site_scheduler(base).title}{version}, as {asked} described it",
        scheduler=replace(
            base.scheduler,
            version=facts.release or base.scheduler.version,
            gpu_request=facts.gpu_request or base.scheduler.gpu_request,
        ),
        queues={queue.name: _queue(queue, chosen, facts) for queue in _named(chosen, facts, want)},
        node=replace(_node(chosen, facts), source=asked),
        binding=_binding(base.binding, chosen.gpus, facts),
    )
    return Asked(profile=profile, notes=tuple(_notes(chosen, choices, facts, want, asked)))


def is_one_of(topology: NodeTopology, facts: ClusterFacts) -> bool:
    """Whether a node may be one of those that the scheduler describes; a login node is not among them."""
    return any(
        kind.cores in (None, len(topology.cores))
        and (
            sum(gpus.count for gpus in kind.gpus) == len(topology.gpus)
            or any(gpus.are_slices for gpus in kind.gpus)
        )
        for kind in facts.nodes
    )


def _check_nodes(chosen: _Choice, want: Wanted, asked: str) -> None:
    """Refuse more nodes with GPUs than there are; of a job without GPUs the scheduler knows best."""
    if chosen.gpus and chosen.nodes < want.nodes:
        have = counted(chosen.nodes, "node")
        raise BadInputError.case(
            "nodes: too many", want=want, have=have, chosen=chosen, has=_has(chosen), asked=asked
        )


def _choices(kind: NodeKind, facts: ClusterFacts, named: str | None) -> list[_Choice]:
    """Return the kind without GPUs and with each type that it has, where a queue leads to it."""
    own = _queues_to(kind, facts.queues, named)
    found = [_Choice(kind=kind, gpus=gpus, queues=own) for gpus in (None, *kind.gpus)]
    reached = bool(own) if facts.has_queues else named is None
    return found if reached and kind.usable_cores else []


def _queues_to(kind: NodeKind, queues: Sequence[QueueFacts], named: str | None) -> tuple[QueueFacts, ...]:
    """Return the named queues; else those in which no job is preempted, open to all where there are such."""
    own = [queue for queue in queues if queue.name in kind.queues]
    if named:
        names = named.split(",")
        return tuple(queue for queue in own if queue.name in names)
    lasting = [queue for queue in own if not queue.preemptable]
    return tuple(filter(lambda queue: not queue.only_for, lasting)) or tuple(lasting)


def _fitting(choices: list[_Choice], facts: ClusterFacts, want: Wanted, asked: str) -> list[_Choice]:
    """Return the choices that have what the job wants; raises BadInputError where there is none."""
    if want.gpu_type is not None:
        return _of_type(choices, want.gpu_type, asked)
    if not want.gpus:
        return [each for each in choices if each.gpus is None]
    return [each for each in choices if each.gpus] or _without_gpus(choices, facts, want, asked)


def _without_gpus(choices: list[_Choice], facts: ClusterFacts, want: Wanted, asked: str) -> list[_Choice]:
    """Return all where no node has GPUs: frameworks run on CPUs, too. Else refuse the queue without them."""
    if not any(kind.gpus for kind in facts.nodes):
        return choices
    every = (each for kind in facts.nodes if kind.gpus for each in _choices(kind, facts, None))
    names = sorted({queue.name for each in every for queue in each.queues})
    raise BadInputError.case(
        "partition: no GPUs", want=want, asked=asked, others=", ".join(names) or "another queue"
    )


def _of_type(choices: list[_Choice], named: str, asked: str) -> list[_Choice]:
    found = [each for each in choices if each.gpus and (each.gpus.type or "").lower() == named.lower()]
    if not found:
        types = ", ".join(_types(choices)) or "none, or the queue has none"
        raise BadInputError.case("GPUs: other type", named=named, asked=asked, types=types)
    return found


def _types(choices: Iterable[_Choice]) -> list[str]:
    named = (each.gpus.type or _NO_TYPE for each in choices if each.gpus)
    return list(dict.fromkeys(named))


def _order(choice: _Choice, facts: ClusterFacts, want: Wanted) -> tuple[bool | int, ...]:
    """The order of preference: open to all, whole GPUs, enough nodes, the first queue, the most nodes."""
    names = [queue.name for queue in facts.queues]
    gpus = choice.gpus
    return (
        bool(choice.only_for),
        gpus is not None and gpus.are_slices,
        choice.nodes < want.nodes,
        choice.kind.in_service < want.nodes,
        gpus is None and bool(choice.kind.gpus),
        min((names.index(queue.name) for queue in choice.queues), default=0),
        -choice.kind.in_service,
        -(gpus.count if gpus else 0),
    )


def _named(choice: _Choice, facts: ClusterFacts, want: Wanted) -> tuple[QueueFacts, ...]:
    """Return the queues of which the script names one: none for a job without GPUs in the usual queue, which
    the site, or a variable of the user's, may change."""
    usual = choice.queues[:1] == facts.queues[:1]
    return () if usual and not want.queue and choice.gpus is None else choice.queues


def _queue(queue: QueueFacts, choice: _Choice, facts: ClusterFacts) -> Queue:
    most = min(filter(None, (queue.max_nodes, choice.kind.queues[queue.name])))
    return Queue(
        kind=queue.kind,
        min_nodes=queue.min_nodes,
        max_nodes=most,
        max_walltime=queue.max_walltime,
        whole_node=queue.whole_node or facts.whole_nodes,
        note=f"only for {queue.only_for}" if queue.only_for else None,
    )


def _node(choice: _Choice, facts: ClusterFacts) -> Node:
    kind, gpus = choice.kind, choice.gpus
    memory = kind.memory_mib or 0
    node = Node(
        cpu_model=kind.arch or "unknown",
        cores=_cores(choice),
        threads_per_core=kind.threads_per_core,
        memory_gib=memory >> 10 or None,
        memory_request=f"{memory}M" if facts.counts_memory and memory else None,
        count=kind.nodes,
        note="Cores that jobs get, counted from 0; their numbers on the node are not known.",
    )
    if gpus is None:
        return node
    return replace(
        node,
        gpus=(SiteGpu(),) * gpus.count,
        gpu_vendor=_vendor(gpus),
        gpu_model=gpus.type,
        gpu_type=gpus.type,
        gpu_slices=gpus.are_slices,
    )


def _cores(choice: _Choice) -> int:
    """Return the cores of a node that a job in any of the queues can have."""
    threads = choice.kind.threads_per_core
    limits = [queue.max_cpus_per_node // threads for queue in choice.queues if queue.max_cpus_per_node]
    return max(1, min([choice.kind.usable_cores or 1, *limits]))


def _vendor(gpus: NodeGpus | None) -> Vendor | None:
    words = (gpus.type or "") if gpus else ""
    if gpus and gpus.are_slices:
        return "nvidia"
    vendors: dict[Vendor, str] = package_table("site/words.yaml")["GPU vendors"]
    forms = {vendor: rf"(^|[^a-z0-9])({pattern})($|[^a-z0-9])" for vendor, pattern in vendors.items()}
    return next((vendor for vendor, form in forms.items() if re.search(form, words.lower())), None)


def _binding(base: Binding, gpus: NodeGpus | None, facts: ClusterFacts) -> Binding:
    vendor = _vendor(gpus)
    return replace(
        base,
        cpu=base.cpu if base.cpu == "cores" and facts.gpu_request is None else "at_start",
        confined=bool(facts.confines_cpus),
        gpu_visible_var=VISIBLE[vendor or "nvidia"] if gpus else None,
        needs_whole_node=False,
    )


def _has(choice: _Choice) -> str:
    if choice.gpus:
        return f"with {choice.gpus.count} x {choice.gpus.type or 'GPU'}"
    return "whose GPUs are not requested" if choice.kind.gpus else "without GPUs"


def _notes(
    chosen: _Choice, choices: list[_Choice], facts: ClusterFacts, want: Wanted, asked: str
) -> Iterator[str]:
    """Yield what the job gets and why, and what else there is."""
    node, types = chosen.kind, _types(choices)
    memory = f", {node.memory_mib >> 10} GiB" if node.memory_mib else ""
    queues = f" ({', '.join(queue.name for queue in chosen.queues)})" if chosen.queues else ""
    cluster = facts.cluster or "this cluster"
    yield (
        f"no profile describes {cluster}; {asked}: {counted(chosen.nodes, 'node')} such"
        f" as {node.example}{queues} {_has(chosen)}, {counted(node.usable_cores or 0, 'core')}{memory}"
    )
    if said := _about_gpus(chosen.gpus, types, want):
        yield said
    if chosen.only_for:
        yield f"{chosen.queues[0].kind} {chosen.queues[0].name} is only for {chosen.only_for}"
    if node.in_service < want.nodes:
        yield f"{node.in_service} of these nodes are in service now: the job may wait long"


def _about_gpus(gpus: NodeGpus | None, types: list[str], want: Wanted) -> str | None:
    if gpus is not None:
        others = ", ".join(each for each in types if each not in (gpus.type, _NO_TYPE))
        return f"other GPUs: {others}; --gpu-type TYPE takes them" if others and not want.gpu_type else None
    if want.gpus:
        return "no node has GPUs: the program runs on CPUs"
    if want.gpus is False or not types:
        return None
    named = f"--gpu-type ({', '.join(types)})" if _NO_TYPE not in types else "--gpus-per-task 1"
    return note_text(f"cluster: {_case(want)}", named=named, framework=want.framework)


def _case(want: Wanted) -> str:
    return "GPU not requested" if want.framework else "no GPU requested"
