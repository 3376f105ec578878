"""bootstrap.sh and the README's two commands, on a toy project that installs without a package index."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TOY = Path(__file__).parent / "data" / "toy_project"
QUICK_VENV = Path(__file__).parent / "testbed" / "quick_venv.py"
PYTHON = f'exec {sys.executable} "$@"'
# The newcomer of test_docs_site.py sets up with the real ensurepip; this makes an environment in less time.
QUICK_PYTHON = f'[ "$1 $2" = "-m venv" ] && exec {sys.executable} {QUICK_VENV} "$3"; {PYTHON}'
# One that shows that it was to make an environment.
NO_ENVIRONMENT = f'[ "$1 $2" = "-m venv" ] && echo "none made by $0" && exit 1; {PYTHON}'
# What bootstrap.sh uses of the system besides python3; all of it is essential on Debian.
SYSTEM_TOOLS = ("sh", "cat", "cksum", "date", "dirname", "flock", "grep", "head", "rm", "sed", "tail")


class Toy:
    """A toy project with our bootstrap.sh, and a system on which only some commands exist."""

    def __init__(self, folder: Path, root: Path | None = None) -> None:
        self.root = root or folder / "it's a checkout"
        if root is None:
            shutil.copytree(TOY, self.root)
            shutil.copy(ROOT / "bootstrap.sh", self.root)
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in (*SYSTEM_TOOLS, "uname"):
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        self.add_command("python3", QUICK_PYTHON)
        self.env = {"PATH": str(self.bin), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}

    def add_command(self, name: str, shell: str) -> None:
        """Put a command of one line of shell on the system."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{shell}\n")
        path.chmod(0o755)

    def command(self, *args: str) -> list[str]:
        return ["sh", str(self.root / "bootstrap.sh"), *args]

    def run(self, *args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*args),
            env={**self.env, **env},
            cwd=cwd or self.root,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


ARGUMENTS = ("--", "--data", "two words", "$(touch x)", "it's", "")


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Toy, subprocess.CompletedProcess[str]]:
    """A toy that was set up for the training, and how that ended; it stays as it is."""
    toy = Toy(tmp_path_factory.mktemp("first"))
    done = toy.run("mnist", *ARGUMENTS, cwd=toy.bin, TOY_EXIT_hpclaunch="7")
    toy.root.rename(toy.bin.parent / "kept")
    return toy, done


@pytest.fixture
def installed(first_run: tuple[Toy, subprocess.CompletedProcess[str]], tmp_path: Path) -> Generator[Toy]:
    """A copy of that toy, at its old place, for an environment knows its own."""
    root = first_run[0].root
    shutil.copytree(root.parent / "kept", root, symlinks=True)
    yield Toy(tmp_path, root)
    shutil.rmtree(root, ignore_errors=True)


def test_sets_up_from_nothing_and_passes_arguments_folder_and_status(
    first_run: tuple[Toy, subprocess.CompletedProcess[str]],
) -> None:
    toy, done = first_run
    expected = ["submit", "--site", "local", "--tasks", "2", "mnist", *ARGUMENTS]
    assert done.stdout == f"hpclaunch {expected} {toy.bin}\n"
    assert done.returncode == 7
    assert "installing hpclaunch[all]" in done.stderr


