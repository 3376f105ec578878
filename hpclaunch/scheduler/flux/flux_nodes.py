"""The nodes and queues of a Flux instance, from its resource set (RFC 20) and its configuration. Pure.

Recorded from flux-core 0.88.0 (tests/data/flux). A resource set has the cores and GPUs of each rank, which is
a node of a system instance, without types and without memory. Queues and limits: man flux-config-queues,
flux-config-policy; an instance without queues has none to name.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpclaunch.command_result import CommandResult
from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.scheduler.cluster_facts import ClusterFacts, NodeGpus, NodeKind, QueueFacts, json_facts
from hpclaunch.scheduler.flux.flux_directives import flux_time_s
from hpclaunch.walltime import format_walltime

_ASKED = {"queues": "flux config get", "nodes": "flux resource R", "up": "flux resource R --states=up"}
_HOSTS = re.compile(r"(?P<name>[^,\[\]]+)(?:\[(?P<numbers>[\d,-]+)\])?(?P<rest>[^,\[\]]*)")
_Table = Mapping[str, Any]


def parse_facts(answers: Mapping[str, CommandResult]) -> ClusterFacts:
    """Return what these answers to ``facts_commands`` say. Raises RefusedError with Flux' own words."""
    status, version = (answers[name].stdout if name in answers else "" for name in ("status", "version"))
    return json_facts(
        answers, _ASKED, lambda said: _facts(said, status, version), "Flux describes its resources"
    )


def _facts(said: Mapping[str, _Table], status: str, version: str) -> ClusterFacts:
    config = said.get("queues", {})
    queues: Mapping[str, _Table] = config.get("queues", {})
    default = config.get("policy", {}).get("jobspec", {}).get("defaults", {}).get("system", {})
    closed = re.findall(r"^(\S+): (?:Job submission is disabled|Scheduling is stopped)", status, re.MULTILINE)
    names = sorted(queues.keys() - closed, key=lambda name: (name != default.get("queue"), name))
    nodes = list(_nodes(said.get("nodes", {})))
    nodes_of = {name: [node for node in nodes if _leads(queues[name], node)] for name in names}
    up = _ranks_of(said.get("up", {}))
    return ClusterFacts(
        version=version.strip() or None,
        queues=tuple(_queue(name, config, own) for name, own in nodes_of.items()),
        has_queues="queues" not in said or bool(queues),
        nodes=tuple(
            _kind(node, up, [name for name, own in nodes_of.items() if node in own]) for node in nodes
        ),
    )


def _ranks_of(resources: _Table) -> frozenset[int]:
    found = resources.get("execution", {}).get("R_lite", ())
    return frozenset(rank for each in found for rank in parse_cpu_list(str(each["rank"])))


def _nodes(resources: _Table) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a resource set, whose names are in the order of their ranks (RFC 20)."""
    execution = resources.get("execution", {})
    properties = {name: parse_cpu_list(str(ranks)) for name, ranks in execution.get("properties", {}).items()}
    names = dict(zip(sorted(_ranks_of(resources)), _hostnames(execution.get("nodelist", ())), strict=True))
    for group in execution.get("R_lite", ()):
        has = {name: len(parse_cpu_list(str(ids))) for name, ids in group["children"].items()}
        for rank in sorted(parse_cpu_list(str(group["rank"]))):
            own = tuple(name for name, ranks in properties.items() if rank in ranks)
            yield {"rank": rank, "host": names[rank], "has": has, "properties": own}


def _hostnames(lists: Any) -> Iterator[str]:
    """Yield the names in hostlists (RFC 29), such as ``node[08-10,12],login``."""
    for match in _HOSTS.finditer(",".join(lists)):
        for part in (match["numbers"] or "").split(","):
            first, _, last = part.partition("-")
            for number in range(int(first), int(last or first) + 1) if first else ("",):
                yield f"{match['name']}{str(number).zfill(len(first))}{match['rest']}"


def _leads(queue: _Table, node: _Table) -> bool:
    """Whether jobs of the queue may run on the node: it has all that ``requires`` names, and no ^name."""
    return all(
        (name.removeprefix("^") in node["properties"]) != name.startswith("^")
        for name in queue.get("requires", ())
    )


def _queue(name: str, config: _Table, nodes: list[dict[str, Any]]) -> QueueFacts:
    """Return a queue with its own limits where it has them, else those of all (flux-config-policy)."""
    every, own = (table.get("policy", {}).get("limits", {}) for table in (config, config["queues"][name]))
    size = {
        side: {**every.get("job-size", {}).get(side, {}), **own.get("job-size", {}).get(side, {})}
        for side in ("min", "max")
    }
    most, least = size["max"].get("nnodes", -1), size["min"].get("nnodes", 1)
    without = size["max"].get("ngpus") == 0
    seconds = flux_time_s(str(own.get("duration", every.get("duration", 0))), "s")
    return QueueFacts(
        name=name,
        kind="queue",
        min_nodes=max(1, least),
        max_nodes=most if most >= 0 else None,
        max_walltime=format_walltime(seconds) if seconds else None,
        whole_node=False,
        has_gpus=not without and any(node["has"].get("gpu") for node in nodes) if nodes else None,
    )


def _kind(node: _Table, up: frozenset[int], queues: list[str]) -> NodeKind:
    cores, gpus = node["has"].get("core", 0), node["has"].get("gpu", 0)
    return NodeKind(
        example=node["host"],
        nodes=1,
        in_service=1 if node["rank"] in up else 0,
        queues=dict.fromkeys(queues, 1),
        cores=cores,
        usable_cpus=cores,
        gpus=(NodeGpus(type=None, count=gpus),) if gpus else (),
        features=node["properties"],
    )
