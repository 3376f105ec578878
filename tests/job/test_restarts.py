"""Restarts from a checkpoint, and the watchdog: the job's script tells them from failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.follow_job import cancel_job
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from tests.testbed.cluster import Slurm

FAKES = Path(__file__).parents[1] / "fakes"

# A program that keeps the agreement: on the signal it leaves with the agreed code, and when called again it
# goes on. It ends well in the run whose number is its first argument.
PROGRAM = """
import os, signal, sys, time
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
run = os.environ["HPCLAUNCH_RESTART"]
print("GOT rank", os.environ["RANK"], "run", run, flush=True)
while run != sys.argv[1] and not told:
    time.sleep(0.05)
sys.exit(int(os.environ["HPCLAUNCH_CHECKPOINT_EXIT_CODE"]) if told else 0)
"""


def submit(*words: str) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-m", "hpclaunch", "submit", "--wait", "--json", *words]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.stdout, answer.stderr
    return json.loads(answer.stdout), answer.stderr


def runs(log: str) -> list[str]:
    return sorted(line for line in log.splitlines() if line.startswith("GOT"))


LOCAL = ("--site", "local", "--tasks", "2", "--time", "4s", "--warn-before", "3s")


@pytest.mark.mpi
def test_a_job_that_checkpoints_is_called_again() -> None:
    job, log = submit(*LOCAL, "--max-restarts", "2", "--", sys.executable, "-c", PROGRAM, "2")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1, 2)]


@pytest.mark.mpi
def test_restarts_are_used_up() -> None:
    job, log = submit(*LOCAL, "--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "never")
    assert (job["state"], job["exit_code"]) == ("failed", 85)
    assert "all 1 restarts (--max-restarts) are used up" in log
    assert len(runs(log)) == 4


@pytest.mark.mpi
def test_a_failure_is_no_checkpoint() -> None:
    job, _ = submit(*LOCAL, "--max-restarts", "2", "--", sys.executable, "-c", "raise SystemExit(7)")
    assert (job["state"], job["exit_code"]) == ("failed", 7)


@pytest.mark.mpi
def test_a_hang_is_ended_and_named() -> None:
    job, log = submit("--site", "local", "--idle-timeout", "2s", "--", "sleep", "600")
    assert (job["state"], job["exit_code"]) == ("failed", 124)
    assert "hung: no output and no heartbeat for 2 s" in log


@pytest.mark.mpi
def test_a_heartbeat_keeps_a_silent_job_alive() -> None:
    beat = 'for i in 1 2 3 4 5 6 7 8; do : > "$HPCLAUNCH_HEARTBEAT"; sleep 0.5; done'
    job, _ = submit("--site", "local", "--idle-timeout", "2s", "--", "bash", "-c", beat)
    assert (job["state"], job["exit_code"]) == ("done", 0)


@pytest.mark.parametrize(
    "words", [("--max-restarts", "-1"), ("--warn-before", "10s"), ("--idle-timeout", "5")]
)
def test_impossible_wishes_are_refused(words: tuple[str, ...]) -> None:
    usual = ("--site", "local", "--time", "5s", "--max-restarts", "1", *words, "--dry-run", "--", "true")
    answer = subprocess.run(
        [sys.executable, "-m", "hpclaunch", "submit", *usual], capture_output=True, text=True
    )
    assert answer.returncode == 3, answer.stderr


@pytest.fixture
def on_slurm(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return slurm


SLURM = ("--site", "generic-slurm", "--nodes", "2", "--time", "4m", "--warn-before", "230s")


@pytest.mark.slurm
def test_slurm_requeues_a_job_that_checkpoints(on_slurm: Slurm) -> None:
    job, log = submit(*SLURM, "--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "1")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1)]


def forbid_requeue(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site that forbids requeueing: its scontrol says so."""
    real = subprocess.run(["which", "scontrol"], capture_output=True, text=True, check=True).stdout.strip()
    fake = folder / "scontrol"
    fake.write_text(
        '#!/bin/sh\nif [ "$1" = requeue ]; then\n'
        '  echo "Requested operation is presently disabled" >&2; exit 1\nfi\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.slurm
def test_where_requeueing_is_not_allowed_the_next_job_takes_over(
    on_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_requeue(tmp_path, monkeypatch)
    job, log = submit(*SLURM, "--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "1")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1)]


def logs_of_array(job: str) -> list[list[str]]:
    """Return what each of three jobs of an array said in its runs."""
    command = [sys.executable, "-m", "hpclaunch", "logs", job, "--index"]
    return [
        runs(subprocess.run([*command, str(i)], capture_output=True, text=True, check=True).stdout)
        for i in range(3)
    ]


@pytest.mark.slurm
def test_each_job_of_an_array_comes_back_by_itself(on_slurm: Slurm) -> None:
    words = ("--array", "0-2", "--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "1")
    job, log = submit(*SLURM, *words)
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert (
        logs_of_array(job["id"]) == [[f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1)]] * 3
    )


@pytest.mark.slurm
def test_a_job_of_an_array_that_may_not_come_back_has_failed(
    on_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_requeue(tmp_path, monkeypatch)
    words = ("--array", "0-2", "--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "1")
    job, log = submit(*SLURM, *words)
    assert (job["state"], job["exit_code"]) == ("failed", 85), log
    assert "it may not requeue itself here, and a job of an array has no other way" in log
    assert logs_of_array(job["id"]) == [[f"GOT rank {rank} run 0" for rank in (0, 1)]] * 3


@pytest.fixture
def on_pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A fake PBS whose jobs find it and the MPI on their PATH."""
    (tmp_path / "pbs").mkdir()
    jobs = f"{FAKES / 'fake_pbs'}:{Path(sys.executable).parent}:/usr/bin:/bin"
    monkeypatch.setenv("FAKE_PBS_HOME", str(tmp_path / "pbs"))
    monkeypatch.setenv("FAKE_PBS_JOB_PATH", jobs)
    monkeypatch.setenv("PATH", f"{FAKES / 'fake_pbs'}:{os.environ['PATH']}")
    return ("--site", "generic-pbs", "--tasks", "2", "--time", "9s", "--warn-before", "5s")


@pytest.mark.mpi
@pytest.mark.parametrize("who", ["operator", "user", "not rerunnable"])
def test_a_job_of_pbs_that_checkpoints_comes_back(
    on_pbs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """By qrerun where PBS lets it, else as the next job of a chain; its output is all there."""
    monkeypatch.setenv("FAKE_PBS_OPERATOR", "0" if who == "user" else "1")
    more = ("--directive", "-r n") if who == "not rerunnable" else ()
    words = (*on_pbs, *more, "--max-restarts", "2", "--", sys.executable, "-c", PROGRAM, "2")
    job, log = submit(*words)
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1, 2)]
    said = {"operator": None, "user": "qrerun: Unauthorized Request", "not rerunnable": "is not rerunnable"}
    refusal = said[who]
    assert refusal in log if refusal else "qrerun: " not in log
    status = subprocess.run(
        [sys.executable, "-m", "hpclaunch", "status", "--json"], capture_output=True, text=True
    )
    number = json.loads(status.stdout)["scheduler_id"]
    assert number == ("1.fakepbs" if who == "operator" else "3.fakepbs")


@pytest.mark.mpi
def test_a_chain_that_pbs_refuses_is_a_failure_with_its_reason(
    on_pbs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "qsub").write_text("#!/bin/sh\necho 'qsub: would exceed per-user limit' >&2; exit 38\n")
    (full / "qsub").chmod(0o755)
    monkeypatch.setenv("FAKE_PBS_JOB_PATH", f"{full}:{os.environ['FAKE_PBS_JOB_PATH']}")
    words = (*on_pbs, "--max-restarts", "2", "--", sys.executable, "-c", PROGRAM, "2")
    job, log = submit(*words)
    assert (job["state"], job["exit_code"]) == ("failed", 85), log
    assert "qsub: would exceed per-user limit" in log
    assert "checkpointed, but neither requeued nor followed" in log


@pytest.mark.mpi
def test_cancelling_ends_the_job_of_a_chain_that_took_over(on_pbs: tuple[str, ...], tmp_path: Path) -> None:
    """As Ctrl-C does while one waits, whose record is that of the first job."""
    command = [sys.executable, "-m", "hpclaunch"]
    words = ("submit", *on_pbs, "--max-restarts", "2", "--", sys.executable, "-c", PROGRAM, "never")
    job = subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout.strip()
    store = Store()
    folder, record = store.folder(job), store.load(job)
    while not (folder / "out.log").exists():
        time.sleep(0.05)
    (tmp_path / "pbs" / "stopped").touch()  # so the next one waits in the queue
    while not (folder / "next_id").exists():
        time.sleep(0.05)
    ended = cancel_job(store, LocalHost(), get_scheduler("pbs"), record)
    assert (ended.state, ended.scheduler_id) == ("cancelled", "2.fakepbs")
    assert json.loads((tmp_path / "pbs" / "2.json").read_text())["state"] == "F"


# Before it checkpoints, rank 0 makes further writes to the named files of the job's folder fail: "no space
# left on device", from the kernel, for any user.
FULL_DISK = (
    """
import os, sys
for name in sys.argv[2:] if os.environ["RANK"] == "0" else ():
    path = os.environ["HPCLAUNCH_JOB_FOLDER"] + "/" + name
    if os.path.lexists(path):
        os.remove(path)
    os.symlink("/dev/full", path)
"""
    + PROGRAM
)


@pytest.fixture(params=["slurm", "pbs"])
def queue(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The options that name a scheduler with a queue: the real Slurm, the fake PBS."""
    if request.param == "pbs":
        on_pbs: tuple[str, ...] = request.getfixturevalue("on_pbs")
        return on_pbs
    request.getfixturevalue("on_slurm")
    return SLURM


@pytest.mark.slurm
@pytest.mark.parametrize("written", [("restarts.new",), ("restarts.new", "reason.new", "exit_status.new")])
def test_a_full_disk_at_a_restart_is_a_failure(queue: tuple[str, ...], written: tuple[str, ...]) -> None:
    program = (sys.executable, "-c", FULL_DISK, "never", *written)
    job, log = submit(*queue, "--max-restarts", "2", "--", *program)
    assert (job["state"], job["exit_code"]) == ("failed", 85), log
    assert "No space left on device" in log
    assert "not restarted" in log
    assert len(runs(log)) == 2
    assert subprocess.run([sys.executable, "-m", "hpclaunch", "wait"], capture_output=True).returncode == 1


@pytest.mark.mpi
def test_a_full_disk_at_a_restart_on_this_machine_is_not_done() -> None:
    program = (sys.executable, "-c", FULL_DISK, "never", "restarts.new", "reason.new", "exit_status.new")
    job, log = submit(*LOCAL, "--max-restarts", "2", "--", *program)
    assert (job["state"], job["exit_code"]) == ("lost", None), log
    assert "its disk was full" in log


@pytest.mark.slurm
def test_a_next_job_that_cannot_be_recorded_does_not_run(
    on_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_requeue(tmp_path, monkeypatch)
    program = (sys.executable, "-c", FULL_DISK, "1", "next_id.new")
    job, log = submit(*SLURM, "--name", "unseen", "--max-restarts", "1", "--", *program)
    assert (job["state"], job["exit_code"]) == ("failed", 85), log
    assert "neither requeued nor followed" in log
    states = on_slurm.run("squeue", "-h", "-a", "-t", "all", "-n", "unseen", "-o", "%T").stdout.split()
    assert sorted(states) == ["CANCELLED", "FAILED"]


@pytest.mark.mpi
def test_a_chain_whose_next_job_has_no_id_is_a_failure(
    on_pbs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = tmp_path / "silent"
    silent.mkdir()
    (silent / "qsub").write_text("#!/bin/sh\nexit 0\n")
    (silent / "qsub").chmod(0o755)
    monkeypatch.setenv("FAKE_PBS_JOB_PATH", f"{silent}:{os.environ['FAKE_PBS_JOB_PATH']}")
    job, log = submit(*on_pbs, "--max-restarts", "2", "--", sys.executable, "-c", PROGRAM, "2")
    assert (job["state"], job["exit_code"]) == ("failed", 85), log


@pytest.mark.mpi
def test_a_disk_that_becomes_full_meanwhile_does_not_keep_a_job_from_coming_back(tmp_path: Path) -> None:
    """A real small disk: the room for what a restart writes was reserved before."""
    program = """
import os
filler = os.environ["HPCLAUNCH_JOB_FOLDER"] + "/filler"
if os.environ["HPCLAUNCH_RESTART"] == "0":
    try:
        with open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError as error:
        assert error.strerror == "No space left on device"
    raise SystemExit(int(os.environ["HPCLAUNCH_CHECKPOINT_EXIT_CODE"]))
os.remove(filler)
print("GOT run", os.environ["HPCLAUNCH_RESTART"])
"""
    disk = tmp_path / "small disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=2m small "$0" && exec "$@"'
    words = ("unshare", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", mount, str(disk))
    hpclaunch = ("submit", "--site", "local", "--max-restarts", "1", "--wait", "--json")
    answer = subprocess.run(
        [*words, sys.executable, "-m", "hpclaunch", *hpclaunch, "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(disk)},
    )
    job = json.loads(answer.stdout)
    assert (job["state"], job["exit_code"]) == ("done", 0), answer.stderr
    assert "GOT run 1" in answer.stderr


@pytest.mark.slurm
def test_the_log_of_each_run_stays_where_slurm_requeues_the_job(on_slurm: Slurm) -> None:
    program = 'echo "GOT run ${SLURM_RESTART_COUNT:-0}"; [ "${SLURM_RESTART_COUNT:-}" ] || '
    program += '{ scontrol requeue "$SLURM_JOB_ID"; sleep 600; }'
    words = ("--site", "generic-slurm", "--time", "5m", "--mpi", "none", "--", "bash", "-c", program)
    job, log = submit(*words)
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == ["GOT run 0", "GOT run 1"]
    logs = subprocess.run([sys.executable, "-m", "hpclaunch", "logs"], capture_output=True, text=True)
    assert runs(logs.stdout) == runs(log)


@pytest.mark.mpi
def test_how_an_earlier_run_ended_does_not_end_this_one(on_pbs: tuple[str, ...], tmp_path: Path) -> None:
    """It hung and the site has put it back into the queue."""
    (tmp_path / "pbs" / "stopped").touch()
    command = [sys.executable, "-m", "hpclaunch"]
    words = ("submit", *on_pbs[:-2], "--idle-timeout", "60s", "--", "true")  # no restarts, so no warning
    job = subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout.strip()
    folder = Store().folder(job)
    (folder / "reason").write_text("hung: no output and no heartbeat for 60 s; ended by --idle-timeout\n")
    (folder / "exit_status").write_text("124\n")
    (tmp_path / "pbs" / "stopped").unlink()
    answer = subprocess.run([*command, "wait", "--json"], capture_output=True, text=True)
    assert (json.loads(answer.stdout)["state"], answer.stderr) == ("done", "")


@pytest.mark.mpi
def test_a_job_of_pbs_finds_qsub_where_its_user_did(
    on_pbs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PBS_JOB_PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    job, log = submit(*on_pbs, "--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "1")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert len(runs(log)) == 4
