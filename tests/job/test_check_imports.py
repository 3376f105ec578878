"""``--check-imports``: one node imports what the program imports, before any rank starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import hpclaunch_here
from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm

LOCAL = ("submit", "--site", "local", "--tasks", "2", "--check-imports", "--json")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Programs, each with a module next to it that Python finds only from the program's own folder."""
    folder = tmp_path / "code"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "loader.py").write_text("import json\n")
    (folder / "right.py").write_text("import json\nimport yaml\nfrom tools import loader\nprint('RAN')\n")
    (folder / "wrong.py").write_text("import yaml\nimport no_such_module_1\nprint('RAN')\n")
    (folder / "optional.py").write_text(
        "import yaml\ntry:\n    import no_such_module_1\nexcept ImportError:\n    print('RAN')\n"
    )
    (folder / "broken.py").write_text("import crash\nprint('RAN')\n")
    return tmp_path


def looked_at(answer: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    job = json.loads(answer.stdout)["id"]
    path = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job / "record.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["preflight"]
    return found


@pytest.mark.mpi
def test_a_missing_module_ends_the_job_by_its_name(here: Path) -> None:
    answer = hpclaunch(*LOCAL, "--", "python", "code/wrong.py", cwd=here)
    assert answer.returncode == 1
    assert "import no_such_module_1: ModuleNotFoundError: No module named 'no_such_module_1'" in answer.stderr
    assert "RAN" not in answer.stderr
    assert [each["status"] for each in looked_at(answer)] == ["missing"]


@pytest.mark.mpi
@pytest.mark.parametrize("program", ["right.py", "optional.py"])
def test_a_program_whose_modules_are_there_runs(program: str, here: Path) -> None:
    answer = hpclaunch(*LOCAL, "--", "python", f"code/{program}", cwd=here)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr.count("RAN") == 2


@pytest.mark.mpi
def test_an_import_that_ends_python_is_told(here: Path) -> None:
    (here / "site" / "crash").mkdir(parents=True)
    (here / "site" / "crash" / "__init__.py").write_text("import os\nos.abort()\n")
    env = {**os.environ, "PYTHONPATH": str(here / "site")}
    answer = hpclaunch(*LOCAL, "--", "python", "code/broken.py", cwd=here, env=env)
    assert answer.returncode == 1
    assert "import crash ended Python with exit status -6" in answer.stderr


@pytest.mark.slurm
def test_on_slurm_one_node_looks_before_the_ranks_start(
    here: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    words = ("submit", "--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "2", "--wait", "--json")
    own = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", f"{own}{os.pathsep}{os.environ['PATH']}")
    bad = hpclaunch(*words, "--check-imports", "--", "python", "code/wrong.py", cwd=here)
    assert bad.returncode == 1, bad.stderr
    assert "No module named 'no_such_module_1'" in bad.stderr
    assert "RAN" not in bad.stderr
    assert len({each["host"] for each in looked_at(bad)}) == 1
    good = hpclaunch(*words, "--check-imports", "--", "python", "code/right.py", cwd=here)
    assert good.returncode == 0, good.stderr
    assert good.stderr.count("RAN") == 4


def test_what_is_imported_is_told_and_can_be_named(here: Path) -> None:
    words = ("submit", "--site", "generic-slurm", "--dry-run", "--explain", "--json")
    program = ("--", "python", "code/wrong.py")
    document = json.loads(hpclaunch_here(*words, *program, folder=here).stdout)
    settings = {each["name"]: each for each in document["settings"]}
    assert settings["imports"]["value"] == "yaml,no_such_module_1"
    assert settings["imports"]["origin"] == "computed: the top of the program"
    (here / "job.yaml").write_text("imports: [numpy]\n")
    document = json.loads(hpclaunch_here(*words, "--file", "job.yaml", *program, folder=here).stdout)
    assert "imports" in {each["name"] for each in document["settings"]}
    assert {each["value"] for each in document["settings"] if each["name"] == "imports"} == {"numpy"}


def test_a_program_of_which_nothing_is_known_is_refused(here: Path) -> None:
    words = ("submit", "--site", "generic-slurm", "--check-imports", "--dry-run", "--", "./run")
    answer = hpclaunch_here(*words, folder=here)
    assert answer.returncode == 3
    assert "--check-imports: the modules that the program imports are not known" in answer.stderr
    assert "imports: [torch, numpy]" in answer.stderr
