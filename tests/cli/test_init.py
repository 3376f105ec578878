"""``hpclaunch init``: what it asks, what it writes, and that it writes nothing where an answer is missing."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.testbed.cluster import Slurm

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
    assert said.partition("missing: ")[2].strip() == ", ".join(missing)
    assert written(home) == set()


def test_without_a_terminal_the_site_that_submit_detects_is_taken(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that no profile describes is not: its user names the site."""
    (home / "sbatch").write_text("#!/bin/sh\n")
    (home / "sbatch").chmod(0o700)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "elsewhere")
    assert "missing: --site, --account (where" in init(code=2).stderr
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "lumi")
    assert init(code=2).stderr.rstrip().endswith("missing: --account, --python-from")
    done = init("--account", "project_465000001", "--python-from", "path", "--json", "--", "true")
    assert json.loads(done.stdout)["site"] == "lumi-g"


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


@pytest.mark.slurm
def test_a_cluster_that_no_profile_describes_is_here(on_slurm: Slurm, home: Path) -> None:
    given = ("--python-from", "path", "--json", "--", "true")
    assert (
        json.loads(init("--site", "generic-slurm", *given).stdout)["submit"]
        == "hpclaunch submit --file job.yaml"
    )
    (home / "job.yaml").unlink()
    elsewhere = json.loads(init("--site", "generic-pbs", *given).stdout)["submit"]
    assert elsewhere == "hpclaunch submit --file job.yaml --host generic-pbs"


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


def on_terminal(*words: str, answers: Sequence[str]) -> tuple[int, str]:
    """Return the exit status and what is shown on a terminal where these answers are typed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(INIT[0], [*INIT, *words])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.write(terminal, "".join(f"{answer}\n" for answer in answers).encode() or b"\x04")
    shown = b""
    try:
        while more := os.read(terminal, 4096):
            shown += more
    except OSError:  # the other side has closed
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode().replace("\r", "")


def config_of(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((home / ".config/hpclaunch/config.yaml").read_text())
    return found


def test_on_a_terminal_it_asks(home: Path) -> None:
    code, shown = on_terminal(answers=["lumi-g", "project_465000001", "venv", "/projappl/venv"])
    assert code == 0, shown
    for question in ("Site: its number or name", "Project account", "Python of the jobs", "Its folder"):
        assert question in shown
    assert config_of(home)["sites"]["lumi-g"] == {"account": "project_465000001", "venv": "/projappl/venv"}


def test_a_wrong_answer_is_named_at_once_and_loses_nothing(home: Path) -> None:
    (home / "train.py").write_text("import torch\n")
    wrong = [
        "lumi",
        "999",
        "0",
        "lumi-g",
        "proj",
        "project_465000001",
        "7",
        "cond",
        "container",
        "",
        "a b\x07",
    ]
    code, shown = on_terminal("train.py", answers=[*wrong, "docker://pytorch/pytorch"])
    assert code == 0, shown
    said = ("'lumi'", "'999' is not in the list", "'0' is not", "'proj' is not an account", "'7' is not in")
    assert all(words in shown for words in said), shown
    assert "did you mean 'conda'?" in shown
    at_lumi = {"account": "project_465000001", "container": "docker://pytorch/pytorch"}
    assert config_of(home)["sites"]["lumi-g"] == at_lumi


def test_the_software_of_the_site_is_offered_and_taken_by_default(home: Path) -> None:
    """So the script that the first Enter gives has what the program imports."""
    (home / "train.py").write_text("import torch\n")
    code, shown = on_terminal("train.py", answers=["lumi-g", "project_465000001", ""])
    assert code == 0, shown
    assert "  1  site       what the site offers; site profile lumi-g: torch" in shown
    assert "lumi-multitorch" in shown
    assert config_of(home)["sites"]["lumi-g"] == {"account": "project_465000001"}


def test_a_site_is_chosen_by_its_number_and_its_software_can_be_left_out(home: Path) -> None:
    (home / "train.py").write_text("import torch\n")
    _, shown = on_terminal("train.py", answers=[])
    number = re.search(r"^ *(\d+)  lumi-g ", shown, re.MULTILINE)
    assert number
    assert written(home) == set(), "the terminal was closed before an answer"
    code, shown = on_terminal("train.py", answers=[number[1], "project_465000001", "none"])
    assert code == 0, shown
    assert config_of(home)["sites"]["lumi-g"] == {"account": "project_465000001", "software": "none"}


def test_what_no_answer_can_repair_ends_it_before_the_questions_that_follow(home: Path) -> None:
    code, shown = on_terminal("--time", "soon", answers=["lumi-g"])
    assert code == 3, shown
    assert "soon" in shown
    assert "Project account" not in shown
    assert written(home) == set()
