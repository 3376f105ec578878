"""Restarts from a checkpoint, and the watchdog: the job's script tells them from failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.cluster import Slurm

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


@pytest.mark.slurm
def test_where_requeueing_is_not_allowed_the_next_job_takes_over(
    on_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that forbids requeueing: its scontrol says so."""
    real = subprocess.run(["which", "scontrol"], capture_output=True, text=True, check=True).stdout.strip()
    fake = tmp_path / "scontrol"
    fake.write_text(
        '#!/bin/sh\nif [ "$1" = requeue ]; then\n'
        '  echo "Requested operation is presently disabled" >&2; exit 1\nfi\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    job, log = submit(*SLURM, "--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "1")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1)]
