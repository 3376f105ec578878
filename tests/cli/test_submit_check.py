"""``submit --check``: a job whose needs are not met is not submitted, and says what to do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.own_process import hpclaunch


def submit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch("submit", "--site", "local", "--tasks", "2", *words, cwd=folder)


def no_job_is_known() -> bool:
    answer = hpclaunch("jobs", "--json")
    return json.loads(answer.stdout) == []  # type: ignore[no-any-return]


def verdict(output: str, name: str) -> str:
    found = re.search(rf"^{name} +(\S+)", output, re.MULTILINE)
    return found[1] if found else "not asked"


@pytest.mark.mpi
def test_a_missing_requirement_stops_it_with_the_remedies(tmp_path: Path) -> None:
    started = tmp_path / "started"
    answer = submit(tmp_path, "--check", "--framework", "horovod", "--", "touch", str(started))
    assert (answer.returncode, answer.stdout) == (1, "")
    assert verdict(answer.stderr, "horovod") == "missing"
    assert "-> " in answer.stderr
    assert "hpclaunch software plan --site local --for horovod-torch" in answer.stderr
    assert "requirement not met: horovod (" in answer.stderr
    assert "the controller of ranks that a launcher starts" in answer.stderr
    assert "nothing was submitted" in answer.stderr
    assert not started.exists()
    assert no_job_is_known()


@pytest.mark.mpi
def test_json_is_one_document_with_the_verdicts(tmp_path: Path) -> None:
    answer = submit(tmp_path, "--check", "--json", "--space", "/nosuch", "--", "true")
    document = json.loads(answer.stdout)
    assert answer.returncode == 1
    assert (document["id"], document["state"]) == (None, "not submitted")
    assert {check["name"]: check["status"] for check in document["check"]["checks"]}["space"] == "missing"


@pytest.mark.mpi
def test_what_is_asked_follows_from_the_framework(tmp_path: Path) -> None:
    for framework, module in (("torch", "torch"), ("deepspeed", "deepspeed"), ("mpi4py", "mpi4py")):
        (tmp_path / framework).mkdir()
        if framework != "mpi4py":
            (tmp_path / framework / f"{module}.py").write_text("raise ImportError('not for this machine')\n")
    job = tmp_path / "job.yaml"
    for framework in ("torch", "deepspeed"):
        job.write_text(f"check: true\nframework: {framework}\n")
        answer = submit(tmp_path / framework, "--file", str(job), "--", "true")
        assert answer.returncode == 1
        assert verdict(answer.stderr, "imports") == "missing"
        assert "ImportError: not for this machine" in answer.stderr
        assert verdict(answer.stderr, "mpi-launch") == verdict(answer.stderr, "pytorch") == "not asked"
    good = submit(tmp_path, "--check", "--framework", "mpi4py", "--", "echo", "RAN")
    assert (good.returncode, good.stdout.count("RAN")) == (0, 2), good.stderr
    bundled = submit(tmp_path, "--check", "mnist", "--", "--dataset", "synthetic", "--epochs", "1")
    assert bundled.returncode == 0, bundled.stderr


@pytest.mark.slow
def test_a_dry_run_says_what_it_would_look_for(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "hpclaunch", "submit", "--site", "lumi-g", "--account", "project_465000001"]
    words = ["--check", "--framework", "horovod", "--space", "/scratch/x", "--dry-run", "--", "true"]
    answer = subprocess.run([*line, *words], capture_output=True, text=True, cwd=tmp_path)
    assert (answer.returncode, answer.stdout[:11]) == (0, "#!/bin/bash")
    for words_ in ("mpi (site lumi-g)", "rocm (site lumi-g)", "nccl (site lumi-g)", "room in /scratch/x"):
        assert words_ in answer.stderr
