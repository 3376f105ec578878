"""Nodes, tasks and tasks per node: what is left open, what is settled, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.plan.layout import resolve
from hpclaunch.plan.request import Command, JobRequest
from tests.in_one_test import in_one_test


def request(**asked: Any) -> JobRequest:
    return JobRequest(site="x", command=Command(argv=("true",)), **asked)


@in_one_test(
    "asked, gpus, settled",
    [
        ({}, 8, (1, 8)),
        ({}, None, (1, 1)),
        ({}, 0, (1, 1)),
        ({"nodes": 4}, 8, (4, 8)),
        ({"tasks": 16}, 8, (2, 8)),
        ({"tasks": 12}, 8, (2, 6)),
        ({"tasks": 2}, 8, (1, 2)),
        ({"tasks": 3}, None, (3, 1)),
        ({"tasks": 8, "tasks_per_node": 4}, 8, (2, 4)),
        ({"tasks": 8, "nodes": 4}, 8, (4, 2)),
        ({"gpus_per_task": 2}, 8, (1, 4)),
        ({"gpus_per_task": 0}, 8, (1, 1)),
        ({"gpus_per_task": 0, "tasks": 3}, 8, (3, 1)),
        ({"nodes": 2, "tasks_per_node": 16}, 8, (2, 16)),
    ],
)
def test_what_is_left_open_is_settled(
    asked: dict[str, int], gpus: int | None, settled: tuple[int, int]
) -> None:
    assert resolve(request(**asked), gpus) == settled


def test_one_machine_takes_all_tasks() -> None:
    assert resolve(request(tasks=5), None, one_node=True) == (1, 5)
    with pytest.raises(BadInputError, match="--nodes 2: site x is this one machine"):
        resolve(request(nodes=2), None, one_node=True)


@in_one_test("name", ["nodes", "tasks", "tasks_per_node", "gpus_per_task", "cpus_per_task"])
@in_one_test("value", [0, -1])
def test_counts_that_are_too_low_are_refused(name: str, value: int) -> None:
    if (name, value) == ("gpus_per_task", 0):
        return
    least = 0 if name == "gpus_per_task" else 1
    words = f"--{name.replace('_', '-')} {value}: it must be at least {least}"
    with pytest.raises(BadInputError, match=words):
        resolve(request(**{name: value}), 8)


@in_one_test(
    "asked",
    [{"tasks": 9}, {"tasks": 3, "nodes": 2}, {"tasks": 8, "nodes": 2, "tasks_per_node": 8}],
)
def test_contradictions_are_refused_with_what_would_fit(asked: dict[str, int]) -> None:
    with pytest.raises(BadInputError, match="do not fit") as error:
        resolve(request(**asked), 8)
    assert "ask for" in str(error.value)


@given(nodes=st.integers(1, 50), per_node=st.integers(1, 50), gpus=st.none() | st.integers(0, 8))
def test_tasks_that_fill_the_nodes_evenly_always_fit(nodes: int, per_node: int, gpus: int | None) -> None:
    assert resolve(request(nodes=nodes, tasks=nodes * per_node), gpus) == (nodes, per_node)
    assert resolve(request(tasks=nodes * per_node, tasks_per_node=per_node), gpus) == (nodes, per_node)
