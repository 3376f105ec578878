"""What PBS says of its nodes and queues: recorded from OpenPBS 23.06.06, and clusters in the same form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.cluster_facts import ClusterFacts, NodeGpus, NodeKind
from hpclaunch.scheduler.pbs import SCHEDULER as PBS
from tests.in_one_test import in_one_test
from tests.scheduler.test_pbs import recorded

ANSWERS = {"queues": "qstat-Q-f-json", "nodes": "pbsnodes-a-json", "server": "qstat-B-f-json"}
HEAD = {"timestamp": 1795214345, "pbs_version": "2022.1.1", "pbs_server": "pbs-01"}


def test_the_recorded_commands_are_those_that_are_asked() -> None:
    said = {name: tuple(recorded(folder)[0]) for name, folder in ANSWERS.items()}
    assert said == PBS.facts_commands


def test_a_recorded_cluster() -> None:
    facts = PBS.parse_facts({name: recorded(folder)[1] for name, folder in ANSWERS.items()})
    assert (facts.version, facts.cluster, facts.whole_nodes) == ("23.06.06", "pbshost", False)
    queues = {queue.name: queue for queue in facts.queues}
    # The default one first; stopped and disabled ones, and those behind a routing queue alone, are left out.
    assert list(queues) == ["debug", "workq", "private", "prod"]
    assert (queues["debug"].max_nodes, queues["debug"].max_walltime) == (2, "01:00:00")
    assert (queues["private"].only_for, queues["debug"].only_for) == ("users=alice", "")
    # prod leads to small (10 nodes, 24 h) and large (11 to 100 nodes, no limit of time).
    assert (queues["prod"].min_nodes, queues["prod"].max_nodes, queues["prod"].max_walltime) == (1, 100, None)
    assert queues["prod"].has_gpus
    assert facts.nodes == (
        NodeKind(
            example="pbshost",
            nodes=1,
            in_service=1,
            queues={"debug": 1, "workq": 1, "private": 1, "prod": 1},
            usable_cpus=64,
            memory_mib=512 << 10,
            gpus=(NodeGpus(type=None, count=4),),
        ),
    )
    assert facts.nodes[0].usable_cores == 64


def test_a_server_that_is_down_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match=r"pbsnodes -a -F json: .*cannot connect to server pbshost"):
        PBS.parse_facts({"nodes": recorded("down-pbsnodes")[1]})


def test_json_that_is_broken_is_a_refusal() -> None:
    broken = CommandResult(exit_code=0, stdout='{"nodes": {"n1": {"comment": "a "quoted" word"}}}', stderr="")
    with pytest.raises(RefusedError, match="pbsnodes -a -F json: it prints no JSON object"):
        PBS.parse_facts({"nodes": broken})


def node(name: str, /, **attributes: Any) -> dict[str, Any]:
    """Return a node in the recorded form; of its resources those that differ."""
    has = {"arch": "linux", "host": name, "mem": "527672488kb", "ncpus": 64, "vnode": name}
    has |= attributes.pop("has", {})
    usual = {"Mom": f"{name}.hsn", "ntype": "PBS", "state": "free", "sharing": "default_shared"}
    return {**usual, **attributes, "resources_available": has}


def cluster(
    nodes: dict[str, Any], queues: dict[str, Any], server: dict[str, Any] | None = None
) -> ClusterFacts:
    flags = {"queue_type": "Execution", "enabled": "True", "started": "True"}
    documents = {
        "nodes": {**HEAD, "nodes": nodes},
        "queues": {**HEAD, "Queue": {name: {**flags, **queue} for name, queue in queues.items()}},
        "server": {**HEAD, "Server": {"pbs-01": server or {}}},
    }
    said = {
        name: CommandResult(exit_code=0, stdout=json.dumps(document), stderr="")
        for name, document in documents.items()
    }
    return PBS.parse_facts(said)


def test_a_queue_leads_to_the_nodes_that_its_chunks_require() -> None:
    """With Qlist, as PBS' administrator's guide has it ("Associating Vnodes With Multiple Queues")."""
    nodes = {
        "g1": node("g1", has={"ngpus": 4, "Qlist": "gpu,all"}),
        "g2": node("g2", has={"ngpus": 4, "Qlist": "gpu,all"}, state="offline,job-busy"),
        "c1": node("c1", has={"Qlist": "cpu,all"}, state="job-exclusive"),
    }
    queues = {
        name: {"default_chunk": {"Qlist": name, "ncpus": 1, "mem": "4gb"}} for name in ("cpu", "gpu", "all")
    }
    facts = cluster(nodes, queues, {"default_queue": "all"})
    assert [(queue.name, queue.has_gpus) for queue in facts.queues] == [
        ("all", True),
        ("cpu", False),
        ("gpu", True),
    ]
    gpus, cpus = facts.nodes
    assert (gpus.nodes, gpus.in_service, gpus.queues) == (2, 1, {"all": 2, "gpu": 2})
    assert (cpus.example, cpus.in_service, cpus.queues, cpus.gpus) == ("c1", 1, {"all": 1, "cpu": 1}, ())
    assert gpus.memory_mib == 527672488 // 1024


def test_a_node_of_one_queue_takes_jobs_of_no_other() -> None:
    facts = cluster({"n1": node("n1", queue="own"), "n2": node("n2")}, {"own": {}, "usual": {}})
    assert facts.nodes[0].queues == {"own": 2, "usual": 1}


def test_the_vnodes_of_a_host_are_one_node() -> None:
    """With a vnode per NUMA node (cgroup hook), the natural vnode has nothing."""
    empty = {"host": "h", "ncpus": 0, "mem": "0kb"}
    half = {"host": "h", "ncpus": 32, "ngpus": 2, "mem": "256gb"}
    (only,) = cluster(
        {"h": node("h", has=empty), "h[0]": node("h[0]", has=half), "h[1]": node("h[1]", has=half)}, {"q": {}}
    ).nodes
    assert (only.example, only.nodes, only.usable_cpus, only.memory_mib) == ("h", 1, 64, 512 << 10)
    assert only.gpus == (NodeGpus(type=None, count=4),)


@in_one_test(
    "sharing, whole",
    [
        ("default_shared", False),
        ("ignore_excl", False),
        ("default_excl", True),
        ("force_exclhost", True),
        ("default_exclhost", True),
    ],
)
def test_nodes_that_no_two_jobs_share(sharing: str, whole: bool) -> None:
    facts = cluster({"n": node("n", sharing=sharing)}, {"q": {}})
    assert (facts.whole_nodes, facts.queues[0].whole_node) == (whole, whole)


@in_one_test(
    "size, mib", [("1tb", 1 << 20), ("2048mb", 2048), (1048576, 1), ("131072kw", 1024), ("odd", None)]
)
def test_sizes(size: str | int, mib: int | None) -> None:
    assert cluster({"n": node("n", has={"mem": size})}, {"q": {}}).nodes[0].memory_mib == mib


def test_a_queue_says_nothing_of_gpus_where_its_nodes_are_not_known() -> None:
    (queue,) = cluster({}, {"q": {"resources_max": {"walltime": "100:00:00"}}}).queues
    assert (queue.has_gpus, queue.max_walltime) == (None, "100:00:00")


def test_another_form_is_a_refusal() -> None:
    listed = CommandResult(exit_code=0, stdout=json.dumps({**HEAD, "nodes": ["n1"]}), stderr="")
    with pytest.raises(RefusedError, match="in a form that is not known"):
        PBS.parse_facts({"nodes": listed})


def test_a_routing_queue_takes_what_one_of_its_queues_takes() -> None:
    short = {"from_route_only": "True", "resources_max": {"nodect": 4, "walltime": "02:00:00"}}
    long = {"from_route_only": "True", "resources_max": {"nodect": 2, "walltime": "100:00:00"}}
    route = {"queue_type": "Route", "route_destinations": "long,short,far@other"}
    nodes = {"n1": node("n1", queue="long"), "n2": node("n2", queue="short"), "n3": node("n3", queue="else")}
    facts = cluster(nodes, {"long": long, "short": short, "route": route, "else": {}})
    taken = {queue.name: (queue.max_nodes, queue.max_walltime) for queue in facts.queues}
    assert taken == {"route": (4, "100:00:00"), "else": (None, None)}
    assert facts.nodes[0].queues == {"route": 2, "else": 1}
