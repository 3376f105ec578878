"""The bundled training in a job that meets its time limit and is called again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm
from tests.train.mpirun import train, write_digits

# Slurm looks at limits every 30 s and warns of those that come within 30 s more than asked for (its
# PERIODIC_TIMEOUT): here 30 to 60 s after the start. The run after the requeue must have ended by then.
SLURM = ("--site", "generic-slurm", "--nodes", "2", "--time", "3m", "--warn-before", "120s")
# Some seconds of training, so that it can be held in the middle.
EPOCHS = ("--epochs", "30", "--batch-size", "8", "--seed", "3")


def first_rank(number: str) -> psutil.Process:
    """Return the process of rank 0 of a job of Slurm's, which has begun."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words, environment = process.cmdline(), process.environ()
            mine = environment.get("SLURM_JOB_ID") == number and environment.get("SLURM_PROCID") == "0"
            # srun names the training among its words, too, and has the environment of the batch script.
            if mine and Path(words[0]).name.startswith("python") and "hpclaunch.train" in words:
                return process
    raise AssertionError(f"no rank 0 of job {number}")


def is_told(process: psutil.Process) -> bool:
    """Whether USR1 has reached a process that is stopped (man 5 proc, ShdPnd)."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    pending = next(line for line in status.splitlines() if line.startswith("ShdPnd"))
    return bool(int(pending.split()[1], 16) & 1 << (signal.SIGUSR1 - 1))


@pytest.mark.slurm
@pytest.mark.mpi
def test_a_training_that_meets_its_time_limit_ends_as_an_uninterrupted_one(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm itself warns before the limit, and requeues; the first rank is held until it does."""
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    digits, kept = write_digits(tmp_path / "digits", 301, 50), tmp_path / "kept"
    usual = (*SLURM, "--max-restarts", "1", "--python", sys.executable, "--json")
    options = ("--data", digits, *EPOCHS, "--checkpoint-dir", kept, "--checkpoint-every", "10", "--resume")
    submitted = hpclaunch("submit", *usual, "mnist", "--", *options)
    assert submitted.returncode == 0, submitted.stderr
    job = json.loads(submitted.stdout)["id"]
    record = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job / "record.json"
    number = json.loads(record.read_text())["scheduler_id"]
    while not list(kept.glob("*.npz")):
        assert not record.with_name("exit_status").exists()
        time.sleep(0.05)
    rank = first_rank(number)
    rank.suspend()
    while not is_told(rank):
        time.sleep(0.2)
    rank.resume()
    waited = hpclaunch("wait", job)
    log = hpclaunch("logs", job).stdout
    assert waited.returncode == 0, log + waited.stderr
    assert log.count("asked to stop: checkpoint written after step") == 1
    assert log.count("resumed from step") == 1
    assert " Restarts=1 " in slurm.run("scontrol", "-o", "show", "job", number).stdout
    whole = train(2, "--data", digits, *EPOCHS)
    assert f"sha256 {whole['parameters_sha256'][0][:16]}" in log
