"""What is said before the queue about the plugin that RCCL needs."""

from __future__ import annotations

from typing import Any

import pytest

from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.site.job_environment import Environment, JobContainer
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology


def notes(site: str = "lumi-g", **settings: Any) -> list[str]:
    """Return the notes of a plan that are about the plugin."""
    profile = load_site(site)
    request = JobRequest(
        site=site,
        account="project_465000001",
        command=Command(argv=("./a",)),
        **{"nodes": 2, "framework": "torch", **settings},
    )
    plan = make_plan(request, profile, site_topology(profile), JobPlace())
    return [warning for warning in plan.warnings if "send by TCP between nodes" in warning]


@pytest.mark.parametrize("framework", ["torch", "horovod", "deepspeed", "jax"])
def test_a_job_of_several_nodes_without_the_plugin_says_so(framework: str) -> None:
    (note,) = notes(framework=framework)
    assert note.startswith("no module aws-ofi-rccl is loaded, without which NCCL and RCCL send by TCP")
    assert "eb aws-ofi-rccl-17d41cb-cpeGNU-24.03.eb -r installs it, https://github.com/Lumi-super" in note
    assert note.endswith("; --preflight looks for it before the ranks start")


def test_an_image_must_hold_it() -> None:
    (note,) = notes(environment=Environment(container=JobContainer(image="/a.sif")), preflight=True)
    assert note.endswith("between nodes (the image must hold it)")


@pytest.mark.parametrize(
    "settings",
    [
        {"nodes": 1},
        {"framework": "mpi4py"},
        {"environment": Environment(modules=("aws-ofi-rccl/17d41cb-cpeGNU-24.03",))},
        {"site": "frontier", "framework": "torch"},
    ],
)
def test_nothing_is_said_where_it_is_loaded_or_not_used(settings: dict[str, Any]) -> None:
    assert notes(**settings) == []
