"""The testbed itself: what happens where parts are missing, and that it leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.testbed.cluster import Slurm, Sshd

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
A_TEST = "tests/job/test_run_slurm.py::test_two_nodes_from_submission_to_result"


def run_pytest(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one test with Slurm on a PATH that has none."""
    for name in ("bash", "env"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", A_TEST]
    inherited = {k: v for k, v in os.environ.items() if k not in ("CI", "HPCLAUNCH_TEST_REQUIRE_ALL")}
    return subprocess.run(
        words,
        env={**inherited, "HPCLAUNCH_TEST_PROGRAMS": str(tmp_path), **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_slurm_its_tests_are_left_out_in_one_line(tmp_path: Path) -> None:
    done = run_pytest(tmp_path)
    assert "1 deselected" in done.stdout
    assert "1 tests with Slurm left out: this machine lacks slurmctld" in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.parametrize("variable", ["CI", "HPCLAUNCH_TEST_REQUIRE_ALL"])
def test_where_all_are_required_a_missing_part_is_a_failure(tmp_path: Path, variable: str) -> None:
    done = run_pytest(tmp_path, **{variable: "1"})
    assert done.returncode == 1
    assert "1 error" in done.stdout
    assert "apt-get install -y --no-install-recommends slurmctld" in done.stdout


@pytest.mark.slurm
def test_a_killed_test_run_leaves_no_daemon() -> None:
    program = (
        "from tests.testbed.cluster import Slurm; print(Slurm(NODES='1').start().lab, flush=True); input()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    lab = Path(owner.stdout.readline().strip())
    pids = [path.read_text().strip() for path in (lab / "pid").glob("*.pid")]
    assert len(pids) == 3
    owner.kill()
    owner.communicate()
    while any(_runs(pid) for pid in pids):
        time.sleep(0.1)
    shutil.rmtree(lab)


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.slurm
def test_the_emulated_nodes_are_lumi_gs(lumig: Slurm) -> None:
    node = lumig.run("scontrol", "show", "node", "n1").stdout
    assert "CPUTot=128" in node
    assert "CoreSpecCount=8" in node
    assert "Gres=gpu:mi250:8" in node
    names = lumig.run("sinfo", "-h", "-o", "%R").stdout.split()
    assert names == ["standard-g", "small-g", "dev-g"]


@pytest.mark.slurm
def test_the_sshd_lets_its_own_key_in_and_hands_the_cluster_on(sshd: Sshd, slurm: Slurm) -> None:
    done = sshd.run("sinfo -h -o %R; echo \"$0\" 'a b'")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["standard", "dev"]
    unknown = sshd.run("true", known_hosts=Path("/dev/null"))
    assert unknown.returncode == 255
    assert "Host key verification failed" in unknown.stderr
