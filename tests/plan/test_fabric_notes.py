"""What is said before the queue about the plugin that RCCL needs."""

from __future__ import annotations

from typing import Any

import pytest

from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import Environment, JobContainer
from tests.in_one_test import in_one_test
from tests.plan.test_golden import ACCOUNTS


def notes(site: str = "lumi-g", **settings: Any) -> list[str]:
    """Return the notes of a plan that are about the plugin."""
    profile = load_site(site)
    request = JobRequest(
        site=site,
        account=ACCOUNTS[site],
        command=Command(argv=("./a",)),
        **{"nodes": 2, "framework": "torch", **settings},
    )
    plan = make_plan(request, profile, site_topology(profile), JobPlace())
    return [warning for warning in plan.warnings if "'s plugin " in warning]


@in_one_test("framework", ["torch", "horovod", "deepspeed", "jax"])
def test_a_job_of_several_nodes_without_the_plugin_says_so(framework: str) -> None:
    (note,) = notes(framework=framework)
    assert note.startswith("NCCL's and RCCL's plugin aws-ofi is not loaded, without which messages between")
    assert "eb aws-ofi-nccl-1.18.0-rocm.eb -r brings it, https://github.com/Lumi-super" in note
    assert note.endswith("; --preflight looks for it before the ranks start")


def test_an_image_must_hold_it() -> None:
    (note,) = notes(environment=Environment(container=JobContainer(image="/a.sif")), preflight=True)
    assert note.endswith("between nodes go by TCP (the image must hold it)")


def test_the_sites_own_images_hold_it() -> None:
    folder = "/appl/local/laifs/containers/"
    assert notes(environment=Environment(container=JobContainer(image=f"{folder}a/b.sif"))) == []
    assert notes(environment=Environment(container=JobContainer(image=f"/me{folder}b.sif")))


UENV = "--uenv=pytorch/v2.8.0:/user-environment"


@pytest.mark.parametrize(
    ("site", "plugin", "without"),
    [
        ("frontier", "rccl-net-plugin", "NCCL_NET=OFI ends the job"),
        ("olivia", "NCCL", "NCCL_NET=AWS Libfabric ends the job"),
    ],
)
def test_the_sites_own_modules_hold_it_and_a_job_without_them_is_told(
    site: str, plugin: str, without: str
) -> None:
    assert notes(site) == []
    (note,) = notes(site, environment=Environment(site_setup=False))
    assert f"plugin {plugin} is not loaded, without which {without} (module load {plugin}" in note


def test_where_sources_disagree_the_note_stays() -> None:
    (note,) = notes("perlmutter")
    assert note.startswith("whether nccl brings NCCL's plugin is not sure, sources disagree (https://github")
    assert note.endswith("; --preflight looks for it before the ranks start")
    (without,) = notes("perlmutter", environment=Environment(site_setup=False))
    assert "plugin nccl is not loaded, without which messages between nodes go by TCP" in without


@in_one_test("module", ["brics/aws-ofi-rccl/1.8.1", "aws-ofi-rccl", "a/b/aws-ofi-rccl-17d41cb"])
def test_a_module_in_a_folder_counts(module: str) -> None:
    assert notes(environment=Environment(modules=(module,))) == []
    assert notes(environment=Environment(modules=(module.replace("aws", "my-aws"),))) != []


def test_on_alps_a_uenv_or_the_container_engine_brings_it() -> None:
    (note,) = notes("daint")
    both = f'--directive "{UENV}" --directive "--view=default"'
    assert f"NCCL_NET=AWS Libfabric ends the job ({both} brings it" in note
    assert notes("daint", directives=(UENV,)) == []
    assert notes("daint", environment=Environment(container=JobContainer(image="/a.sqsh"))) == []


@in_one_test(
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
