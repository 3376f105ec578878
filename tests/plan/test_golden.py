"""The scripts of every shipped site, word for word, and read by bash and shellcheck.

After a wanted change: HPCLAUNCH_TEST_UPDATE_GOLDEN=1 pytest tests/plan/test_golden.py, and read the diff.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hpclaunch import __version__
from hpclaunch.errors import BadInputError
from hpclaunch.job.job_script import job_files
from hpclaunch.job.template_files import script_templates
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.layout import JobPlace, KnownJob, LaunchPlan
from hpclaunch.plan.plan_file import JOB_START, PLAN, job_shell_files, rank_shell_files
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.script_text import render
from hpclaunch.plan.software_choice import choose_software
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import Environment, JobContainer, JobEessi
from hpclaunch.topology.node_topology import Core, NodeTopology, NumaNode
from tests.in_one_test import in_one_test
from tests.profiles import shipped
from tests.scripts import bare, rank_lines

GOLDEN = Path(__file__).parent.parent / "golden"
TRAIN = Command(argv=("--epochs", "3", "--data", "/data/my mnist"), bundled=True)
ACCOUNTS = {
    "lumi-g": "project_465000001",
    "polaris": "MyProject",
    "aurora": "MyProject",
    "olivia": "nn1234k",
    "alps-gh200": "g123",
    "daint": "g123",
    "clariden": "g123",
    "santis": "g123",
    "frontier": "abc123",
    "perlmutter": "m1234",
    "leonardo": "MyProject",
    "mn5-acc": "ehpc123",
    "jupiter": "myproject",
    "juwels-booster": "myproject",
    "delta": "bbka-delta-gpu",
    "jean-zay": "abc@h100",
    "deltaai": "abcd-dtai-gh",
    "betzy": "nn1234k",
    "betzy-accel": "nn1234k",
    "saga": "nn1234k",
    "saga-a100": "nn1234k",
    "summit": "ABC123",
    "theta": "MyProject",
    "thetagpu": "MyProject",
    "roihu": "project_2000123",
    "dardel-gpu": "naiss2025-1-23",
    "setonix-gpu": "pawsey0001-gpu",
    "narval": "def-jsmith",
    "abci-3": "grpname",
    "tuolumne": "guests",
}
PROGRAM = Command(argv=("python", "train.py", "--deepspeed_config", "ds config.json"))
TORCH = Command(argv=("python", "train.py"))
VENV = Environment(venv="$HOME/venv")
NGC = Environment(container=JobContainer(image="docker://nvcr.io/nvidia/pytorch:25.06-py3"))
TORCH_ON_FOUR = {
    "isambard-ai": VENV,
    "juwels-booster": None,
    "delta": VENV,
    "deltaai": None,
    "vista": None,
    "jean-zay": None,
}
"""Machines whose script for a torch program on four nodes is golden, too -> the job's environment; None: the
software of the site."""
CONTAINER = Environment(
    modules=("NCCL/2.30.4-GCCcore-14.3.0-CUDA-13.0.0",),
    container=JobContainer(image="/cluster/images/it's.sif", venv="$HOME/venv"),
)
ENGINE = Environment(
    container=JobContainer(image="docker://nvcr.io/nvidia/pytorch:25.06-py3", binds=("$HOME/my data:/data",))
)
EESSI = Environment(
    site_setup=False,
    eessi=JobEessi(version="2023.06", init="container", load=("PyTorch/2.1.2-foss-2023a",)),
)
LAPTOP = NodeTopology(
    cores=tuple(Core(cpus=(n, n + 2), numa=0, l3=0) for n in range(2)),
    numa_nodes=(NumaNode(id=0, cpus=frozenset(range(4))),),
)


@cache
def cases() -> dict[str, dict[str, Any]]:
    shipped = sorted(path.stem for path in resource_dir("site_profiles").glob("*.yaml"))
    known = {site: {"site": site, "account": ACCOUNTS.get(site)} for site in shipped}
    torch = {"nodes": 4, "command": TORCH, "framework": "torch", "imports": ("torch",)}
    return {
        **known,
        **{
            f"{site}.torch": {**known[site], **torch, "environment": environment}
            for site, environment in TORCH_ON_FOUR.items()
        },
        **{
            site: {**known[site], **torch, "tasks_per_node": 8, "gpus_per_task": 1, "environment": NGC}
            for site in shipped
            if site.startswith(("aws-", "gcp-"))
        },
        "roihu.torch": {**known["roihu"], **torch, "queue": "gpularge"},
        "dardel-gpu.torch": {**known["dardel-gpu"], **torch},
        "setonix-gpu.torch": {**known["setonix-gpu"], **torch},
        "abci-3.torch": {**known["abci-3"], **torch, "environment": Environment(venv="$HOME/venv")},
        "tuolumne.torch": {**known["tuolumne"], **torch, "environment": Environment(venv="$HOME/venv")},
        "narval.torch": {**known["narval"], **torch, "environment": Environment(venv="$HOME/venv")},
        "snellius.torch": {**known["snellius"], **torch, "environment": ENGINE},
        "local": {"site": "local", "tasks": 2},
        "local.torch": {
            "site": "local",
            "tasks": 2,
            "framework": "torch",
            "command": Command(argv=("python3", "train.py")),
        },
        "lumi-g.two-nodes": {**known["lumi-g"], "nodes": 2, "timeline": "timeline.json", "binding": "strict"},
        "lumi-g.sixteen-ranks": {**known["lumi-g"], "tasks_per_node": 16, "queue": "dev-g"},
        "polaris.two-nodes": {**known["polaris"], "nodes": 2, "directives": ("-l filesystems=home",)},
        "olivia.two-nodes": {**known["olivia"], "nodes": 2, "queue": "devel", "env": {"WHO": "it's me"}},
        "olivia.restarts": {**known["olivia"], "max_restarts": 3, "idle_timeout": "30m"},
        "olivia.container": {**known["olivia"], "environment": CONTAINER},
        "santis.container": {**known["santis"], "environment": ENGINE},
        "lumi-g.container": {**known["lumi-g"], "environment": ENGINE, "command": PROGRAM},
        "polaris.eessi": {**known["polaris"], "environment": EESSI, "command": PROGRAM},
        "polaris.restarts": {**known["polaris"], "max_restarts": 3},
        "saga.horovod": {
            **known["saga"],
            "nodes": 2,
            "command": TORCH,
            "framework": "horovod",
            "imports": ("horovod.tensorflow",),
        },
        "perlmutter.container": {
            **known["perlmutter"],
            "nodes": 2,
            "command": TORCH,
            "framework": "torch",
            "environment": Environment(
                container=JobContainer(image="nersc/pytorch:25.06.01", runtime="podman-hpc")
            ),
        },
        "olivia.array": {**known["olivia"], "array": "0-9%2", "after": ("12", "13"), "exclude": ("gpu-1-2",)},
        "frontier.two-nodes": {**known["frontier"], "nodes": 2, "command": PROGRAM, "framework": "torch"},
        "perlmutter.regular": {**known["perlmutter"], "nodes": 16, "time": "4h"},
        "mn5-acc.two-nodes": {**known["mn5-acc"], "nodes": 2, "queue": "acc_ehpc", "command": PROGRAM},
        "lumi-g.torchrun": {
            **known["lumi-g"],
            "nodes": 2,
            "framework": "torch",
            "command": Command(argv=("torchrun", "train.py", "--lr", "it's")),
        },
        "olivia.ray": {
            **known["olivia"],
            "nodes": 2,
            "framework": "ray",
            "command": Command(argv=("python", "driver.py")),
        },
        "polaris.accelerate": {
            **known["polaris"],
            "nodes": 2,
            "framework": "torch",
            "command": Command(argv=("accelerate", "launch", "--mixed_precision", "bf16", "train.py")),
        },
        "leonardo.deepspeed": {
            **known["leonardo"],
            "nodes": 2,
            "framework": "deepspeed",
            "command": Command(argv=("deepspeed", "train.py", "--deepspeed_config", "ds.json")),
        },
        "local.fabric": {
            "site": "local",
            "tasks": 2,
            "framework": "torch",
            "command": Command(argv=("fabric", "run", "train.py")),
        },
        "polaris.array": {**known["polaris"], "array": "0-9", "after": ("12.polaris",), "after_any": True},
        "local.restarts": {
            "site": "local",
            "tasks": 2,
            "max_restarts": 1,
            "time": "10m",
            "idle_timeout": "5m",
        },
        "lumi-g.horovod": {
            **known["lumi-g"],
            "nodes": 2,
            "command": PROGRAM,
            "framework": "horovod",
            "timeline": "timeline.json",
        },
        "lumi-g.jax": {
            **known["lumi-g"],
            "nodes": 2,
            "command": PROGRAM,
            "framework": "jax",
            "gpus_per_task": 2,
        },
        "lumi-g.torch": {**known["lumi-g"], "name": "train", "command": TORCH, "framework": "torch"},
        "lumi-g.unknown": {**known["lumi-g"], "nodes": 2, "command": Command(argv=("./train", "--lr", "1"))},
        "olivia.torch": {
            **known["olivia"],
            "nodes": 2,
            "command": PROGRAM,
            "framework": "torch",
            "preflight": True,
            "space": ("/cluster/work",),
        },
        "polaris.preflight": {**known["polaris"], "nodes": 2, "preflight": True, "array": "0-3"},
        "generic-slurm.preflight": {
            "site": "generic-slurm",
            "nodes": 2,
            "preflight": True,
            "max_restarts": 2,
            "exclude": ("n7",),
            "exclude_bad_nodes": True,
        },
        "generic-pbs.preflight": {"site": "generic-pbs", "nodes": 2, "preflight": True},
        "polaris.deepspeed": {
            **known["polaris"],
            "nodes": 2,
            "command": PROGRAM,
            "framework": "deepspeed",
            "zero_stage": 3,
        },
        "generic-slurm.mpi4py": {
            "site": "generic-slurm",
            "tasks": 2,
            "command": PROGRAM,
            "framework": "mpi4py",
            "max_restarts": 1,
        },
        "generic-flux.gpus": {
            "site": "generic-flux",
            "account": "bank",
            "queue": "gpu",
            "nodes": 2,
            "tasks_per_node": 4,
            "gpus_per_task": 1,
            "after": ("f2WmpEbL", "91088924704768"),
            "preflight": True,
        },
        "generic-lsf.gpus": {
            "site": "generic-lsf",
            "account": "MyProject",
            "queue": "gpu",
            "nodes": 2,
            "tasks_per_node": 4,
            "gpus_per_task": 1,
        },
        "generic-lsf.array": {
            "site": "generic-lsf",
            "array": "1-9%2",
            "after": ("12", "13"),
            "preflight": True,
        },
        "theta.four-ranks": {**known["theta"], "nodes": 128, "tasks_per_node": 4, "time": "2h"},
        "thetagpu.two-nodes": {**known["thetagpu"], "nodes": 2, "command": PROGRAM, "framework": "horovod"},
        "abci.two-nodes": {**known["abci"], "nodes": 2, "command": PROGRAM, "array": "1-4%2"},
        "generic-slurm.gpus": {"site": "generic-slurm", "nodes": 2, "tasks_per_node": 4, "gpus_per_task": 1},
        "generic-slurm.staging": {
            "site": "generic-slurm",
            "nodes": 2,
            "stage": ("/data/it's all/train", "env.sqsh:/local/env.sqsh"),
            "max_restarts": 1,
        },
        "polaris.staging": {**known["polaris"], "nodes": 2, "stage": ("/eagle/train.tar",), "array": "0-3"},
        "local.staging": {"site": "local", "tasks": 2, "stage": ("data",), "keep_staged": True},
    }


PLACE = JobPlace()


def plan_of(asked: dict[str, Any]) -> LaunchPlan:
    request = JobRequest(**{"command": TRAIN, "name": "mnist", **asked})
    profile = shipped(request.site)
    local = request.site == "local"
    place = JobPlace(python="/opt/env/bin/python3") if local else PLACE
    request = choose_software(KnownJob(request=request, settings=(), profile=profile), None).request
    return make_plan(request, profile, LAPTOP if local else site_topology(profile), place)


def script_of(asked: dict[str, Any], *, plain: bool = False) -> str:
    script = render(plan_of(asked), PLACE, script_templates(), plain=plain)
    return re.sub(r"(Written by hpclaunch) \S+", r"\1 0.1.0", script)


@in_one_test("name", cases())
def test_script_is_the_golden_one(name: str) -> None:
    script, golden = script_of(cases()[name]), GOLDEN / f"{name}.sh"
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        golden.write_text(script)
    assert script == golden.read_text()


def test_no_golden_script_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.sh")} == set(cases())


@pytest.mark.slow
@in_one_test("name", cases())
def test_bash_reads_it(name: str) -> None:
    answer = subprocess.run(
        ["bash", "-n"], input=(GOLDEN / f"{name}.sh").read_text(), capture_output=True, text=True
    )
    assert (answer.returncode, answer.stderr) == (0, "")


def shellcheck() -> str:
    beside = Path(sys.executable).with_name("shellcheck")
    return str(beside) if beside.exists() else shutil.which("shellcheck") or "shellcheck"


def lint_with_shellcheck(text: str, also: str = "") -> None:
    # SC1091: module scripts of the site are not here; SC2016: a command's own shell expands its words
    answer = subprocess.run(
        [shellcheck(), "--severity=style", f"--exclude=SC1091,SC2016{also}", "-"],
        input=text,
        capture_output=True,
        text=True,
    )
    assert (answer.returncode, answer.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["job/looks.sh", "job/submit_once.sh", "host/sync.sh"])
def test_shellcheck_finds_nothing_in_what_another_machine_runs(name: str) -> None:
    """Each of these functions is called by name, and some have their variables from outside."""
    shell = "sh" if name == "job/looks.sh" else "bash"
    lint_with_shellcheck(
        f"#!/bin/{shell}\n{(resource_dir('job').parent / name).read_text()}", ",SC2317,SC2329,SC2154"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_shellcheck_finds_nothing(name: str) -> None:
    """In the script alone, and in all that its shell and that of a rank run."""
    plan, script = plan_of(cases()[name]), (GOLDEN / f"{name}.sh").read_text()
    files = job_files(plan)
    texts = [files[each].decode() for each in (PLAN, JOB_START, *job_shell_files(plan))]
    rank = [rank_lines(script), *(files[each].decode() for each in rank_shell_files(plan))]
    lint_with_shellcheck(script)
    # Of functions that are called by name, and of variables that only other jobs need, it knows nothing.
    whole = "\n".join(["#!/bin/bash", *texts, script.partition("\n")[2], *rank])
    lint_with_shellcheck(whole, ",SC2034,SC2317,SC2329")


def is_live(name: str) -> bool:
    profile = shipped(cases()[name]["site"])
    return profile.retired is None and not profile.name.startswith("generic")


@in_one_test("name", cases())
def test_a_script_fits_on_one_screen(name: str) -> None:
    script = (GOLDEN / f"{name}.sh").read_text()
    needs = {"stage", "max_restarts", "idle_timeout"} & set(cases()[name])
    assert script.count("\n") <= (90 if is_live(name) and not needs else 95)
    launch = script.rstrip().split("HPCLAUNCH_RANK\n")[-1].partition("\n# Sources:")[0].splitlines()
    for line in script.splitlines():
        alone = re.fullmatch(r'export \w+="[^" ]*"', line)  # a value that is one word
        source = re.fullmatch(r"# \[\d+\] \S+, .*", line)
        assert len(line) <= 110 or line in launch or alone or source or not is_live(name), line


def test_the_script_of_a_torch_program_on_lumi_g_has_70_lines_at_most() -> None:
    asked = cases()["lumi-g.torch"]
    assert script_of(asked).count("\n") <= 70
    assert script_of(asked, plain=True).count("\n") <= 65


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_pages_show_that_script_whole(page: str) -> None:
    text = (GOLDEN.parent.parent / page).read_text()
    golden = (GOLDEN / "lumi-g.torch.sh").read_text()
    script = re.sub(r"(Written by hpclaunch) \S+", rf"\1 {__version__}", golden)
    shown = text.split("```shell\n")[1].split("```\n")[0]
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN") and shown:
        (GOLDEN.parent.parent / page).write_text(text.replace(shown, script))
    assert shown == script


@in_one_test("file", sorted(resource_dir("remote").glob("*.sh")))
def test_functions_of_the_files_have_40_lines_at_most(file: Path) -> None:
    functions = re.findall(r"^\w+\(\) \{.*?^\}", file.read_text(), re.MULTILINE | re.DOTALL)
    assert [text for text in functions if text.count("\n") >= 40] == []


@in_one_test("name", cases())
def test_a_plain_script_needs_no_file(name: str) -> None:
    """And what needs files has no plain form. That lint finds nothing: tests/lint/test_rules.py."""
    if script_needs_files(name):
        with pytest.raises(BadInputError, match=r"--plain: .* needs other files"):
            script_of(of_a_program(name), plain=True)
        return
    script = script_of(of_a_program(name), plain=True)
    assert "HPCLAUNCH_FILES" not in re.sub(r'"\$HPCLAUNCH_FILES" |(-x |;)HPCLAUNCH_FILES', "", bare(script))


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_shellcheck_finds_nothing_in_a_plain_script(name: str) -> None:
    if not script_needs_files(name):
        lint_with_shellcheck(script_of(of_a_program(name), plain=True))


def of_a_program(name: str) -> dict[str, Any]:
    """The case with a program of the user's own, not the bundled training."""
    return {"command": PROGRAM, **cases()[name]}


@cache
def script_needs_files(name: str) -> bool:
    return "needs --dry-run --save DIR" in script_of(of_a_program(name))
