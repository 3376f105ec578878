"""The GitHub action, the GitLab template and the hook of pre-commit: their lines, run as a runner does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "packaging" / "github" / "action.yml").read_text())
(JOB,) = yaml.safe_load((ROOT / "packaging" / "gitlab" / "hpclaunch-lint.yml").read_text()).values()
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
Env = dict[str, str]
GOOD = "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00:00\nsrun --ntasks-per-node=1 ./app\n"
BAD = GOOD.replace("--nodes=2", "--nodes=2 -n=8")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "good.sbatch").write_text(GOOD)
    (tmp_path / "more jobs.sbatch").write_text(BAD)
    (tmp_path / "bad.sbatch").write_text(BAD)
    return tmp_path


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a runner after the action's own step of installation, into a folder."""
    folder = tmp_path_factory.mktemp("runner")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    python = f"{Path(sys.executable).parent}:{clean['PATH']}"
    # Only the checkout itself, with the build tools that are here: what it needs is in this environment.
    pip = {"PIP_TARGET": str(folder), "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    done = github(ACTION["runs"]["steps"][0], {}, {**clean, **pip, "PATH": python}, folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "hpclaunch" / "site_profiles").is_dir()
    return {**clean, "PYTHONPATH": str(folder), "PATH": f"{folder / 'bin'}:{python}"}


def github(
    step: dict[str, Any], inputs: dict[str, str], env: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub's runner does: expressions become variables, the text a file for bash."""
    values: dict[str, str] = {f"inputs.{name}": entry["default"] for name, entry in ACTION["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    values["github.action_path"] = str(ROOT / "packaging" / "github")

    def value(match: re.Match[str]) -> str:
        return values[match[1]]

    own = {name: re.sub(r"\$\{\{ ([\w.]+) \}\}", value, text) for name, text in step["env"].items()}
    assert "${{" not in step["run"]  # an input in the text of the script would be run
    assert step["shell"] == "bash"
    file = cwd / "step.sh"
    file.write_text(step["run"])
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(file)]
    return subprocess.run(words, env={**env, **own}, cwd=cwd, capture_output=True, text=True)


def lint(workspace: Path, env: dict[str, str], **inputs: str) -> subprocess.CompletedProcess[str]:
    return github(ACTION["runs"]["steps"][1], inputs, env, workspace)


def test_the_action_fails_for_errors_and_leaves_a_sarif_log(workspace: Path, runner: Env) -> None:
    done = lint(workspace, runner, paths="jobs bad.sbatch", sarif="log.sarif")
    assert done.returncode == 1
    assert "bad.sbatch:2:19: error: -n=8" in done.stdout
    (run,) = json.loads((workspace / "log.sarif").read_text())["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["directive-equals"]


def test_the_action_passes_good_scripts_named_on_several_lines(workspace: Path, runner: Env) -> None:
    (workspace / "other").mkdir()
    (workspace / "other" / "fair.sbatch").write_text(GOOD.replace(" --time=1:00:00", ""))
    done = lint(workspace, runner, paths="jobs\nother\n", site="generic-slurm")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("other/fair.sbatch: note: ")
    assert done.stdout.endswith("\n2 scripts, 1 without findings: 1 note\n")


def test_inputs_of_the_action_are_never_run(workspace: Path, runner: Env) -> None:
    for text in ("jobs; touch canary", "$(touch canary)", "`touch canary`"):
        assert lint(workspace, runner, paths=text, site=text, sarif="a;touch canary").returncode != 0
    assert not (workspace / "canary").exists()


def test_the_template_of_gitlab(workspace: Path, runner: Env) -> None:
    """The second line of its script; the first one installs what HPCLAUNCH_SOURCE names."""
    install, check = JOB["script"]
    assert install == 'pip install --quiet "$HPCLAUNCH_SOURCE"'
    for paths, status in ((JOB["variables"]["HPCLAUNCH_LINT_PATHS"], 1), ("jobs", 0)):
        env = {**runner, "HPCLAUNCH_LINT_PATHS": paths}
        done = subprocess.run(["sh", "-ec", check], env=env, cwd=workspace, capture_output=True, text=True)
        assert done.returncode == status, done.stderr


def test_the_hook_of_pre_commit(workspace: Path, runner: Env) -> None:
    files = [
        name
        for name in ("a.sbatch", "b.slurm", "c.pbs", "d.sh", "job.yaml")
        if re.search(HOOK["files"], name)
    ]
    assert files == ["a.sbatch", "b.slurm", "c.pbs", "d.sh"]
    for name, status in (("more jobs.sbatch", 1), ("jobs/good.sbatch", 0)):
        words = [*HOOK["entry"].split(), name]
        assert subprocess.run(words, env=runner, cwd=workspace, capture_output=True).returncode == status
