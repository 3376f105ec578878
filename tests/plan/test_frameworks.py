"""``--framework``: what each sets for its ranks, in scripts and in real jobs, and nothing else."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.framework_table import FRAMEWORKS
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan.frameworks import deepspeed_config
from hpclaunch.plan.layout import JobPlace, LaunchPlan
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.settings import JobSettings, merge
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology
from tests.in_one_test import in_one_test
from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm

RENDEZVOUS = {"MASTER_ADDR", "MASTER_PORT"}
TORCH = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", *RENDEZVOUS}
JAX = {"JAX_COORDINATOR_ADDRESS", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", *RENDEZVOUS}
SETS: dict[str, set[str]] = {
    "horovod": {"HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS"},
    "torch": {*TORCH, "GROUP_RANK"},
    "deepspeed": {*TORCH, "LOCAL_SIZE", "HPCLAUNCH_HOSTFILE"},
    "jax": JAX,
    "mpi4py": set(),
    "none": set(),
}
WATCHED = (*TORCH, *JAX, "LOCAL_SIZE", "GROUP_RANK", "HPCLAUNCH_HOSTFILE", "HPCLAUNCH_DS_CONFIG")
SHOW = (
    "import json, os, sys; print('VARS ' + json.dumps({n: v for n, v in os.environ.items() if n in "
    f"{(*WATCHED, 'HPCLAUNCH_JOB_FOLDER')!r} or n.startswith('HOROVOD_')" + "} | {'argv': sys.argv[1:]}))"
)


def planned(site: str, *argv: str, **asked: Any) -> LaunchPlan:
    request = JobRequest(site=site, command=Command(argv=argv or ("python", "x.py")), **asked)
    profile = load_site(site)
    return make_plan(request, profile, site_topology(profile), JobPlace())


def ranks(output: str) -> list[dict[str, Any]]:
    found = [line.partition("VARS ")[2] for line in output.splitlines() if "VARS " in line]
    return [json.loads(text) for text in found]


def test_every_framework_is_tested_here() -> None:
    assert {*SETS, "ray"} == set(FRAMEWORKS)  # ray: tests/frameworks/test_real_frameworks_ray.py


@pytest.mark.mpi
@pytest.mark.parametrize("framework", SETS)
def test_ranks_on_this_machine_get_what_it_needs_and_nothing_else(framework: str, tmp_path: Path) -> None:
    outer = {n: v for n, v in os.environ.items() if n not in WATCHED and not n.startswith("HOROVOD_")}
    answer = hpclaunch(
        *("submit", "--site", "local", "--tasks", "4", "--framework", framework),
        *("--", sys.executable, "-c", SHOW),
        cwd=tmp_path,
        env=outer,
    )
    assert answer.returncode == 0, answer.stderr
    found = ranks(answer.stdout)
    assert len(found) == 4
    assert {frozenset(each) - {"argv", "HPCLAUNCH_JOB_FOLDER"} for each in found} == {
        frozenset(SETS[framework])
    }
    if framework == "jax":
        assert sorted(each["JAX_PROCESS_ID"] for each in found) == ["0", "1", "2", "3"]
        assert {each["JAX_NUM_PROCESSES"] for each in found} == {"4"}
        address, _, port = found[0]["JAX_COORDINATOR_ADDRESS"].partition(":")
        assert (address, port) == (found[0]["MASTER_ADDR"], found[0]["MASTER_PORT"])
    if framework == "torch":
        assert {each["GROUP_RANK"] for each in found} == {"0"}
    if "RANK" in SETS[framework]:
        assert sorted(each["RANK"] for each in found) == ["0", "1", "2", "3"]
        assert sorted(each["LOCAL_RANK"] for each in found) == ["0", "1", "2", "3"]
        assert {(each["WORLD_SIZE"], each["LOCAL_WORLD_SIZE"]) for each in found} == {("4", "4")}
        assert {each["MASTER_ADDR"] for each in found} == {"127.0.0.1"}
        (port,) = {int(each["MASTER_PORT"]) for each in found}
        assert 10000 <= port < 20000
    if framework == "deepspeed":
        hostfile = Path(found[0]["HPCLAUNCH_HOSTFILE"])
        assert hostfile.parent == Path(found[0]["HPCLAUNCH_JOB_FOLDER"])
        assert hostfile.read_text() == "localhost slots=4\n"


@pytest.mark.slurm
@pytest.mark.parametrize("framework", ["torch", "deepspeed"])
def test_ranks_on_two_nodes_of_slurm_know_who_they_are(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, framework: str
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    show = f"echo NODE $SLURMD_NODENAME $RANK; exec {shlex.quote(sys.executable)} -c {shlex.quote(SHOW)}"
    answer = hpclaunch(
        *("submit", "--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "2", "--wait"),
        *("--framework", framework, "--mpi", "none", "--", "bash", "-c", show),
    )
    assert answer.returncode == 0, answer.stderr
    node_of = {}
    for line in answer.stdout.splitlines():
        if line.startswith("NODE "):
            _, node, rank = line.split()
            node_of[rank] = node
    found = {each["RANK"]: each for each in ranks(answer.stdout)}
    assert sorted(found) == sorted(node_of) == ["0", "1", "2", "3"]
    assert {rank: each["LOCAL_RANK"] for rank, each in found.items()} == {
        "0": "0", "1": "1", "2": "0", "3": "1"
    }  # fmt: skip
    assert {(each["WORLD_SIZE"], each["LOCAL_WORLD_SIZE"]) for each in found.values()} == {("4", "2")}
    assert {each["MASTER_ADDR"] for each in found.values()} == {node_of["0"]}
    if framework == "torch":
        assert [found[rank]["GROUP_RANK"] for rank in "0123"] == ["0", "0", "1", "1"]
    assert node_of["0"] != node_of["2"]
    (port,) = {int(each["MASTER_PORT"]) for each in found.values()}
    assert 10000 <= port < 20000
    if framework == "deepspeed":
        hostfile = Path(found["0"]["HPCLAUNCH_HOSTFILE"]).read_text()
        assert hostfile == f"{node_of['0']} slots=2\n{node_of['3']} slots=2\n"


@pytest.mark.mpi
def test_the_zero_stage_reaches_the_configuration_that_the_command_names(tmp_path: Path) -> None:
    given = {"train_batch_size": 8, "zero_optimization": {"stage": 1, "overlap_comm": True}}
    (tmp_path / "my *.json").write_text(json.dumps(given))
    words = ("--deepspeed", "--deepspeed_config=my *.json", "my *.json", "other.json", "a b")
    answer = hpclaunch(
        *("submit", "--site", "local", "--tasks", "1", "--framework", "deepspeed", "--zero-stage", "3"),
        *("--", sys.executable, "-c", SHOW, *words),
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr
    (rank,) = ranks(answer.stdout)
    config = rank["HPCLAUNCH_DS_CONFIG"]
    assert rank["argv"] == ["--deepspeed", f"--deepspeed_config={config}", config, "other.json", "a b"]
    assert json.loads(Path(config).read_text()) == {
        "train_batch_size": 8,
        "zero_optimization": {"stage": 3, "overlap_comm": True},
    }
    assert json.loads((tmp_path / "my *.json").read_text()) == given


@pytest.mark.mpi
def test_without_a_configuration_the_job_gets_one_with_the_stage_alone(tmp_path: Path) -> None:
    answer = hpclaunch(
        *("submit", "--site", "local", "--tasks", "1", "--framework", "deepspeed", "--zero-stage", "0"),
        *("--", sys.executable, "-c", SHOW),
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr
    config = Path(ranks(answer.stdout)[0]["HPCLAUNCH_DS_CONFIG"])
    assert json.loads(config.read_text()) == {"zero_optimization": {"stage": 0}}


def test_a_configuration_that_is_not_there_is_refused(tmp_path: Path) -> None:
    answer = hpclaunch(
        *("submit", "--site", "local", "--tasks", "1", "--framework", "deepspeed", "--zero-stage", "2"),
        *("--", sys.executable, "-c", SHOW, "--deepspeed_config", "nosuch.json"),
        cwd=tmp_path,
    )
    assert answer.returncode == 3
    assert answer.stdout == ""
    assert "nosuch.json: there is no such file" in answer.stderr


@in_one_test(
    "argv, config",
    [
        (("deepspeed_train.py", "--deepspeed", "--deepspeed_config", "ds.json"), "ds.json"),
        (("train.py", "--deepspeed=a/ds.json"), "a/ds.json"),
        (("train.py", "--deepspeed", "ds.json", "--lr", "1"), "ds.json"),
        (("train.py", "--deepspeed", "--config", "model.json"), None),
        (("train.py", "--deepspeed_config"), None),
        (("train.py", "--deepspeed", "--deepspeed_config=ds.json"), "ds.json"),
    ],
)
def test_which_file_a_command_names_for_deepspeed(argv: tuple[str, ...], config: str | None) -> None:
    assert deepspeed_config(argv) == config


@in_one_test(
    "asked, words",
    [
        ({"zero_stage": 2}, "ZeRO is DeepSpeed's"),
        ({"zero_stage": 2, "framework": "torch"}, "ZeRO is DeepSpeed's"),
        ({"zero_stage": 4, "framework": "deepspeed"}, "0 to 3"),
        ({"timeline": "t.json", "framework": "torch"}, "torch writes no Horovod timeline"),
    ],
)
def test_what_a_framework_does_not_have_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        planned("generic-slurm", **asked)


@in_one_test(
    "asked, path",
    [
        ({"framework": "horovod", "timeline": "my t.json"}, "\"$HPCLAUNCH_JOB_FOLDER\"/'my t.json'"),
        ({"framework": "horovod", "timeline": "out/t.json"}, "out/t.json"),
        ({"timeline": "t.json"}, "t.json"),
    ],
)
def test_where_the_timeline_goes(asked: dict[str, Any], path: str) -> None:
    lines = [line.text for line in planned("generic-slurm", **asked).environment]
    assert f"export HOROVOD_TIMELINE={path}" in lines


@pytest.mark.slurm
def test_the_binding_of_ranks_that_see_all_gpus_is_proven_by_their_own(
    lumig: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two GPUs per rank: those of local rank 1 are the second and the sixth of all that it sees."""
    monkeypatch.setenv("SLURM_CONF", str(lumig.conf))
    monkeypatch.setenv("BASH_ENV", "/usr/share/modules/init/bash")
    monkeypatch.setenv("MODULEPATH", str(Path(__file__).parent.parent / "data" / "modulefiles"))
    monkeypatch.setenv("HPCLAUNCH_TEST_PYTHON_FOLDER", str(Path(sys.executable).parent))
    answer = hpclaunch(
        *("submit", "--site", "lumi-g", "--account", "project_465000001", "--nodes", "2", "--wait"),
        *("--gpus-per-task", "2", "--framework", "torch", "--mpi", "none"),
        *("--", "bash", "-c", 'echo "SEES $ROCR_VISIBLE_DEVICES"'),
    )
    assert answer.returncode == 0, answer.stderr
    seen = {line for line in answer.stdout.splitlines() if line.startswith("SEES")}
    reports = json.loads(hpclaunch("verify", "last", "--json").stdout)["ranks"]
    assert len(seen) == 1
    listed = seen.pop().split()[1].split(",")
    assert sorted(listed) == list("01234567")
    own = {report["local_rank"]: report["gpus"] for report in reports}
    assert own == {rank: f"{listed[rank]},{listed[rank + 4]}" for rank in range(4)}
    assert len(reports) == 8


def test_a_job_file_names_the_framework_and_who_said_it(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("command: [python, x.py]\nframework: deepspeed\nzero_stage: 2\n")
    request, settings = merge(read_layers(JobSettings(zero_stage=1), file), "local", "command line")
    assert (request.framework, request.zero_stage) == ("deepspeed", 1)
    origins = {setting.name: setting.origin for setting in settings}
    assert (origins["framework"], origins["zero-stage"]) == (f"job file {file}", "command line")
    file.write_text("framework: tensorflow\n")
    with pytest.raises(BadInputError, match="framework"):
        read_layers(JobSettings(), file)
