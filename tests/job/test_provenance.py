"""What a record keeps of its surroundings."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.start_job import git_commit, versions


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *words], check=True, capture_output=True, text=True
    ).stdout


def test_versions_are_what_the_standard_library_says() -> None:
    found = versions()
    expected = {name: importlib.metadata.version(name) for name in found.keys() & {"numpy", "mpi4py"}}
    assert expected.keys() == {"numpy", "mpi4py"}  # the runner's extra, which the tests need anyway
    assert {name: found[name] for name in expected} == expected
    assert found["python"] == platform.python_version()
    assert found["platform"] == platform.platform()


def test_packages_are_found_as_installers_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        "torch-2.5.1+cu121.dist-info",
        "horovod-0.28.1-py3.11.egg-info",
        "numpy",
        "numpy_stubs-9.dist-info",
    ]
    for name in names:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "away"), str(tmp_path)])
    assert versions().keys() - {"hpclaunch", "python", "platform"} == {"torch", "horovod"}
    assert (versions()["torch"], versions()["horovod"]) == ("2.5.1+cu121", "0.28.1")


def test_the_commit_says_whether_files_differ(tmp_path: Path) -> None:
    host = LocalHost()
    assert git_commit(host, str(tmp_path)) is None
    git(tmp_path, "init", "-q")
    assert git_commit(host, str(tmp_path)) is None  # no commit yet
    (tmp_path / "train.py").write_text("1\n")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-q", "-m", "x")
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    (tmp_path / "untracked").touch()
    assert git_commit(host, str(tmp_path)) == head
    (tmp_path / "train.py").write_text("2\n")
    assert git_commit(host, str(tmp_path)) == f"{head}-dirty"


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert git_commit(LocalHost(), str(tmp_path)) is None