def test_an_up_to_date_environment_is_used_again_and_a_changed_one_completed(installed: Toy) -> None:
    made = (installed.root / ".venv" / "pyvenv.cfg").stat().st_mtime_ns
    again = installed.run("mnist")
    with (installed.root / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    changed = installed.run("mnist")
    assert again.stderr == ""
    assert "installing" in changed.stderr
    assert again.stdout.startswith("hpclaunch ['submit'")
    assert changed.stdout == again.stdout
    assert (installed.root / ".venv" / "pyvenv.cfg").stat().st_mtime_ns == made


def test_tests_run_every_check_and_name_those_that_failed(installed: Toy, tmp_path: Path) -> None:
    """In the completed environment of the training, which serves the training afterwards, too."""
    done = installed.run("tests", "-k", "a b", cwd=tmp_path, TOY_EXIT_ruff="1", TOY_EXIT_mypy="2")
    assert "hpclaunch[all,dev]" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ruff", "ruff", "pytest", "mypy"]
    assert f"'-k', 'a b'] {installed.root}" in done.stdout.splitlines()[2]
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "bootstrap: failed: ruff ruff mypy"
    assert installed.run("tests").returncode == 0
    training = installed.run("mnist")
    assert (training.returncode, training.stderr) == (0, "")


@pytest.mark.parametrize(("names", "status", "runs"), [(2, "1", 2), (6, "1", 1), (2, "2", 1)])
def test_a_few_tests_that_failed_run_once_more_alone(
    installed: Toy, names: int, status: str, runs: int
) -> None:
    """Not where many failed, or where pytest was used wrongly: 2 is its status for that."""
    cache = installed.root / ".pytest_cache/v/cache/lastfailed"
    cache.parent.mkdir(parents=True)
    cache.write_text(json.dumps({f"tests/test_a.py::test[{n}@x]@group": True for n in range(names)}))
    done = installed.run("tests", TOY_EXIT_pytest=status)
    calls = [line for line in done.stdout.splitlines() if line.startswith("pytest ")]
    assert len(calls) == runs
    assert done.stderr.splitlines()[-1] == "bootstrap: failed: run_pytest"
    if runs == 2:
        failed = installed.root / ".venv/failed-tests"
        assert f"@{failed}" in calls[1].replace('"', "'")
        assert failed.read_text() == "tests/test_a.py::test[0@x]\ntests/test_a.py::test[1@x]\n"
        assert "once more, alone:\ntests/test_a.py::test[0@x]\n" in done.stderr


def test_a_killed_set_up_is_started_afresh(toy: Toy, tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    process = subprocess.Popen(
        toy.command("mnist"), env={**toy.env, "TOY_HANG": str(hangs)}, start_new_session=True
    )
    while not hangs.exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (toy.root / ".venv" / "left-behind").touch()
    done = toy.run("mnist")
    assert done.returncode == 0, done.stderr
    assert not (toy.root / ".venv" / "left-behind").exists()


def test_a_moved_checkout_and_a_lost_interpreter_are_set_up_afresh(installed: Toy, tmp_path: Path) -> None:
    installed.root = installed.root.rename(tmp_path / "moved")
    (installed.root / ".venv" / "left-behind").touch()
    moved = installed.run("mnist")
    assert moved.returncode == 0, moved.stderr
    assert not (installed.root / ".venv" / "left-behind").exists()
    interpreter = installed.root / ".venv" / "bin" / "python"
    interpreter.unlink()
    interpreter.symlink_to("/nonexistent/python3")
    installed.add_command("python3", NO_ENVIRONMENT)
    assert f"none made by {installed.bin}/python3" in installed.run("mnist").stderr


def test_two_at_once_do_not_disturb_each_other(toy: Toy) -> None:
    both = [subprocess.Popen(toy.command("mnist"), env=toy.env, stdout=subprocess.PIPE) for _ in range(2)]
    for process in both:
        out, _ = process.communicate()
        assert process.returncode == 0
        assert out.startswith(b"hpclaunch ['submit'")


def test_a_python_without_venv_names_the_package(toy: Toy, tmp_path: Path) -> None:
    (tmp_path / "fake_debian").mkdir()
    (tmp_path / "fake_debian" / "ensurepip.py").write_text("raise ModuleNotFoundError(name='ensurepip')\n")
    toy.add_command("python3", f'PYTHONPATH={tmp_path}/fake_debian exec {sys.executable} "$@"')
    done = toy.run("mnist")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert done.returncode == 1
    assert f"apt-get install python{version}-venv" in done.stderr
    assert "python3-venv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (toy.root / ".venv").exists()


def test_a_python_too_old_is_named_and_a_newer_one_beside_it_used(toy: Toy) -> None:
    fake = f'[ "$1" = -c ] && exec {sys.executable} -c "import sys; sys.version_info = (3, 9, 18); $2"'
    toy.add_command("python3", fake)
    old = toy.run("mnist")
    assert old.returncode == 1
    assert "Python 3.10 or newer is needed; found only" in old.stderr
    assert "bin/python3, version 3.9.18" in old.stderr
    toy.add_command("python3.12", NO_ENVIRONMENT)
    assert f"none made by {toy.bin}/python3.12" in toy.run("mnist").stderr


def test_no_python_at_all_is_said(toy: Toy) -> None:
    (toy.bin / "python3").unlink()
    done = toy.run("tests")
    assert done.returncode == 1
    assert "apt-get install python3 python3-venv" in done.stderr


def test_an_unreachable_index_is_said_in_one_message(toy: Toy) -> None:
    text = (toy.root / "pyproject.toml").read_text()
    (toy.root / "pyproject.toml").write_text(text.replace("requires = []", 'requires = ["hatchling"]'))
    nobody_there = "http://127.0.0.1:9/simple"
    done = toy.run("mnist", PIP_NO_INDEX="", PIP_INDEX_URL=nobody_there, PIP_RETRIES="1")
    assert done.returncode == 1
    assert "the package index could not be reached" in done.stderr
    assert "HTTPS_PROXY" in done.stderr
    assert "Traceback" not in done.stderr
    (toy.root / "pyproject.toml").write_text(text)
    assert toy.run("mnist").returncode == 0


def test_an_installation_that_fails_shows_the_end_of_the_log(toy: Toy) -> None:
    backend = toy.root / "toy_backend.py"
    backend.write_text("raise RuntimeError('the toy is broken')\n")
    done = toy.run("mnist")
    assert done.returncode == 1
    assert "the toy is broken" in done.stderr
    assert "bootstrap.log" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [(), ("--help",), ("train",)])
def test_an_unknown_verb_prints_the_usage(toy: Toy, arguments: tuple[str, ...]) -> None:
    done = toy.run(*arguments)
    assert done.returncode == 2
    assert "sh bootstrap.sh mnist" in done.stderr
    assert "sh bootstrap.sh tests" in done.stderr
    assert done.stdout == ""


def test_the_readme_has_the_two_commands_each_a_line_of_its_own() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("sh bootstrap.sh")] == [
        "sh bootstrap.sh mnist",
        "sh bootstrap.sh tests",
    ]


def test_the_oldest_python_is_the_one_of_the_package() -> None:
    declared = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert declared
    assert f"sys.version_info < (3, {declared[1]})" in (ROOT / "bootstrap.sh").read_text()
