"""A study on a real Slurm: a known law comes out; nothing is doubled or lost when its client is killed."""

from __future__ import annotations

import json
import os
import random
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

# T = 20 + 80 / p + 2 (p - 1) x 2, with errors of at most 0.4 %.
PROGRAM = """\
import os, sys, time
p = int(sys.argv[1])
if os.environ["SLURM_PROCID"] == "0":
    with open("runs", "a") as file:
        print(os.environ["SLURM_JOB_ID"], p, file=file)
    time.sleep(0.2)
    noise = (1.002, 0.996, 1.004, 0.997)[p - 1]
    print(f"seconds: {noise * (20 + 80 / p + 2 * (p - 1) * 2)}")
"""


@pytest.fixture(autouse=True)
def _on_slurm(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)


def study(name: str, sizes: str, *options: str) -> list[str]:
    """The command line of a study."""
    common = (
        "--strong",
        "--repeats",
        "1",
        "--time",
        "5m",
        "--metric",
        r"seconds: (\S+)",
        "--metric-is",
        "seconds",
    )
    size = ("--site", "generic-slurm", "--nodes", sizes, "--name", name)
    command = ("--", sys.executable, "program.py", "{nodes}")
    return [sys.executable, "-m", "hpclaunch", "scale", *size, *common, *options, *command]


def ran() -> list[list[str]]:
    return [line.split() for line in Path("runs").read_text().splitlines()]


def test_killed_and_started_again_a_study_returns_the_law() -> None:
    """HPCLAUNCH_TEST_STUDY_KILLS: how often; after the first three at random moments."""
    kills = int(os.environ.get("HPCLAUNCH_TEST_STUDY_KILLS", "3"))
    repeats = max(1, kills // 4)
    line = study("law", "1,2,3,4", "--json", "--repeats", str(repeats))
    moments = random.Random(1)
    for kill in range(1, kills + 1):
        client = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if kill <= 3:
            _wait_for_jobs(kill)
        else:
            time.sleep(moments.uniform(0.2, 2))
        client.send_signal(signal.SIGKILL)
        client.wait()
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    parameters = document["fit"]["parameters"]
    for name, true in (("serial_s", 20), ("parallel_s", 80), ("alpha_ring_s", 2)):
        assert abs(parameters[name]["value"] - true) <= parameters[name]["plus_minus"] < true, name
    assert document["fit"]["serial_fraction"] == pytest.approx(0.2, abs=0.02)
    assert [point["nodes"] for point in document["points"]] == [1, 2, 3, 4]
    assert Counter(p for _, p in ran()) == dict.fromkeys("1234", repeats)
    records = [json.loads(path.read_text()) for path in _jobs().glob("*/record.json")]
    assert sorted(record["scheduler_id"] for record in records) == sorted(job for job, _ in ran())


def test_the_budget_ends_a_study(tmp_path: Path) -> None:
    """It suffices for the whole walltime of one job, and not for that and what the first job took."""
    site = tmp_path / "paid.yaml"
    price = "billing: {unit: coins, per_node_hour: 36000}"
    site.write_text(f"schema: 1\nname: paid\nextends: generic-slurm\ndescription: x\n{price}\n")
    line = study("paid", "1", "--repeats", "2", "--budget", "3000.005")
    line[line.index("generic-slurm")] = str(site)
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no job is submitted that could pass the budget of 3000" in done.stderr
    assert "are spent and the job may cost 3000; the budget is 3000" in done.stderr
    assert [p for _, p in ran()] == ["1"]


def test_all_jobs_at_once_run_one_after_another() -> None:
    """The plan has the scheduler's estimate; each job waits for the one before; show reads what has ended."""
    done = subprocess.run(study("queued", "1,2", "--no-wait"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "2 nodes: expected to start at" in done.stderr
    assert done.stderr.count("expected to start") == 2, done.stderr  # of each size, once
    show = [sys.executable, "-m", "hpclaunch", "scale", "show", "queued", "--json"]
    end = time.monotonic() + 240
    while True:
        shown = subprocess.run(show, capture_output=True, text=True)
        points = json.loads(shown.stdout).get("points", [])
        if len(points) == 2:
            break
        assert time.monotonic() < end, shown.stderr
        time.sleep(0.3)
    assert [point["step_s"]["median"] for point in points] == [
        pytest.approx(100 * 1.002),
        pytest.approx(64 * 0.996),
    ]
    assert [p for _, p in ran()] == ["1", "2"]


def _jobs() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs"


def _wait_for_jobs(count: int) -> None:
    """Wait until that many jobs are recorded: the client is then anywhere in its submission."""
    end = time.monotonic() + 240
    while sum(1 for _ in _jobs().glob("[0-9]*")) < count:
        assert time.monotonic() < end
        time.sleep(0.01)
