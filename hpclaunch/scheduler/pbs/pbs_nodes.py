"""The nodes and queues of PBS, as pbsnodes -a, qstat -Q -f and qstat -B -f print them in JSON. Pure.

Attributes follow pbs_node_attributes(7B), pbs_queue_attributes(7B) and pbs_server_attributes(7B) of OpenPBS
23.06, from which answers are recorded (tests/data/pbs). Sites name the types of GPUs each in its own way
(gpu_type, gpu_model, accelerator_model), and hpclaunch requests by none of these: GPUs have a number only.
Of CPUs PBS says ncpus, which the site may count in hardware threads or in cores.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpclaunch.command_result import CommandResult
from hpclaunch.package_data import package_constants
from hpclaunch.scheduler.cluster_facts import ClusterFacts, NodeGpus, NodeKind, QueueFacts, json_facts
from hpclaunch.scheduler.pbs.pbs_directives import pbs_bytes, pbs_time_s
from hpclaunch.walltime import format_walltime

_NODES = package_constants("scheduler/nodes.json", "pbs")
_Attributes = Mapping[str, Any]


def parse_facts(answers: Mapping[str, CommandResult]) -> ClusterFacts:
    """Return what these answers to ``facts_commands`` say. Raises RefusedError with PBS' own words."""
    return json_facts(answers, _NODES.asked, _facts, "PBS describes its nodes")


def _facts(said: Mapping[str, _Attributes]) -> ClusterFacts:
    head = next(iter(said.values()), {})
    every: Mapping[str, _Attributes] = said.get("queues", {}).get("Queue", {})
    hosts = list(_hosts(said.get("nodes", {}).get("nodes", {}).values()))
    default = [each.get("default_queue") for each in said.get("server", {}).get("Server", {}).values()]
    names = sorted(filter(lambda name: _takes_jobs(every[name]), every), key=lambda name: name not in default)
    nodes_of = {
        name: [node for node in hosts if any(_leads(each, node) for each in _destinations(name, every))]
        for name in names
    }
    return ClusterFacts(
        version=head.get("pbs_version"),
        cluster=head.get("pbs_server"),
        queues=tuple(_queue(name, every, nodes) for name, nodes in nodes_of.items()),
        nodes=tuple(
            _node(node, [name for name, nodes in nodes_of.items() if node in nodes]) for node in hosts
        ),
        whole_nodes=_all_whole(hosts),
    )


def _hosts(vnodes: Iterable[_Attributes]) -> Iterator[dict[str, Any]]:
    """Yield each host as one node: a chunk may take of all vnodes of a host (man pbs_resources, CHUNKS)."""
    found: dict[str, dict[str, Any]] = {}
    for vnode in vnodes:
        has = vnode.get("resources_available", {})
        host = str(has.get("host") or vnode.get("Mom"))
        one = found.setdefault(
            host, {**vnode, "host": host, "has": has, "ncpus": 0, "ngpus": 0, "mem": 0, "out": False}
        )
        one["ncpus"] += int(has.get("ncpus", 0))
        one["ngpus"] += int(has.get("ngpus", 0))
        one["mem"] += pbs_bytes(has.get("mem", 0)) or 0
        one["out"] |= not {*str(vnode.get("state", "unknown")).lower().split(",")}.isdisjoint(_NODES.out)
    return (node for node in found.values() if node["ncpus"])


def _takes_jobs(queue: _Attributes) -> bool:
    return (queue.get("enabled"), queue.get("started")) == ("True", "True") and (
        queue.get("from_route_only") != "True"
    )


def _destinations(name: str, every: Mapping[str, _Attributes]) -> list[tuple[str, _Attributes]]:
    """Return the queues here in which a job of the queue may run; a routing queue names them."""
    if every[name].get("queue_type") != "Route":
        return [(name, every[name])]
    named = str(every[name].get("route_destinations", "")).split(",")
    return [(each, every[each]) for each in named if each in every and each != name]


def _leads(destination: tuple[str, _Attributes], node: _Attributes) -> bool:
    """Whether jobs of the queue may run on the node.

    It may be for one queue alone (queue), or have what default_chunk adds to every chunk, such as Qlist.
    Numbers and sizes are amounts of a job, not properties of the node.
    """
    name, queue = destination
    if node.get("queue", name) != name:
        return False
    wanted = {
        key: value
        for key, value in queue.get("default_chunk", {}).items()
        if isinstance(value, str) and pbs_bytes(value) is None
    }
    return all(value in str(node["has"].get(key, "False")).split(",") for key, value in wanted.items())


def _all_whole(nodes: list[dict[str, Any]]) -> bool:
    """Whether a job that says nothing of it gets each node alone (sharing)."""
    own = [str(node.get("sharing", "")).startswith(("default_excl", "force_excl")) for node in nodes]
    return bool(own) and all(own)


def _queue(name: str, every: Mapping[str, _Attributes], nodes: list[dict[str, Any]]) -> QueueFacts:
    own = every[name]
    limits = [{**_limits(queue), **_limits(own)} for _, queue in _destinations(name, every)]
    seconds = _highest([each.get("walltime") for each in limits])
    return QueueFacts(
        name=name,
        kind="queue",
        min_nodes=min((each.get("least", 1) for each in limits), default=1),
        max_nodes=_highest([each.get("most") for each in limits]),
        max_walltime=format_walltime(seconds) if seconds else None,
        whole_node=_all_whole(nodes),
        has_gpus=any(node["ngpus"] for node in nodes) if nodes else None,
        only_for=_only_for(own),
    )


def _only_for(queue: _Attributes) -> str:
    closed = [kind for kind in ("user", "group") if queue.get(f"acl_{kind}_enable") == "True"]
    return " ".join(f"{kind}s={queue.get(f'acl_{kind}s', '')}" for kind in closed)


def _limits(queue: _Attributes) -> dict[str, int]:
    """Return the nodes and seconds that a job may have (resources_min, resources_max), where they are set."""
    most, least = queue.get("resources_max", {}), queue.get("resources_min", {})
    seconds = pbs_time_s(str(most.get("walltime", ""))) or None
    said = {"least": least.get("nodect"), "most": most.get("nodect"), "walltime": seconds}
    return {key: int(value) for key, value in said.items() if value is not None}


def _highest(limits: list[int | None]) -> int | None:
    """Return the limit of a job that may come into any of the queues; None: one has none."""
    return None if None in limits else max(filter(None, limits), default=None)


def _node(node: _Attributes, queues: list[str]) -> NodeKind:
    return NodeKind(
        example=node["host"],
        nodes=1,
        in_service=0 if node["out"] else 1,
        queues=dict.fromkeys(queues, 1),
        usable_cpus=node["ncpus"],
        memory_mib=node["mem"] >> 20 or None,
        gpus=(NodeGpus(type=None, count=node["ngpus"]),) if node["ngpus"] else (),
    )
