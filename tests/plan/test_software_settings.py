"""The options about software over ``environment:`` of the job file, and that over the profile's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.in_process import hpclaunch_here
from tests.scripts import bare

JOB = """\
environment:
  modules: [git]
  container: {image: a.sif, binds: [/data]}
"""
PROFILE = """\
schema: 1
name: ours
description: a machine of ours
extends: generic-slurm
environment:
  modules: [cray-python]
  venv: /site/venv
"""


def submit(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("submit", *words, "--", "python", "train.py", folder=cwd)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "ours.yaml").write_text(PROFILE)
    return tmp_path


def explained(*words: str, cwd: Path) -> dict[str, tuple[str, str]]:
    answer = submit("--site", "./ours.yaml", *words, "--dry-run", "--explain", "--json", cwd=cwd)
    assert answer.returncode == 0, answer.stderr
    settings = json.loads(answer.stdout)["settings"]
    return {each["name"]: (each["value"], each["origin"]) for each in settings}


def test_each_part_is_told_with_its_origin(here: Path) -> None:
    found = explained("--module", "PrgEnv", "--env", "A=b=c", "--env", "E=", cwd=here)
    assert found["environment.modules"] == ("cray-python,PrgEnv", "site profile ours, then command line")
    assert found["environment.venv"] == ("/site/venv", "site profile ours")
    assert found["env A"] == ("b=c", "command line")
    assert found["env E"] == ("", "command line")
    assert "module" not in found
    assert "environment" not in found


def test_an_option_is_over_the_job_file_and_that_over_the_profile(here: Path) -> None:
    words = (
        "--file",
        "job.yaml",
        "--container",
        "b.sif",
        "--container-bind",
        "/more:/m",
        "--venv",
        "/in/venv",
    )
    found = explained(*words, cwd=here)
    assert found["environment.container.image"] == ("b.sif", "command line")
    assert found["environment.container.binds"] == ("/data,/more:/m", "job file job.yaml, then command line")
    assert found["environment.container.venv"] == ("/in/venv", "command line")
    assert found["environment.modules"] == ("git", "job file job.yaml")
    assert "environment.venv" not in found


def test_all_of_them_are_in_the_script(here: Path) -> None:
    words = ("--venv", "/v e", "--module", "a", "--module", "b", "--env", "W=it's $HOME", "--dry-run")
    (here / "conda.yaml").write_text("environment: {conda: base}\n")
    script = submit("--site", "generic-slurm", "--file", "conda.yaml", *words, cwd=here).stdout
    for line in (
        "module load a",
        "module load b",
        "conda activate base",
        'source "/v e/bin/activate"',
        "export W='it'\"'\"'s $HOME'",
    ):
        assert f"\n{line}\n" in bare(script)


@pytest.mark.parametrize(
    ("words", "code", "finding"),
    [
        (("--container-bind", "/data"), 3, "the job has no container"),
        (("--container", "x.sif", "--conda", "base"), 3, "the container has its own Python"),
        (("--container", "x.sif", "--env", "APPTAINER_BIND=/x"), 3, "it would replace what the site"),
        (("--env", "novalue"), 3, "'novalue' is not NAME=VALUE"),
        (("--env", "1A=x"), 3, "is not a name of an environment variable"),
        (("--container", "-x"), 3, "container.image: '-x' is not a name or path"),
        (("--module", "a\nb"), 3, "control character"),
    ],
)
def test_what_cannot_work_is_refused(words: tuple[str, ...], code: int, finding: str, here: Path) -> None:
    answer = submit("--site", "generic-slurm", *words, "--dry-run", cwd=here)
    assert (answer.returncode, finding in answer.stderr) == (code, True), answer.stderr


def test_a_recorded_request_is_repeated_as_it_was(here: Path) -> None:
    """What options gave is in the recorded environment: it is not added a second time."""
    import msgspec

    from hpclaunch.plan.request import Command, JobRequest
    from hpclaunch.plan.software_choice import with_software
    from hpclaunch.site.load_profile import load_site

    profile = load_site("generic-slurm")
    request = JobRequest(site="generic-slurm", command=Command(argv=("x",)), module=("a",), container="i.sif")
    once, _ = with_software(request, (), profile)
    again, _ = with_software(msgspec.convert(msgspec.to_builtins(once), JobRequest), (), profile)
    assert again == once
    assert once.environment is not None
    assert once.environment.modules == ("a",)
