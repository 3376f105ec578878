"""What Flux says of its nodes and queues, recorded from flux-core 0.88.0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.cluster_facts import NodeGpus
from hpclaunch.scheduler.flux import SCHEDULER as FLUX
from tests.in_one_test import in_one_test
from tests.scheduler.test_flux import RECORDED, recorded

NAMES = ("queues", "status", "nodes", "up", "version")
ANSWERS = {name: recorded(f"facts-{name}", RECORDED) for name in NAMES}


def answer(document: Any, exit_code: int = 0, stderr: str = "") -> CommandResult:
    return CommandResult(exit_code=exit_code, stdout=json.dumps(document), stderr=stderr)


def test_every_command_has_a_recorded_answer() -> None:
    assert tuple(FLUX.facts_commands) == NAMES


def test_a_cluster_with_two_kinds_of_nodes() -> None:
    facts = FLUX.parse_facts(ANSWERS)
    assert (facts.version, facts.has_queues, facts.whole_nodes) == ("0.88.0", True, False)
    (batch,) = facts.queues  # debug is disabled
    assert (batch.name, batch.kind, batch.min_nodes, batch.max_nodes) == ("batch", "queue", 1, 2)
    assert (batch.max_walltime, batch.has_gpus) == ("08:00:00", True)
    big, small = facts.nodes
    assert (big.example, big.nodes, big.in_service, big.cores) == ("big0", 3, 2, 64)  # one is drained
    assert (big.gpus, big.queues, big.features) == (
        (NodeGpus(type=None, count=4),),
        {"batch": 3},
        ("batch", "large"),
    )
    assert (small.example, small.nodes, small.cores, small.gpus, small.queues) == ("small3", 1, 8, (), {})


def test_limits_of_all_queues_hold_where_a_queue_has_none() -> None:
    facts = FLUX.parse_facts({name: ANSWERS[name] for name in ("queues", "nodes")})
    batch, debug = facts.queues
    assert (batch.name, debug.name) == ("batch", "debug")  # the default queue is first
    assert (debug.max_walltime, debug.max_nodes, debug.has_gpus) == ("24:00:00", None, False)


def resources(nodelist: list[str], groups: list[dict[str, Any]], **properties: str) -> CommandResult:
    execution = {"R_lite": groups, "nodelist": nodelist, "properties": properties}
    return answer({"version": 1, "execution": execution})


def test_an_instance_without_queues_has_none_to_name() -> None:
    cores = {"rank": "0-1", "children": {"core": "0-15"}}
    nodes = resources(["vm[08-09]"], [cores])
    facts = FLUX.parse_facts({"queues": answer({}), "nodes": nodes, "up": nodes})
    assert (facts.has_queues, facts.queues) == (False, ())
    (only,) = facts.nodes
    assert (only.example, only.nodes, only.in_service, only.queues) == ("vm08", 2, 2, {})


def test_nodes_are_named_in_the_order_of_their_ranks() -> None:
    groups = [
        {"rank": "0,12", "children": {"core": "0-3"}},
        {"rank": "1-11", "children": {"core": "0-7", "gpu": "0-1"}},
    ]
    nodes = FLUX.parse_facts(
        {"nodes": resources(["login", "n[098-108,200]-ib"], groups, gpu="1-11", odd="12")}
    ).nodes
    assert [(kind.example, kind.nodes) for kind in nodes] == [("n098-ib", 11), ("login", 2)]
    assert nodes[0].features == ("gpu",)


def test_a_property_may_be_excluded() -> None:
    config = answer({"queues": {"any": {}, "cpu": {"requires": ["^gpu"]}}})
    groups = [{"rank": "0-2", "children": {"core": "0-3"}}]
    facts = FLUX.parse_facts({"queues": config, "nodes": resources(["a[0-2]"], groups, gpu="0-1")})
    assert facts.nodes[0].queues == {"any": 3, "cpu": 1}


@in_one_test(
    "duration, walltime",
    [("90m", "01:30:00"), (3600.0, "01:00:00"), ("1.5d", "36:00:00"), ("inf", None), (0, None)],
)
def test_durations(duration: str | float, walltime: str | None) -> None:
    config = answer({"queues": {"q": {"policy": {"limits": {"duration": duration}}}}})
    assert FLUX.parse_facts({"queues": config}).queues[0].max_walltime == walltime


@in_one_test(
    "said, words",
    [
        (answer({}, 1, "flux-config: ERROR: Unable to connect to Flux: broker is not running"), "Unable to"),
        (CommandResult(exit_code=0, stdout="batch*  24h", stderr=""), "prints no JSON object"),
        (resources(["a"], [{"rank": "0-1", "children": {"core": "0-3"}}]), "form that is not known"),
        (resources(["a"], [{"rank": "x", "children": {}}]), "form that is not known"),
        (answer({"execution": {"R_lite": 3}}), "form that is not known"),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_refusal(said: CommandResult, words: str) -> None:
    with pytest.raises(RefusedError, match=words):
        FLUX.parse_facts({"nodes": said})
