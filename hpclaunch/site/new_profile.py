"""A profile of this machine: the live node as YAML, everything else from a generic profile."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.cluster_facts import ClusterFacts, QueueFacts
from hpclaunch.site.profile_node import VISIBLE, threads_of
from hpclaunch.site.schema import Node, NumaDomain, SiteName, SiteProfile
from hpclaunch.site.site_scheduler import base_profiles
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NodeTopology

_GIB = 1 << 30


def check_name(name: str) -> None:
    """Refuse a name that no profile can have, before anything is written. Raises BadInputError."""
    try:
        msgspec.convert(name, SiteName)
    except msgspec.ValidationError:
        raise BadInputError.case("sites new: name", name=name) from None
    if name in base_profiles():
        raise BadInputError.case("sites new: shipped name", name=name)


def profile_text(
    name: str,
    base: str,
    topology: NodeTopology,
    cpu_model: str,
    host: str,
    day: dt.date,
    queues: Iterable[QueueFacts] = (),
    cluster: Mapping[str, Any] | None = None,
) -> str:
    """Return a profile that extends ``base`` with the node that was measured on ``host``, and its ``queues``.

    ``cluster``: what `of_cluster` tells. What no source reports is left out, never guessed. Raises
    BadInputError for a node that the format cannot describe: offline CPUs, or a numbering that is neither
    spread nor adjacent.
    """
    node = _node(topology, cpu_model)
    scheduler = base_profiles()[base]
    binding: dict[str, Any] = {
        "cpu": scheduler.measured_binding,
        "needs_whole_node": scheduler.binding_needs_whole_node,
    }
    if vendor := node.get("gpu_vendor"):
        binding["gpu_visible_var"] = VISIBLE[vendor]
    document = {"description": f"{name}, node measured on {host}", **(cluster or {})}
    document |= {"node": node, "binding": binding}
    if listed := _queues(queues, has_gpus=bool(topology.gpus)):
        document["queues"] = listed
    notes = "".join(f"# {note}\n" for note in topology.notes)
    return _text(name, base, document, f"# Measured by hpclaunch sites new on {host}, {day}. {_ADD}\n{notes}")


def described_text(
    name: str,
    base: str,
    asked: SiteProfile,
    day: dt.date,
    queues: Iterable[QueueFacts],
    cluster: Mapping[str, Any],
) -> str:
    """Return a profile that extends ``base`` with the nodes and queues as the scheduler describes them."""
    told = msgspec.to_builtins({"node": asked.node, "binding": asked.binding})
    listed = _queues(queues, has_gpus=bool(asked.node and asked.node.gpus))
    document = {"description": asked.description, **cluster, **told, "queues": listed}
    head = f"# By hpclaunch sites new, {day}, from a node that runs no jobs. {_ADD}\n"
    return _text(name, base, document, head)


def of_cluster(facts: ClusterFacts | None, name: str | None) -> dict[str, Any]:
    """Return what a profile tells of the cluster: its scheduler's version, and the name it is known by."""
    release = facts.release if facts else None
    return {
        **({"detect": {"cluster_names": [name]}} if name else {}),
        **({"scheduler": {"version": release}} if release else {}),
    }


def _queues(queues: Iterable[QueueFacts], *, has_gpus: bool) -> dict[str, Any]:
    return {queue.name: queue_keys(queue, has_gpus=has_gpus) for queue in queues}


_ADD = "Add account, queues, modules and fabric."


def _text(name: str, base: str, document: dict[str, Any], head: str) -> str:
    begin = {"schema": 1, "name": name, "description": None, "extends": base, "status": "production"}
    document, stubs = {**begin, **document}, text_beside(__file__, "profile_stubs.txt")
    if document.get("queues"):
        head = head.replace(" queues,", "")
        stubs = stubs.partition("# queues:")[0]
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110) + stubs


