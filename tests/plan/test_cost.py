"""What a job costs at most, where the profile knows the rule."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.scheduler.scheduler_interface import Allocation
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology
from tests.in_one_test import in_one_test


def notes(place: JobPlace = JobPlace(), **options: Any) -> str:  # noqa: B008
    values = {"site": "lumi-g", "account": "project_465000001", "framework": "none", **options}
    profile = load_site(values["site"])
    request = JobRequest(command=Command(argv=("./a",)), **values)
    return "\n".join(make_plan(request, profile, site_topology(profile), place).warnings)


@in_one_test(
    "options, text",
    [
        (
            {"nodes": 4, "time": "24:00:00"},
            "at most 384 GPU-hours: 4 nodes x 24:00:00 x 4 GPU-hours per node",
        ),
        ({"nodes": 1, "time": "30m"}, "at most 2 GPU-hours: 1 node x 00:30:00"),
        ({"nodes": 1, "time": "1h", "max_restarts": 3}, "at most 16 GPU-hours: 1 node x 01:00:00"),
        ({"nodes": 1, "time": "1h", "array": "0-9%2"}, "at most 40 GPU-hours: 1 node x 01:00:00"),
    ],
)
def test_the_rule_of_lumi(options: dict[str, Any], text: str) -> None:
    """The first is the example of LUMI's own page."""
    assert text in notes(**options)


@in_one_test(
    "site, account, nodes, text",
    [
        # OLCF's own example: 6 nodes for an hour
        ("frontier", "abc123", 6, "at most 6 node-hours"),
        ("daint", None, 2, "at most 2 node-hours"),
        ("polaris", "a", 2, "at most 2 node-hours"),
        ("aurora", "a", 2, "at most 2 node-hours"),
        ("betzy", "nn1234k", 4, "at most 512 billing-unit-hours"),
        # 16 units for each of four GPUs
        ("betzy-accel", "nn1234k", 1, "at most 64 billing-unit-hours"),
        # a GPU counts as 8 cores, a node has 4
        ("leonardo", "a", 2, "at most 64 local core-hours"),
        ("olivia", "nn1234k", 2, "at most 8 GPU-hours"),
        ("abci-a100", None, 2, "at most 6 ABCI points"),
        # nodes x 288 cores x hours, whatever is asked for of a node
        ("jupiter", "a", 2, "at most 576 core-hours"),
    ],
)
def test_the_rules_of_more_sites(site: str, account: str | None, nodes: int, text: str) -> None:
    assert text in notes(site=site, account=account, nodes=nodes, time="1h")


@pytest.mark.parametrize("site", ["perlmutter", "mn5-acc"])
def test_rules_that_were_not_found_are_left_out(site: str) -> None:
    assert load_site(site).billing is None


def test_nothing_is_said_where_the_rule_is_unknown_or_the_nodes_are_paid_for() -> None:
    assert "costs" not in notes(site="generic-slurm", account=None)
    paid = Allocation(job_id="1", nodes=1, cpus_per_node=None)
    assert "costs" not in notes(JobPlace(allocation=paid), nodes=1, budget=0.1)


def test_a_budget_refuses_more() -> None:
    assert "at most 2 GPU-hours" in notes(nodes=1, time="30m", budget=2.0)
    with pytest.raises(BadInputError, match=r"--budget 1\.5: it costs at most 2 GPU-hours"):
        notes(nodes=1, time="30m", budget=1.5)
    with pytest.raises(BadInputError, match="does not state what a job costs"):
        notes(site="generic-slurm", account=None, budget=1.0)


@pytest.mark.slow
def test_the_option_and_the_note() -> None:
    line = [sys.executable, "-m", "hpclaunch", "submit", "--site", "lumi-g", "--account", "project_465000001"]
    dry = subprocess.run([*line, "--dry-run", "mnist"], capture_output=True, text=True, check=True)
    assert "hpclaunch: it costs at most 2 GPU-hours" in dry.stderr
    refused = subprocess.run([*line, "--budget", "1", "mnist"], capture_output=True, text=True, check=False)
    assert refused.returncode == 3
    assert "--budget 1: it costs at most 2 GPU-hours" in refused.stderr


@in_one_test(
    "options, spread",
    [
        ({"site": "betzy", "account": "nn1234k", "tasks": 64}, True),
        ({"site": "betzy", "account": "nn1234k", "tasks": 64, "tasks_per_node": 1}, False),
        ({"site": "betzy", "account": "nn1234k", "tasks": 64, "nodes": 64}, False),
        ({"site": "betzy", "account": "nn1234k", "tasks": 1}, False),
        ({"site": "generic-slurm", "account": None, "tasks": 2}, True),
        ({"tasks": 16}, False),
        ({"tasks": 16, "gpus_per_task": 0}, True),
    ],
)
def test_ranks_that_take_a_node_each_are_noted(options: dict[str, Any], spread: bool) -> None:
    """A user of sbatch -n 64 expects one node of 128 cores, and would pay for 64."""
    assert ("nodes, one rank on each" in notes(**options)) == spread


@pytest.mark.parametrize(("array", "said"), [("0-209", False), ("0-210", True), ("1-1000%200", True)])
def test_an_array_of_more_jobs_than_the_queue_takes_is_noted(array: str, said: bool) -> None:
    """LUMI's standard-g takes 210."""
    found = notes(site="lumi-g", nodes=1, queue="standard-g", array=array)
    assert ("standard-g takes 210 of one user at once" in found) == said
