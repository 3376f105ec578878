"""A profile written or repaired from a probe: what is wrong or new, with the probe as its source. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from hpclaunch.errors import BadInputError
from hpclaunch.probes.compare_probe import ProbeFile, Row, cluster_of, compare
from hpclaunch.scheduler.cluster_facts import ClusterFacts, QueueFacts
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.site.asked_cluster import Wanted, cluster_profile
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.new_profile import queue_keys
from hpclaunch.site.schema import SiteProfile

_SOURCE = "probe"
_OF_THE_NODE = ("node.cores", "node.threads_per_core", "node.gpus")
"""Facts of which one that is wrong makes the rest of the node's description doubtful."""
_BY_HAND = ("storage.", "software.", "two ranks", "scheduler.launcher", "fabric.")


def profile_of(
    probe: ProbeFile, name: str, file_name: str, profile: SiteProfile, own: Mapping[str, Any] | None
) -> str:
    """Return the YAML of a profile ``name`` with what the probe showed.

    Where ``profile`` has this name it is repaired: ``own``, the user's own file of it, is changed, a shipped
    one is extended. Else a new profile begins with the generic one. Raises BadInputError where nothing is to
    be written.
    """
    facts, rows = cluster_of(probe), compare(probe, profile)
    generic, title = f"generic-{probe.scheduler}", get_scheduler(probe.scheduler).title
    if profile.name == name:
        changes = _repairs(facts, rows, profile)
        document = {"schema": 1, "name": name, "description": profile.description, "extends": name}
        document = dict(own or document)
    else:
        changes = _new_site(facts, load_site(generic))
        about = f"{facts.cluster or name}, as its {title} describes it"
        document = {"schema": 1, "name": name, "description": about, "extends": generic}
        document["status"] = "production"
    if not changes:
        raise BadInputError("there is nothing to repair: no fact of the profile is wrong or new")
    source = {"checked": probe.day, "evidence": "measured", "note": f"{title} {facts.version or ''}".strip()}
    changes["sources"] = {_SOURCE: {"url": f"probe:{file_name}", **source}}
    text = yaml.safe_dump(_merged(document, changes), sort_keys=False, allow_unicode=True, width=110)
    head = f"# Written by hpclaunch sites probe from {file_name}, {probe.day}.\n"
    for row in rows:
        if row.verdict == "wrong" and row.key.startswith(_BY_HAND):
            head += f"# To be decided by hand: {row.key} is {row.profile}, measured: {row.measured}\n"
    return head + text


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        base[key] = _merged(dict(base[key]), value) if both else value
    return base


def _new_site(facts: ClusterFacts, base: SiteProfile) -> dict[str, Any]:
    """Return the keys of a cluster without a profile: the node for jobs with GPUs, and all queues."""
    any_gpu = any(kind.gpus for kind in facts.nodes)
    want = Wanted(nodes=1, queue=None, gpu_type=None, gpus=any_gpu)
    asked = cluster_profile(base, facts, want, "the probe")
    if asked is None:
        raise BadInputError("the scheduler described no node that takes jobs", "probe on a login node")
    found = asked.profile
    parts: dict[str, Any] = {
        "scheduler": _differing(found.scheduler, base.scheduler),
        "queues": _queues(facts, found),
        "node": {**msgspec.to_builtins(found.node), "source": _SOURCE},
        "binding": _differing(found.binding, base.binding),
    }
    return {key: part for key, part in parts.items() if part}


def _queues(facts: ClusterFacts, profile: SiteProfile) -> dict[str, Any]:
    """Return all queues; those to other nodes than the described one only for jobs that name them."""
    has_gpus = bool(profile.node and profile.node.gpus)
    found = {}
    for queue in sorted(facts.queues, key=lambda queue: queue.name not in profile.queues):
        keys = {**queue_keys(queue, has_gpus=has_gpus), "source": _SOURCE}
        if queue.preemptable:
            keys["preemptable"] = True
        if queue.only_for:
            keys |= {"by_request": True, "note": f"only for {queue.only_for}"}
        if queue.name not in profile.queues and not (queue.preemptable or queue.only_for):
            keys["automatic"] = False
        found[queue.name] = keys
    return found


def _differing(found: msgspec.Struct, base: msgspec.Struct) -> dict[str, Any]:
    before = msgspec.to_builtins(base)
    changed = {key: value for key, value in msgspec.to_builtins(found).items() if before.get(key) != value}
    return {**changed, "source": _SOURCE} if changed else {}


def _repairs(facts: ClusterFacts, rows: tuple[Row, ...], profile: SiteProfile) -> dict[str, Any]:
    changed = [row for row in rows if row.verdict in ("wrong", "new") and not row.key.startswith(_BY_HAND)]
    wrong = {row.key for row in changed if row.verdict == "wrong"}
    node: dict[str, Any] = {}
    if wrong.intersection(_OF_THE_NODE):
        new = _new_site(facts, msgspec.structs.replace(profile, queues={}, node=None))
        # A null for each key of a node that is no longer believed.
        cleared = dict.fromkeys(msgspec.to_builtins(profile.node), None) if profile.node else {}
        node = {"node": cleared | new["node"], "binding": new.get("binding", {})}
    measured = {queue.name: queue for queue in facts.queues}
    tree: dict[str, Any] = {}
    for row in changed:
        _repair(tree, row, measured)
    return tree | node


def _repair(tree: dict[str, Any], row: Row, measured: Mapping[str, QueueFacts]) -> None:
    top, *below = row.key.split(".")
    if top == "mpi":
        tree["mpi"] = {"plugin": None, "plugin_open": True, "source": _SOURCE}
    elif top == "queues" and len(below) == 1:
        queue = measured.get(below[0])
        keys = {"automatic": False, "source": _SOURCE}
        tree.setdefault("queues", {})[below[0]] = queue and {**queue_keys(queue, has_gpus=False), **keys}
    else:
        _set(tree, [top, *below], row.measured)


def _set(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    tree[path[-1]] = value
    if len(path) > 1:
        tree["source"] = _SOURCE
