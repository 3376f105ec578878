"""What the test suite promises: Ctrl-C works, a test that hangs ends with all it started, slow is marked."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.in_one_test import in_one_test

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
CTRL_C = "tests/cli/test_jobs_commands.py::test_ctrl_c_ends_the_waiting_and_not_the_job"

# One process stays in the tree of the test, one leaves it, and the test waits for both.
HANGS = """
import os, pathlib, subprocess
def test_hangs():
    pids = pathlib.Path(__file__).with_name("pids")
    script = f'sleep 1000 & echo $! >> {pids}; setsid sleep 1000 & echo $! >> {pids}; exit'
    subprocess.run(["bash", "-c", script])
    subprocess.run(["bash", "-c", f"echo $$ >> {pids}; sleep 1000; :"], capture_output=True)
def test_after_it():
    pass
"""

GROUPED = """
import os, pytest
@pytest.mark.xdist_group("g")
@pytest.mark.parametrize("n", range(6))
def test_one(n):
    print("WORKER", os.environ["PYTEST_XDIST_WORKER"])
"""


def run_pytest(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run tests with this suite's settings in a process that has SIGINT ignored."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, words)],
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )


def test_ctrl_c_works_where_the_tests_run_in_the_background_of_a_shell() -> None:
    """Which starts them with SIGINT ignored; a child would inherit that, and wait for ever."""
    done = run_pytest("-q", "--timeout=60", CTRL_C)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_a_test_that_hangs_ends_with_all_it_started(tmp_path: Path) -> None:
    file = tmp_path / "test_hanging.py"
    file.write_text(HANGS)
    done = run_pytest("-c", ROOT / "pyproject.toml", "-p", "tests.conftest", "--timeout=3", file)
    assert "Timeout (>3.0s)" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3
    assert [pid for pid in pids if _runs(pid)] == []


def _runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_long_tests_run_where_they_are_wanted(tmp_path: Path) -> None:
    file = tmp_path / "test_two.py"
    file.write_text("import pytest\n@pytest.mark.long\ndef test_all(): pass\ndef test_a_part(): pass\n")
    words = ("-q", "-c", ROOT / "pyproject.toml", "-p", "tests.conftest", file)
    assert "1 passed, 1 deselected" in run_pytest(*words, HPCLAUNCH_TEST_LONG="0").stdout
    assert "2 passed" in run_pytest(*words, HPCLAUNCH_TEST_LONG="1").stdout


def test_a_group_runs_in_one_worker(tmp_path: Path) -> None:
    """Which makes what its tests share; a pytest-xdist that ignores groups does so silently."""
    file = tmp_path / "test_grouped.py"
    file.write_text(GROUPED)
    words = ("-c", ROOT / "pyproject.toml", "-p", "tests.conftest", "-n", "2", "--dist", "loadgroup", "-rP")
    workers = re.findall(r"^WORKER (\w+)$", run_pytest(*words, file).stdout, re.MULTILINE)
    assert len(workers) == 6
    assert len(set(workers)) == 1


def test_every_test_has_a_time_limit_and_those_with_servers_or_ranks_are_slow(
    request: pytest.FixtureRequest,
) -> None:
    """As far as they run now."""
    usual = float(request.config.getini("timeout"))
    for item in request.session.items:
        limit = item.get_closest_marker("timeout")
        assert (float(limit.args[0]) if limit else usual) > 0, item.nodeid
        real = any(item.get_closest_marker(marker) for marker in ("mpi", "slurm", "sshd"))
        assert not real or item.get_closest_marker("slow"), item.nodeid


def test_cases_in_one_test_all_run_and_those_that_fail_are_named() -> None:
    seen = []

    @in_one_test("number, text", [(1, "a"), (2, "b"), (3, "c"), (4, "d")])
    def check(number: int, text: str, folder: str) -> None:
        seen.append(f"{folder}{text}")
        assert number != 2
        with pytest.raises(ZeroDivisionError):
            assert 1 / (number - 3)

    assert list(inspect.signature(check).parameters) == ["folder"]
    with pytest.raises(AssertionError) as failed:
        check(folder="/")
    assert seen == ["/a", "/b", "/c", "/d"]
    assert [line.partition(": ")[0] for line in str(failed.value).splitlines()] == [
        "3 of 4 cases fail",
        "1, a",
        "2, b",
        "4, d",
    ]
