"""The first submission of a program: on a fake of each machine its framework is there, or it is refused.

The fakes know the modules, images and uenvs that the sites' pages name (tests/data/site_software.yaml), and
nothing of our profiles. Stand-ins of the frameworks are found only where one of these brings them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpclaunch.framework_table import FRAMEWORKS
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.layout import KnownJob
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.software_choice import choose_software, goals_of
from tests.in_process import hpclaunch_here
from tests.plan.test_golden import ACCOUNTS, cases, of_a_program, script_needs_files, script_of
from tests.profiles import shipped

pytestmark = pytest.mark.slow

FAKES = Path(__file__).parents[1] / "fakes/fake_site"
DATA = Path(__file__).parents[1] / "data/site_software.yaml"
PROGRAMS = {
    "torch": ("import torch",),
    "horovod-torch": ("import torch", "import horovod.torch"),
    "horovod-tensorflow": ("import tensorflow", "import horovod.tensorflow"),
    "tensorflow": ("import tensorflow",),
    "jax": ("import jax",),
    "deepspeed": ("import deepspeed",),
    "mpi4py": ("from mpi4py import MPI",),
}
STAND_INS = {
    **{
        name: f"{name}/__init__.py"
        for name in ("torch", "tensorflow", "jax", "deepspeed", "accelerate", "numpy")
    },
    "horovod": "horovod/torch/__init__.py horovod/tensorflow/__init__.py horovod/__init__.py",
    "mpi4py": "mpi4py/MPI.py mpi4py/__init__.py",
}


@cache
def machines() -> dict[str, dict[str, Any]]:
    """Machine -> what its pages name; one that is only another machine's cluster has the same."""
    read: dict[str, Any] = yaml.safe_load(DATA.read_text())
    return {name: {**read.get(each.get("like", ""), {}), **each} for name, each in read.items()}


def live_gpu_sites() -> list[str]:
    names = sorted(path.stem for path in resource_dir("site_profiles").glob("*.yaml"))
    nodes = {name: shipped(name).node for name in names if shipped(name).status == "production"}
    return [name for name, node in nodes.items() if node and node.gpus]


def bash_words(machine: dict[str, Any]) -> str:
    """The arrays that modules.sh reads."""
    lines = ["declare -A holds defaults folder needs envs"]
    for name, each in machine.get("modules", {}).items():
        module: dict[str, Any] = each if isinstance(each, dict) else {"holds": each or []}
        lines.append(f"holds[{name}]='{' '.join(module.get('holds', ()))}'")
        lines += [f"defaults[{name.split('/')[0]}]={name}"] if module.get("default") else []
        lines += [f"folder[{name}]={module['folder']}"] if "folder" in module else []
        lines += [f"needs[{name}]='{' '.join(module['needs'])}'"] if "needs" in module else []
        for environment, packages in module.get("conda", {}).items():
            lines.append(f"envs['{name} {environment}']='{' '.join(packages)}'")
    return "\n".join([*lines, (FAKES / "modules.sh").read_text()])


def build(machine: dict[str, Any], folder: Path) -> dict[str, str]:
    """Make the fake machine in a folder; return the variables of its jobs."""
    programs, images = folder / "bin", folder / "images"
    programs.mkdir()
    images.mkdir()
    for name in ("python", "python3"):
        (programs / name).symlink_to(FAKES / "python3")
    for name in ("srun", "ibrun", "mpiexec"):
        (programs / name).symlink_to(FAKES / "launcher")
    for name in ("torchrun", "accelerate"):
        (programs / name).symlink_to(FAKES / "workers")
    (programs / "image_shell").symlink_to(FAKES / "image_shell")
    (programs / "scontrol").write_text("#!/bin/sh\necho n1\n")
    (programs / "scontrol").chmod(0o755)
    for name in machine.get("programs", {}):
        (programs / name).symlink_to(FAKES / "runtime")
    for image, packages in machine.get("images", {}).items():
        (images / re.sub(r"[/:#]", "_", image)).write_text(" ".join(packages))
    for package, files in STAND_INS.items():
        for file in files.split():
            path = folder / "stand-ins" / package / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    (folder / "modules.sh").write_text(bash_words(machine))
    (folder / "nodes").write_text("n1\n")
    return {
        "PATH": f"{programs}:/usr/bin:/bin",
        "BASH_ENV": str(folder / "modules.sh"),
        "FAKE_IMAGES": str(images),
        "FAKE_STAND_INS": str(folder / "stand-ins"),
        "FAKE_PYTHON": os.path.realpath(sys.executable),
        "HOME": str(folder),
        "USER": "me",
        "SCRATCH": str(folder),
        "SLURM_JOB_ID": "1234",
        "SLURM_JOB_NODELIST": "n1",
        "SLURM_SUBMIT_DIR": str(folder),
        "SLURM_JOB_ACCOUNT": "project",
        "PBS_JOBID": "1234.server",
        "PBS_O_WORKDIR": str(folder),
        "PBS_NODEFILE": str(folder / "nodes"),
    }


