"""The picture of what a job's ranks got: which node, which CPUs and GPUs, and what is wrong."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.job.record import JobRecord, LaterBinding, RankReport
from hpclaunch.observe.binding_picture import binding_picture
from hpclaunch.site.load_profile import load_site
from tests.in_one_test import in_one_test


def record(**changed: Any) -> JobRecord:
    fields = {
        "id": "20261122-000000-abcd",
        "name": "x",
        "site": "lumi-g",
        "scheduler": "slurm",
        "folder": "/x",
        "workdir": "/x",
        "created": "2026-11-22T00:00:00+00:00",
        "command": ("x",),
        "nodes": 2,
        "tasks": 4,
        "request": {},
        "plan": {"profile": msgspec.to_builtins(load_site("lumi-g"))},
        "profile_digest": "",
        "versions": {},
    }
    return JobRecord(**{**fields, **changed})


def report(rank: int, **changed: Any) -> RankReport:
    """Two ranks per node, bound as the first two of LUMI-G, each with its GPU's address."""
    local = rank % 2
    fields = {
        "rank": rank,
        "host": f"n{rank // 2 + 1}",
        "local_rank": local,
        "cpus": ("49-55", "57-63")[local],
        "planned": ("49-55", "57-63")[local],
        "gpus": str(local),
        "bus": ("0000:c1:00.0", "0000:c6:00.0")[local],
        "verdict": "ok",
    }
    return RankReport(**{**fields, **changed})


def texts(drawing: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(drawing).iter() if element.text]


def test_the_first_node_is_drawn_where_all_is_right() -> None:
    drawing, node = binding_picture(record(), [report(rank) for rank in range(4)], None)
    assert node == "n1"
    assert {"r0: CPUs 49-55 · GPU 0", "r1: CPUs 57-63 · GPU 1"} <= set(texts(drawing))
    assert any("measured by the ranks of job 20261122-000000-abcd on n1" in text for text in texts(drawing))
    assert binding_picture(record(), [report(rank) for rank in range(4)], "n2")[1] == "n2"


def test_else_the_node_with_a_wrong_rank_and_what_is_wrong_there() -> None:
    wrong = report(3, cpus="1-7", verdict="cpus-differ")
    drawing, node = binding_picture(record(), [report(0), report(1), report(2), wrong], None)
    assert node == "n2"
    found = texts(drawing)
    assert "r1: CPUs 1-7 · GPU 1" in found  # what it got, not what was planned
    assert "r1, rank 3 of the job: cpus-differ, planned CPUs 57-63" in found
    assert "rank 1 is far from its GPU 1" in found


def test_a_rank_that_left_its_cores_while_running_is_named() -> None:
    left = report(2, later=(LaterBinding(cpus="0-127", name="python"),))
    drawing, node = binding_picture(record(), [report(0), report(1), left, report(3)], None)
    assert node == "n2"
    assert "r0, rank 2 of the job: python went to CPUs 0-127 while running" in texts(drawing)


@in_one_test(
    "changed, gpus",
    [
        ({"gpus": "0", "bus": "0000:de:00.0"}, " · GPU 7"),  # the variable's numbers began at 0 in this rank
        ({"gpus": "3", "bus": "unknown"}, " · GPU 3"),
        ({"gpus": "none", "bus": ""}, ""),
        ({"gpus": "99,GPU-1234", "bus": ""}, ""),
    ],
)
def test_gpus_are_known_by_their_addresses_else_by_number(changed: dict[str, str], gpus: str) -> None:
    drawing, _ = binding_picture(record(), [report(0, **changed)], None)
    assert f"r0: CPUs 49-55{gpus}" in texts(drawing)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(BadInputError, match="has reported its binding, so there is nothing to draw"):
        binding_picture(record(), [], None)
    with pytest.raises(BadInputError, match="--node n9: no rank of job") as caught:
        binding_picture(record(), [report(rank) for rank in range(4)], "n9")
    assert caught.value.hint == "nodes: n1, n2"
    for plan in ({}, {"profile": {"name": "old"}}):
        with pytest.raises(BadInputError, match="cannot be read"):
            binding_picture(record(plan=plan), [report(0)], None)
