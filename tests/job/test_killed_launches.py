"""An mpiexec that is killed leaves a folder, which must not end a later job; a job itself leaves none."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpclaunch.package_data import resource_dir
from tests.in_process import hpclaunch_here
from tests.job.leftovers import MPIEXEC, environment, killed_launch, plant

pytestmark = [pytest.mark.mpi, pytest.mark.openmpi, pytest.mark.slow]
SESSION = resource_dir("remote") / "mpi_session.sh"
ALONE = ("--tasks", "1", "--framework", "mpi4py")  # others that are alone need no mpiexec
MESSAGE = "The PMIx server's listener thread failed to start"


@pytest.fixture
def tmpdir() -> Iterator[Path]:
    """A folder with a short name: in a long one hpclaunch uses /tmp."""
    with tempfile.TemporaryDirectory(prefix="left", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def leftover(tmpdir: Path) -> Path:
    """What a real mpiexec leaves when it is killed."""
    folder = killed_launch(tmpdir)
    assert folder is not None
    return folder


def run(tmpdir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("submit", "--site", "local", *words, environment={"TMPDIR": str(tmpdir)})


def sessions(tmpdir: Path) -> list[str]:
    return sorted(path.name for path in tmpdir.glob("hpclaunch-mpi.*"))


def test_leftovers_end_a_persons_own_mpiexec_but_no_job(tmpdir: Path, leftover: Path) -> None:
    plant(leftover, 3000)
    own = [MPIEXEC, "-n", "2", "true"]
    ended = subprocess.run(own, env=environment(tmpdir), capture_output=True, text=True, check=False)
    assert ended.returncode == 213
    assert MESSAGE in ended.stderr
    job = run(tmpdir, "--tasks", "2", "--wait", "--", "true")
    assert job.returncode == 0, job.stderr
    checked = hpclaunch_here(
        "check", "--require", "mpi-launch", "--json", environment={"TMPDIR": str(tmpdir), **os.environ}
    )
    assert MESSAGE not in checked.stdout
    assert sessions(tmpdir) == []
    assert [path for path in tmpdir.iterdir() if path.name.startswith("hpclaunch")] == []


def test_status_names_the_leftover_where_a_program_starts_its_own_mpiexec(
    tmpdir: Path, leftover: Path
) -> None:
    plant(leftover, 3000)
    program = f"unset PRTE_MCA_prte_tmpdir_base ${{!PMIX_@}} ${{!PRTE_@}}; TMPDIR={tmpdir} mpiexec -n 2 true"
    job = run(tmpdir, *ALONE, "--wait", "--", "bash", "-c", program)
    assert job.returncode == 1
    status = json.loads(hpclaunch_here("status", "last", "--json").stdout)
    assert status["failure"]["cause"] == "folder of a killed mpiexec"
    assert "remove such folders" in status["failure"]["remedy"]


@pytest.mark.parametrize(("program", "exit_code"), [("true", 0), ("exit 3", 1)])
def test_a_job_removes_its_folder(tmpdir: Path, program: str, exit_code: int) -> None:
    seen = f"ls -d {tmpdir}/hpclaunch-mpi.*/ompi.* && stat -c %a $HPCLAUNCH_MPI_SESSION && {program}"
    job = run(tmpdir, *ALONE, "--wait", "--", "bash", "-c", seen)
    assert job.returncode == exit_code, job.stderr
    assert f"{tmpdir}/hpclaunch-mpi." in job.stdout
    assert "700" in job.stdout.split()
    assert sessions(tmpdir) == []


def test_a_cancelled_job_removes_its_folder(tmpdir: Path) -> None:
    started = run(tmpdir, *ALONE, "--no-wait", "--", "sleep", "60")
    assert started.returncode == 0, started.stderr
    while not list(tmpdir.glob("*/ompi.*")) and hpclaunch_here("jobs", "--state", "running").stdout:
        time.sleep(0.02)
    assert sessions(tmpdir) != []
    assert hpclaunch_here("cancel", "last").returncode == 0
    assert sessions(tmpdir) == []


def source(tmpdir: Path, then: str) -> subprocess.CompletedProcess[str]:
    """Run a script that makes its folder as a job's does."""
    text = f". {SESSION}; {then}"
    environ = {**environment(tmpdir), "LC_ALL": "C"}
    return subprocess.run(["bash", "-ec", text], env=environ, capture_output=True, text=True, check=False)


def test_the_next_job_removes_what_a_killed_one_left(tmpdir: Path) -> None:
    assert source(tmpdir, 'touch "$hpclaunch_session/x"; kill -KILL $$').returncode == -signal.SIGKILL
    (left,) = sessions(tmpdir)
    stranger = tmpdir / left.replace(left.split(".")[1], "12345")  # of another boot, container or machine
    stranger.mkdir()
    linked = tmpdir / left.replace(left.split(".")[2], "4194305")  # a number that no process has
    linked.symlink_to(tmpdir)
    done = source(tmpdir, 'ls -d "$hpclaunch_session"; rm -r "$hpclaunch_session"')
    assert done.returncode == 0, done.stderr
    assert sessions(tmpdir) == sorted([stranger.name, linked.name])


def test_a_folder_whose_ranks_live_stays(tmpdir: Path) -> None:
    """Those of a job whose shell was killed."""
    then = 'sleep 60 > /dev/null 2>&1 & echo "$!"; kill -KILL $$'
    rank = int(source(tmpdir, then).stdout)
    try:
        (left,) = sessions(tmpdir)
        assert source(tmpdir, 'rm -r "$hpclaunch_session"').returncode == 0
        assert sessions(tmpdir) == [left]
    finally:
        os.kill(rank, signal.SIGKILL)


def test_a_script_that_begins_again_keeps_its_folder(tmpdir: Path) -> None:
    again = f'first=$hpclaunch_session; . {SESSION}; [ "$first" = "$hpclaunch_session" ]; rm -r "$first"'
    assert source(tmpdir, again).returncode == 0
    differs = f'. {SESSION}; [ "$outer" != "$hpclaunch_session" ]'
    inner = f"export outer=$hpclaunch_session; bash -c {shlex.quote(differs)} || exit 1; true"
    assert source(tmpdir, inner).returncode == 0


def test_a_long_tmpdir_is_not_used(tmpdir: Path) -> None:
    """The path of a socket has 107 bytes at most."""
    long = tmpdir / ("x" * 60)
    long.mkdir()
    done = source(long, 'echo "$hpclaunch_session"; rm -r "$hpclaunch_session"')
    assert done.stdout.startswith("/tmp/hpclaunch-mpi.")
    assert len(done.stdout.strip()) < 60
