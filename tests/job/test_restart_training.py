"""The bundled training in a job that is told to stop and called again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.testbed.cluster import Slurm
from tests.train.mpirun import train, write_digits

SLURM = ("--site", "generic-slurm", "--nodes", "2", "--time", "30m", "--warn-before", "1m")
# Some seconds, so that a signal finds it training.
EPOCHS = ("--epochs", "100", "--batch-size", "8", "--seed", "3")


def hpclaunch(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hpclaunch", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slurm
@pytest.mark.mpi
def test_a_training_requeued_by_slurm_ends_as_an_uninterrupted_one(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    digits, kept = write_digits(tmp_path / "digits", 301, 50), tmp_path / "kept"
    usual = (*SLURM, "--max-restarts", "1", "--python", sys.executable)
    options = ("--data", digits, *EPOCHS, "--checkpoint-dir", kept, "--checkpoint-every", "10", "--resume")
    submitted = hpclaunch("submit", "--json", *usual, "mnist", "--", *options)
    assert submitted.returncode == 0, submitted.stderr
    job = json.loads(submitted.stdout)["id"]
    record = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job / "record.json"
    while not list(kept.glob("*.npz")):
        assert json.loads(hpclaunch("status", "--json", job).stdout)["state"] in {"queued", "running"}
        time.sleep(0.05)
    # What Slurm itself does shortly before the walltime limit.
    signalled = json.loads(record.read_text())["scheduler_id"]
    subprocess.run(["scancel", "--signal=USR1", "--batch", signalled], check=True)
    waited = hpclaunch("wait", job)
    log = hpclaunch("logs", job).stdout
    assert waited.returncode == 0, log + waited.stderr
    assert log.count("asked to stop: checkpoint written after step") == 1
    assert log.count("resumed from step") == 1
    whole = train(2, "--data", digits, *EPOCHS)
    assert f"sha256 {whole['parameters_sha256'][0][:16]}" in log