def queue_keys(queue: QueueFacts, *, has_gpus: bool) -> dict[str, Any]:
    """Return a queue as a profile lists it: what differs from the usual."""
    without_gpus = has_gpus and queue.has_gpus is False
    return {
        "kind": queue.kind,
        **({"min_nodes": queue.min_nodes} if queue.min_nodes > 1 else {}),
        **_known(max_nodes=queue.max_nodes, max_walltime=queue.max_walltime),
        **({"gpus": False} if without_gpus else {}),
        **({} if queue.whole_node else {"whole_node": False}),
    }


def _node(topology: NodeTopology, cpu_model: str) -> dict[str, Any]:
    cores = topology.cores
    if not cores or not topology.numa_nodes:
        raise BadInputError("this node's cores and NUMA nodes are not known", "write the profile by hand")
    number = {cpu: index for index, core in enumerate(cores) for cpu in core.cpus}
    return {
        "cpu_model": cpu_model,
        "sockets": len({core.socket for core in cores}),
        "cores": len(cores),
        "threads_per_core": len(cores[0].cpus),
        "numbering": _numbering(cores),
        "numa": [
            {"id": each.id, "cores": _cores(number, each.cpus), **_memory(each.memory_bytes)}
            for each in topology.numa_nodes
        ],
        **_l3_groups(cores),
        **_known(reserved_cores=_cores(number, topology.reserved)),
        **_memory(sum(domain.memory_bytes or 0 for domain in topology.numa_nodes if domain.cpus)),
        **_gpus(topology.gpus, number),
        **_nics(topology.nics),
    }


def _l3_groups(cores: tuple[Core, ...]) -> dict[str, list[str]]:
    """Return the cores of each L3 group, nothing unless all are known."""
    groups: dict[int, list[int]] = {}
    for index, core in enumerate(cores):
        if core.l3 is None:
            return {}
        groups.setdefault(core.l3, []).append(index)
    return {"l3_groups": [format_cpu_list(groups[group]) for group in sorted(groups)]}


def _numbering(cores: tuple[Core, ...]) -> str:
    """Return the numbering that fits all cores; raises BadInputError where neither does."""
    for numbering in ("spread", "adjacent"):
        guess = Node(
            cpu_model="",
            cores=len(cores),
            threads_per_core=len(cores[0].cpus),
            numbering=numbering,
            numa=(NumaDomain(id=0),),
        )
        if all(core.cpus == threads_of(guess, index) for index, core in enumerate(cores)):
            return numbering
    raise BadInputError.case("sites new: numbering")


def _cores(number: dict[int, int], cpus: CpuSet) -> str:
    return format_cpu_list(number[cpu] for cpu in cpus if cpu in number)


def _memory(memory_bytes: int | None) -> dict[str, Any]:
    return _known(memory_gib=(memory_bytes or 0) // _GIB)


def _known(**values: Any) -> dict[str, Any]:
    """Return the values that are neither None, empty nor 0."""
    return {key: value for key, value in values.items() if value}


def _gpus(gpus: Sequence[Gpu], number: dict[int, int]) -> dict[str, Any]:
    """Return the GPUs, their vendor and their model; nothing unless the NUMA node of each GPU is known."""
    if not gpus or any(gpu.numa is None for gpu in gpus):
        return {}
    vendor = (gpus[0].vendor or "").lower()
    rows = [
        {"numa": gpu.numa, **_known(cores=_cores(number, gpu.cpus or frozenset()), bus_id=gpu.bus_id)}
        for gpu in gpus
    ]
    return {"gpus": rows, **_known(gpu_vendor=vendor, gpu_model=gpus[0].model)}


def _nics(nics: Iterable[Nic]) -> dict[str, Any]:
    return _known(
        nics=[{"name": nic.name} | ({} if nic.numa is None else {"numa": nic.numa}) for nic in nics]
    )


def cpu_model(cpuinfo: str) -> str:
    """Return the processor's name from /proc/cpuinfo; "unknown" where it has none (many Arm processors)."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "cpu") and value.strip():
            return value.strip()
    return "unknown"
