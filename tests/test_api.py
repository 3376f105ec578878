"""hpclaunch from Python."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hpclaunch
from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.plan.settings_table import rows

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "from-python.md"
LUMI = {"site": "lumi-g", "account": "project_465000001"}


def python(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.mpi
def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    printed = python("\n".join(blocks), tmp_path)
    assert "#SBATCH --nodes=2" in printed
    assert "16 ranks;" in printed
    assert re.search(r"^\S+ done 0\n0\.\d+$", printed, re.MULTILINE)
    assert re.search(r"^\S+ mnist done$", printed, re.MULTILINE)


def test_the_script_is_that_of_the_command(tmp_path: Path) -> None:
    line = ["submit", "--site", "lumi-g", "--account", "project_465000001", "--nodes", "2", "--dry-run"]
    command = subprocess.run(
        [sys.executable, "-m", "hpclaunch", *line, "--", "./a.out", "it's"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    job = hpclaunch.Job(command=["./a.out", "it's"], nodes=2, **LUMI)  # type: ignore[arg-type]
    assert job.script() == command.stdout


def test_every_module_can_be_imported_first(tmp_path: Path) -> None:
    """No submodule takes the place of a name of the interface."""
    code = (
        "import importlib, pkgutil, hpclaunch\n"
        "for each in pkgutil.walk_packages(hpclaunch.__path__, 'hpclaunch.'):\n"
        "    if 'train' not in each.name and 'remote' not in each.name and '__main__' not in each.name:\n"
        "        importlib.import_module(each.name)\n"
        "job = hpclaunch.Job(command=['mnist'], site='local', tasks=1)\n"
        "print(job.script()[:11], callable(hpclaunch.jobs), callable(hpclaunch.find_job))\n"
    )
    assert python(code, tmp_path) == "#!/bin/bash True True\n"


def test_import_loads_nothing_until_it_is_used(tmp_path: Path) -> None:
    code = "import sys, hpclaunch; print(sorted(m for m in sys.modules if m.split('.')[0] in "
    code += "('hpclaunch', 'msgspec', 'click', 'yaml', 'jinja2', 'numpy')))"
    assert python(code, tmp_path) == "['hpclaunch']\n"
    with pytest.raises(AttributeError, match="no attribute 'Jobb'"):
        _ = hpclaunch.Jobb


def test_wrong_settings_are_named() -> None:
    with pytest.raises(BadInputError, match="Job: 'nodez' is not a setting"):
        hpclaunch.Job(command=["true"], nodez=2)  # type: ignore[call-arg]
    with pytest.raises(BadInputError, match="nodes is '2'; it must be a whole number"):
        hpclaunch.Job(command=["true"], nodes="2")  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="command is one text"):
        hpclaunch.Job(command="python train.py")
    with pytest.raises(SiteRuleError, match="nosuch"):
        hpclaunch.Job(command=["true"], site="lumi-g", account="nosuch").plan()


@pytest.mark.mpi
def test_a_job_is_followed_and_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text("site: local\ncommand: [sleep, '1000']\n")
    handle = hpclaunch.Job(file=tmp_path / "job.yaml", name="long").submit()
    assert handle.status().state == "running"
    assert hpclaunch.find_job("long").id == handle.id == hpclaunch.jobs()[-1].id
    assert handle.cancel().state == "cancelled"
    assert handle.wait().state == "cancelled"
    failed = hpclaunch.Job(command=["sh", "-c", "echo words; exit 5"], site="local").submit()
    pieces: list[bytes] = []
    record = failed.wait(pieces.append)
    assert (record.state, record.exit_code) == ("failed", 5)
    assert b"words" in b"".join(pieces)
    assert b"words" in failed.logs()
    assert failed.result() is None


@pytest.mark.mpi
def test_one_connection_serves_a_block_of_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = hpclaunch.Job(command=["true"], site="local", tasks=1)
    with job.connected() as host:
        handle = job.submit()
        with handle.connected() as again:
            assert again is host
        assert handle.wait().state == "done"
    with handle.connected() as other:
        assert other is not host
    assert handle.ended
    handle.forget()
    with pytest.raises(BadInputError, match=handle.id):
        hpclaunch.find_job(handle.id)


BELOW_THE_INTERFACE = {"follow_job", "refresh", "start_job"}
"""Modules of the room job that act on jobs."""


def test_the_commands_about_jobs_use_the_interface() -> None:
    """What a command does with a job, a Python program can do: they share the handle."""
    allowed = {"to_stderr", "LAST_KNOWN", "log_text", "failed_nodes", "versions"}  # no actions
    for path in (ROOT / "hpclaunch" / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] in BELOW_THE_INTERFACE:
                assert {name.name for name in node.names} <= allowed, (path.name, node.lineno)


@pytest.mark.slow
def test_types_are_those_of_the_table(tmp_path: Path) -> None:
    """A type checker knows every setting of the table, and refuses others."""
    names = [row.name for row in rows()]
    assert {"site", "nodes", "command", "env"} <= set(names)
    (tmp_path / "user.py").write_text(
        "import hpclaunch\n"
        "hpclaunch.Job(command=['a'], nodes=2, time='2h', framework='jax', env={'A': 'b'}, file='x')\n"
        "hpclaunch.Job(command=['a'], nodes='2')\n"
        "hpclaunch.Job(command=['a'], nodez=2)\n"
        "hpclaunch.Job(command=['a']).submit().wait().state.upper()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line.split(": ", 2)[:2] for line in done.stdout.splitlines() if ": error: " in line]
    assert errors == [["user.py:3", "error"], ["user.py:4", "error"]], done.stdout
