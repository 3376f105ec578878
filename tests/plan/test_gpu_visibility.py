"""Visible GPUs and LOCAL_RANK agree: for every site, framework and number of GPUs per rank."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.framework_table import FRAMEWORKS
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.layout import JobPlace, LaunchPlan, are_shared, positions, visible_gpus
from hpclaunch.plan.plan_file import plan_text
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.site.profile_node import site_topology
from tests.in_one_test import in_one_test
from tests.plan.test_golden import ACCOUNTS
from tests.profiles import shipped


def take_device(environ: Mapping[str, str], variable: str, framework: str | None, rank: int) -> str:
    """The device that a program takes, as the tutorials say, of made-up ones that the variable lists."""
    devices = environ[variable].split(",")
    number = int(environ.get("LOCAL_RANK", "0"))
    if framework == "horovod":
        number = rank  # hvd.local_rank(), which MPI tells
    elif framework in ("mpi4py", "none"):
        number = 0
    number = int(environ.get("JAX_LOCAL_DEVICE_IDS", str(number)).split(",")[0])
    assert number < len(devices), "invalid device ordinal"  # what CUDA and HIP say
    return devices[number]


def sites() -> Iterator[str]:
    """The sites whose GPUs a variable shows."""
    for name in sorted(path.stem for path in resource_dir("site_profiles").glob("*.yaml")):
        node = site_topology(shipped(name))
        if shipped(name).binding.gpu_visible_var and node and node.gpus:
            yield name


def test_sites_with_gpus_are_found() -> None:
    assert {"lumi-g", "polaris", "daint", "olivia"} <= set(sites())


def plan(site: str, framework: Any, **counts: Any) -> LaunchPlan:
    profile = shipped(site)
    request = JobRequest(
        site=site, account=ACCOUNTS.get(site), command=Command(argv=("./a",)), framework=framework, **counts
    )
    return make_plan(request, profile, site_topology(profile), JobPlace())


def _environment_of(setup: str, rank: int) -> dict[str, str]:
    """What a rank's program finds, after a real bash has run the rank's setup."""
    names = ("SLURM_PROCID", "SLURM_LOCALID", "PMI_RANK", "PMI_LOCAL_RANK", "PMIX_RANK")
    ranks = dict.fromkeys((*names, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"), str(rank))
    ranks |= dict.fromkeys(("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK"), str(rank))
    ranks |= dict.fromkeys(("FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID"), str(rank))
    answer = subprocess.run(
        ["bash", "-c", f'set -e\n{setup}\nexec "$@"', "rank", "env", "-0"],
        env={"PATH": os.environ["PATH"], **ranks},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return dict(line.split("=", 1) for line in answer.stdout.split("\0")[:-1])


def _chosen_at_start(planned: LaunchPlan, count: int) -> str:
    """What bind_here.sh does where the scheduler has given the job all GPUs of the node."""
    if planned.at_start is None:
        return ""
    plan_variables = [line for line in plan_text(planned).splitlines() if line.startswith("hpclaunch_")]
    given = ",".join(map(str, range(count)))
    files = [f". {resource_dir('remote')}/bind_here.sh", "hpclaunch_show_gpus"]
    variable = planned.profile.binding.gpu_visible_var
    return "\n".join(["", *plan_variables, f"export {variable}={given}", *files])


@pytest.mark.slow
@pytest.mark.parametrize("framework", [*(name for name, row in FRAMEWORKS.items() if not row.per_node), None])
@in_one_test("site", sites())
def test_set_device_of_the_local_rank_takes_a_gpu_that_is_the_ranks_own(
    site: str, framework: str | None
) -> None:
    node = site_topology(shipped(site))
    assert node is not None
    count = len(node.gpus)
    by_local_rank = framework not in ("mpi4py", "none")
    shared = {"tasks_per_node": 2 * count}
    if framework and by_local_rank:
        with pytest.raises(BadInputError, match="takes the GPU whose number is its local rank"):
            plan(site, framework, **shared)
    for counts in (
        {},
        *({"gpus_per_task": each} for each in range(2, count + 1) if count % each == 0),
        {"tasks_per_node": max(1, count - 1)},
        *([] if framework and by_local_rank else [shared]),
    ):
        planned = plan(site, framework, **counts)
        own = _planned_gpus(planned, count)
        setup = "\n".join(line.text for line in planned.rank_setup if "taskset" not in line.text)
        setup += _chosen_at_start(planned, count)
        for rank in sorted({0, planned.tasks_per_node - 1}):
            environ = _environment_of(setup, rank)
            variable = str(planned.profile.binding.gpu_visible_var)
            device = take_device(environ, variable, framework, rank)
            assert int(device) == own[rank][0], (counts, rank)


def _planned_gpus(planned: LaunchPlan, count: int) -> list[tuple[int, ...]]:
    """The GPUs of each rank: of its binding, else (where srun chooses the cores) by their numbers."""
    if planned.binding is not None:
        return [rank.gpus for rank in planned.binding.ranks]
    assert planned.profile.binding.cpu in ("cores", "at_start")
    ranks, each = planned.tasks_per_node, planned.request.gpus_per_task
    return [(rank * each if each else rank * count // ranks,) for rank in range(ranks)]


def test_a_count_that_is_uneven_is_shared_alike_with_a_binding_and_without() -> None:
    """Three ranks on the four GPUs of Leonardo, where srun binds, and of Polaris, where hpclaunch does."""
    unbound, bound = (plan(site, None, tasks_per_node=3) for site in ("leonardo", "polaris"))
    assert unbound.binding is None
    assert bound.binding is not None
    assert [rank.gpus for rank in bound.binding.ranks] == [(0,), (1,), (2, 3)]
    (seen,) = [line.text for line in unbound.rank_setup if "CUDA_VISIBLE_DEVICES" in line.text]
    assert seen == "export CUDA_VISIBLE_DEVICES=0,1,2,3"


gpus_of_ranks = st.lists(st.integers(1, 4), min_size=1, max_size=8).flatmap(
    lambda sizes: st.permutations(range(sum(sizes))).map(
        lambda order: tuple(
            tuple(order[sum(sizes[:rank]) : sum(sizes[: rank + 1])]) for rank in range(len(sizes))
        )
    )
)


@given(gpus_of_ranks)
def test_number_local_rank_of_all_visible_ones_is_the_ranks_own(gpus: tuple[tuple[int, ...], ...]) -> None:
    visible = visible_gpus(True, gpus)
    assert sorted(visible) == sorted(gpu for each in gpus for gpu in each)
    for rank, own in enumerate(gpus):
        assert visible[rank] == own[0]
        assert tuple(visible[at] for at in positions(gpus, visible)[rank]) == own


@pytest.mark.parametrize("gpus", [((0,), (0,)), ((0,), ())])
def test_ranks_that_share_gpus_see_only_their_own(gpus: tuple[tuple[int, ...], ...]) -> None:
    assert are_shared(gpus)
    assert visible_gpus(True, gpus) == ()


def test_an_unknown_program_whose_ranks_share_gpus_gets_no_local_rank() -> None:
    names = " ".join(line.text for line in plan("lumi-g", None, tasks_per_node=16).rank_setup)
    assert "export RANK=" in names
    assert "LOCAL_RANK=" not in names.split("export RANK=")[1].split("cpus=")[0]


@in_one_test("site, told", [("lumi-g", False), ("polaris", False), ("generic-pbs", True)])
def test_where_jax_may_not_find_its_ranks_the_user_is_told(site: str, told: bool) -> None:
    notes = [note for note in plan(site, "jax").warnings if "jax.distributed.initialize()" in note]
    assert len(notes) == told
    assert all("JAX_NUM_PROCESSES and JAX_PROCESS_ID" in note for note in notes)


def test_jax_gets_its_coordinator_and_the_numbers_of_its_gpus() -> None:
    planned = plan("lumi-g", "jax", nodes=2, gpus_per_task=2)
    assert 'export JAX_COORDINATOR_ADDRESS="$MASTER_ADDR:$MASTER_PORT"' in [
        line.text for line in planned.environment
    ]
    setup = "\n".join(line.text for line in planned.rank_setup)
    shown = subprocess.run(
        ["bash", "-c", f"{setup}\nenv"],
        env={"PATH": os.environ["PATH"], "SLURM_PROCID": "5", "SLURM_LOCALID": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    found = dict(line.split("=", 1) for line in shown if line.startswith(("JAX_", "ROCR_")))
    assert (found["JAX_PROCESS_ID"], found["JAX_NUM_PROCESSES"]) == ("5", "8")
    own = found["JAX_LOCAL_DEVICE_IDS"].split(",")
    assert planned.binding is not None
    listed = found["ROCR_VISIBLE_DEVICES"].split(",")
    assert tuple(int(listed[int(each)]) for each in own) == planned.binding.ranks[1].gpus


def test_the_rule_stands_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "frameworks.md").read_text()
    assert "sees no fewer GPUs than its `LOCAL_RANK` counts" in " ".join(page.split())
