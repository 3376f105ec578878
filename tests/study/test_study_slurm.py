"""A study on a real Slurm: a known law comes out; nothing is doubled or lost when its client is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.cluster import Slurm

pytestmark = pytest.mark.slurm

# T = 1 + 99 / p + 2 (p - 1) x 0.05, with errors of at most 0.4 %.
PROGRAM = """\
import os, sys, time
p = int(sys.argv[1])
if os.environ["SLURM_PROCID"] == "0":
    with open("runs", "a") as file:
        print(os.environ["SLURM_JOB_ID"], p, file=file)
    time.sleep(0.2)
    noise = (1.002, 0.996, 1.004, 0.997)[p - 1]
    print(f"seconds: {noise * (1 + 99 / p + 2 * (p - 1) * 0.05)}")
"""


def test_killed_and_started_again_a_study_returns_the_law(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    line = [
        *(
            sys.executable,
            "-m",
            "hpclaunch",
            "scale",
            "--site",
            "generic-slurm",
            "--nodes",
            "1,2,3,4",
            "--strong",
        ),
        *("--repeats", "1", "--time", "5m", "--metric", r"seconds: (\S+)"),
        *("--metric-is", "seconds", "--name", "law", "--json", "--", sys.executable, "program.py", "{nodes}"),
    ]
    for submitted in (1, 2, 3):
        client = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait_for_jobs(submitted)
        client.send_signal(signal.SIGKILL)
        client.wait()
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "4 nodes: expected to start at" in done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    for name, true in (("serial_s", 1.0), ("parallel_s", 99.0), ("alpha_ring_s", 0.05)):
        if name in document["fit"]["parameters"]:
            found = document["fit"]["parameters"][name]
            assert abs(found["value"] - true) <= found["plus_minus"], name
    assert [point["nodes"] for point in document["points"]] == [1, 2, 3, 4]
    ran = [line.split() for line in (tmp_path / "runs").read_text().splitlines()]
    assert Counter(p for _, p in ran) == {"1": 1, "2": 1, "3": 1, "4": 1}
    records = [json.loads(path.read_text()) for path in _jobs().glob("*/record.json")]
    assert sorted(record["scheduler_id"] for record in records) == sorted(job for job, _ in ran)


def _jobs() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs"


def _wait_for_jobs(count: int) -> None:
    """Wait until that many jobs are recorded: the client is then anywhere in its submission."""
    end = time.monotonic() + 240
    while sum(1 for _ in _jobs().glob("[0-9]*")) < count:
        assert time.monotonic() < end
        time.sleep(0.01)