def of_directives(script: str, machine: dict[str, Any]) -> str:
    """The packages that options of the job bring: a uenv and its view."""
    given = dict(re.findall(r"^#SBATCH --(uenv|view)=(\S+)", script, re.MULTILINE))
    name = given.get("uenv", "").split(":/")[0]
    uenvs: dict[str, list[str]] = machine.get("uenvs", {})
    found: list[str] = next((packages for full, packages in uenvs.items() if full.startswith(name)), [])
    return " ".join(found) if name and given.get("view") == "default" else ""


@pytest.mark.parametrize("goal", PROGRAMS)
@pytest.mark.parametrize("site", live_gpu_sites())
def test_the_framework_is_there_or_the_submission_is_refused(site: str, goal: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("\n".join([*PROGRAMS[goal], "print('FOUND IT')"]))
    account = ACCOUNTS.get(site) or "nn1234k"
    words = ("--site", site, "--account", account, "--nodes", "1", "--dry-run", "--", "python", "train.py")
    answer = hpclaunch_here("submit", *words, folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    if "submitting this job is refused" in answer.stderr:
        assert "--software none submits all the same" in answer.stderr
        return
    machine = machines()[site]
    variables = build(machine, tmp_path)
    variables["FAKE_PACKAGES"] = of_directives(answer.stdout, machine)
    done = subprocess.run(
        ["bash", "-s"], input=answer.stdout, cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert "FOUND IT" in done.stdout, done.stderr


def golden_names() -> list[str]:
    """The golden scripts of machines with GPUs, without those that need a person's own software or files."""
    asked = {name: each for name, each in cases().items() if each["site"] in live_gpu_sites()}
    mine = [name for name, each in asked.items() if "environment" in each or name == "lumi-g.unknown"]
    return [name for name in asked if name not in mine and not script_needs_files(name)]


@pytest.mark.parametrize("name", golden_names())
def test_each_golden_script_finds_its_framework(name: str, tmp_path: Path) -> None:
    """In place of the bundled training, which needs its files, runs a program that imports what it does."""
    asked = {"framework": "mpi4py", **of_a_program(name)}
    if asked["framework"] == "mpi4py":
        asked.pop("timeline", None)
    request = JobRequest(**{"name": "mine", **asked})
    chosen = choose_software(KnownJob(request=request, settings=(), profile=shipped(request.site)), None)
    script = script_of(asked)
    goal = goals_of(request)[0] if request.framework in FRAMEWORKS else "torch"
    (tmp_path / "train.py").write_text("\n".join([*PROGRAMS.get(goal, ()), "print('FOUND IT')"]))
    (tmp_path / "ds config.json").write_text("{}")
    machine = machines()[request.site]
    variables = build(machine, tmp_path)
    variables["FAKE_PACKAGES"] = of_directives(script, machine)
    done = subprocess.run(
        ["bash", "-s"], input=script, cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert ("FOUND IT" in done.stdout) == (not chosen.problems), done.stderr


def test_the_fakes_have_nothing_by_themselves(tmp_path: Path) -> None:
    """A script that loads nothing finds no framework, and a module that no page names ends it."""
    variables = build(machines()["polaris"], tmp_path)
    for text, said in (
        ("python -c 'import torch'", "No module named 'torch'"),
        ("module load torch", "unknown"),
    ):
        done = subprocess.run(["bash", "-ec", text], env=variables, capture_output=True, text=True)
        assert done.returncode != 0
        assert said in done.stderr
