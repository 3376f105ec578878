"""``hpclaunch init``: what it asks, what it writes, and that it writes nothing where an answer is missing."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow  # together

INIT = [sys.executable, "-m", "hpclaunch", "init", "--no-check"]
LUMI = ["--site", "lumi-g", "--account", "project_465000001"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's new home, which is the working folder, too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*INIT, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done


def written(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*.yaml")}


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ([], ["--site", "--account", "--python-from"]),
        (["--site", "lumi-g"], ["--account", "--python-from"]),
        (["--site", "local"], ["--python-from"]),
        ([*LUMI, "--python-from", "venv"], ["--venv"]),
    ],
)
def test_without_a_terminal_the_missing_options_are_named(
    home: Path, given: list[str], missing: list[str]
) -> None:
    said = init(*given, code=2).stderr
    assert "no terminal to ask on" in said
    assert all(option in said.partition("missing:")[2] for option in missing)
    assert written(home) == set()


def test_a_job_file_that_cannot_be_written_is_refused_before_all_else(home: Path) -> None:
    done = init(*LUMI, "--python-from", "path", "--job-file", "/nosuch/job.yaml", code=3)
    assert done.stdout == ""
    assert done.stderr.startswith("hpclaunch: --job-file /nosuch/job.yaml: its folder does not exist")
    assert written(home) == set()


def test_answers_become_a_configuration_and_a_job_file(home: Path) -> None:
    (home / "train.py").write_text("import torch\n")
    done = init(*LUMI, "--module", "PyTorch/2.7,git", "--nodes", "2", "--", "python", "train.py")
    assert "#SBATCH --account=project_465000001" in done.stdout
    config = yaml.safe_load((home / ".config/hpclaunch/config.yaml").read_text())
    at_lumi = {"account": "project_465000001", "module": ["PyTorch/2.7", "git"]}
    assert config == {"site": "lumi-g", "sites": {"lumi-g": at_lumi}}
    job = yaml.safe_load((home / "job.yaml").read_text())
    assert job == {"nodes": 2, "time": "30m", "command": ["python", "train.py"]}
    again = [sys.executable, "-m", "hpclaunch", "submit", "--file", "job.yaml", "--dry-run"]
    script = subprocess.run(again, capture_output=True, text=True, check=True).stdout
    assert script == done.stdout


def test_the_document_names_what_was_written(home: Path) -> None:
    document = json.loads(init(*LUMI, "--python-from", "path", "--json").stdout)
    assert (home / document["job_file"]).is_file()
    assert document["config"] == str(home / ".config/hpclaunch/config.yaml")
    assert document["submit"] == "hpclaunch submit --file job.yaml --host lumi-g"
    again = json.loads(init(*LUMI, "--python-from", "path", "--job-file", "b.yaml", "--json").stdout)
    assert (again["config"], again["site"]) == (None, "lumi-g")


def test_the_software_of_the_site_is_told_with_the_script(home: Path) -> None:
    (home / "train.py").write_text("import torch\n")
    done = init(*LUMI, "--python-from", "path", "--", "python", "train.py")
    assert "of lumi-g's software, https://" in done.stderr
    assert "lumi-multitorch" in done.stdout


def test_a_configuration_that_exists_stays(home: Path) -> None:
    config = home / ".config/hpclaunch/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("time: 2h  # mine\n")
    assert "exists and is not changed" in init(*LUMI, "--conda", "base").stderr
    assert config.read_text() == "time: 2h  # mine\n"
    job = yaml.safe_load((home / "job.yaml").read_text())
    assert (job["site"], job["account"], job["conda"]) == ("lumi-g", "project_465000001", "base")


def test_a_job_file_that_exists_stays(home: Path) -> None:
    (home / "job.yaml").write_text("mine: 1\n")
    assert "--job-file" in init(*LUMI, "--python-from", "path", code=3).stderr
    assert (home / "job.yaml").read_text() == "mine: 1\n"
    assert written(home) == {"job.yaml"}


@pytest.mark.parametrize(
    "wrong",
    [
        ["--site", "nowhere", "--account", "a", "--python-from", "path"],
        ["--site", "lumi-g", "--account", "not an account", "--python-from", "path"],
        [*LUMI, "--python-from", "path", "--time", "soon"],
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_written(home: Path, wrong: list[str]) -> None:
    init(*wrong, code=3)
    assert written(home) == set()


def test_python_comes_from_one_place(home: Path) -> None:
    assert "one of --module" in init(*LUMI, "--venv", "v", "--conda", "c", code=2).stderr
    assert "one of --module" in init(*LUMI, "--venv", "v", "--python-from", "path", code=2).stderr


def test_on_a_terminal_it_asks(home: Path) -> None:
    answers = [b"lumi-g", b"project_465000001", b"venv", b"/projappl/venv"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(INIT[0], INIT)
    os.write(terminal, b"\n".join([*answers, b""]))
    shown = b""
    try:
        while more := os.read(terminal, 4096):
            shown += more
    except OSError:  # the other side has closed
        pass
    assert os.waitpid(pid, 0)[1] == 0, shown
    for question in (b"Site (hpclaunch sites list)", b"Project account", b"How do jobs", b"Folder of"):
        assert question in shown
    config = yaml.safe_load((home / ".config/hpclaunch/config.yaml").read_text())
    assert config["sites"]["lumi-g"] == {"account": "project_465000001", "venv": "/projappl/venv"}
