"""hpclaunch from Python."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hpclaunch
from hpclaunch import api
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
    assert len(blocks) == 4
    printed = python("\n".join(blocks), tmp_path)
    assert "#SBATCH --nodes=2" in printed
    assert "16 ranks;" in printed
    assert re.search(r"^\S+ done 0\n0\.\d+$", printed, re.MULTILINE)
    assert re.search(r"^\S+ mnist done$", printed, re.MULTILINE)


def public_things() -> dict[str, str]:
    """Name -> examples of each class and function of the interface; of each method those of its class."""
    found: dict[str, str] = {}
    for name, thing in vars(api).items():
        if name.startswith("_") or getattr(thing, "__module__", "") != api.__name__:
            continue
        examples = "".join(
            one.source for one in doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
        )
        found[name] = examples
        for owner in inspect.getmro(thing) if inspect.isclass(thing) else ():
            if owner.__module__ == api.__name__:
                found |= {f"{name}.{each}": examples for each in vars(owner) if not each.startswith("_")}
    return found


def test_everything_public_is_in_an_example() -> None:
    things = public_things()
    assert {"Job", "Job.map", "JobHandle.wait", "as_completed", "jobs"} <= set(things)
    bare = [name for name, code in things.items() if not re.search(rf"\b{name.split('.')[-1]}\b", code)]
    assert bare == ["JobHandle"], "nobody makes one"


@pytest.mark.mpi
def test_the_examples_of_the_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = hpclaunch.Job(command=["sh", "-c", "echo words"], site="local", tasks=1)
    handle = job.submit()
    handle.wait()
    flags = doctest.ELLIPSIS
    ran = doctest.testmod(api, extraglobs={"job": job, "handle": handle}, optionflags=flags)
    assert ran.failed == 0
    assert ran.attempted > 15


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.mpi
def test_jobs_of_a_map_end_in_their_own_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own settings; the second ends while the first still runs."""
    monkeypatch.chdir(tmp_path)
    words = 'while [ -n "$UNTIL" ] && ! [ -e "$UNTIL" ]; do sleep 0.1; done; echo "$UNTIL $BOTH"'
    job = hpclaunch.Job(command=["sh", "-c", words], site="local", tasks=1, env={"BOTH": "kept", "UNTIL": ""})
    slow, quick = job.map([{"name": "slow", "env": {"UNTIL": str(tmp_path / "go")}}, {"name": "quick"}])
    ended = hpclaunch.as_completed([slow, quick])
    assert next(ended) is quick
    assert (slow.record.state, quick.logs()) == ("running", b" kept\n")
    with pytest.raises(TimeoutError, match=f"job {slow.id} did not end within 0.2 s"):
        slow.wait(timeout=0.2)
    with pytest.raises(TimeoutError, match=r"1 job did not end within 0.1 s"):
        list(hpclaunch.as_completed([slow], timeout=0.1))
    assert slow.status().state == "running"
    (tmp_path / "go").touch()
    assert [handle.record.name for handle in ended] == ["slow"]
    assert slow.logs() == f"{tmp_path / 'go'} kept\n".encode()
    assert list(hpclaunch.as_completed([])) == []


def test_a_map_with_one_wrong_job_submits_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    job = hpclaunch.Job(command=["true"], site="local", tasks=1)
    with pytest.raises(BadInputError, match="'nodez' is not a setting"):
        job.map([{}, {"nodez": 2}])
    with pytest.raises(SiteRuleError, match="nosuch"):
        job.map([{}, {"site": "lumi-g", "account": "nosuch"}])
    assert hpclaunch.jobs() == []


def test_a_map_tells_what_it_submitted_before_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    job = hpclaunch.Job(command=["true"], site="local", tasks=1)
    with pytest.raises(BadInputError, match=r"nosuch\.py"):
        job.map([{}, {"command": ["python", "nosuch.py"]}])
    (first,) = hpclaunch.jobs()
    assert f"of 2 jobs, these were submitted before: {first.id}" in caplog.text
    first.wait()


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
