"""Ray clusters inside jobs, with real Ray: here, on two nodes of a real Slurm, and when a node fails."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hpclaunch.package_data import resource_dir
from tests.frameworks.by_hand import ENVIRONMENT, PROGRAMS, VENV, digest_by_hand, environment
from tests.testbed.cluster import Slurm, free_ports

pytestmark = pytest.mark.slow
RAY_NODE = resource_dir("remote") / "ray_node.sh"


def submit(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = [word for name, value in ENVIRONMENT.items() for word in ("--env", f"{name}={value}")]
    line = [sys.executable, "-m", "hpclaunch", "submit", "--venv", str(VENV), "--json", *given, *words]
    return subprocess.run(line, cwd=place, capture_output=True, text=True)


def programs_in(folder: Path) -> Path:
    for file in PROGRAMS.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def check_training(folder: Path, nodes: int, *words: str) -> None:
    """Train there on that many nodes, and compare with a run by hand."""
    place = programs_in(folder)
    answer = submit(place, *words, "--wait", "--", "python", "spread.py", "digest")
    assert json.loads(answer.stdout)["state"] == "done", answer.stderr
    assert (place / "digest").read_text() == digest_by_hand("ray", nodes, 1, folder / "by hand")


def test_a_driver_here_has_the_cpus_of_its_node(tmp_path: Path) -> None:
    check_training(tmp_path, 1, "--site", "local")


@pytest.mark.slurm
def test_actors_on_two_nodes_train_as_by_hand(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    check_training(tmp_path, 2, "--site", "generic-slurm", "--nodes", "2")


@pytest.mark.slurm
def test_a_node_that_dies_ends_the_job_and_is_named(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    (tmp_path / "driver.py").write_text(
        "import ray, time\nray.init()\nopen('running', 'w').close()\ntime.sleep(1000)\n"
    )
    words = ("--site", "generic-slurm", "--nodes", "2", "--no-wait", "--", "python", "driver.py")
    document = json.loads(submit(tmp_path, *words).stdout)
    while not (tmp_path / "running").exists():
        time.sleep(0.2)
    raylet(document["id"], node="1").send_signal(signal.SIGKILL)
    done = subprocess.run(
        [sys.executable, "-m", "hpclaunch", "wait", document["id"], "--json"], capture_output=True, text=True
    )
    assert json.loads(done.stdout)["state"] == "failed"
    assert "hpclaunch: Ray has ended on " in Path(document["log"]).read_text()
    assert "node 1 of the job" in Path(document["log"]).read_text()


def raylet(job: str, node: str) -> psutil.Process:
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "raylet":
            variables = process.environ()
            if variables.get("HPCLAUNCH_JOB_ID") == job and variables.get("HPCLAUNCH_NODE") == node:
                return process
    raise AssertionError("there is no such raylet")


def of_job(folder: Path, node: int, **more: str) -> dict[str, str]:
    """Return the environment of a node of a job in that folder, on this machine."""
    variables = {"HPCLAUNCH_JOB_FOLDER": str(folder), "HPCLAUNCH_NODE": str(node), "MASTER_ADDR": "127.0.0.1"}
    return environment(**variables, **more)


def test_a_node_that_never_joins_is_named(tmp_path: Path) -> None:
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/1").write_text("nid001234\n")
    done = subprocess.run(
        ["bash", str(RAY_NODE), "3", "1", "0", "touch", str(tmp_path / "started")],
        env=of_job(tmp_path, 0, MASTER_PORT=str(free_ports(1)), HPCLAUNCH_RAY_WAIT_S="1"),
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "node 1 of the job, nid001234, has not joined the Ray cluster" in done.stderr
    assert "node 2 of the job, a node that has not started, has not joined" in done.stderr
    assert not (tmp_path / "started").exists()


def test_a_node_on_which_ray_starts_too_slowly_starts_it_again(tmp_path: Path) -> None:
    slow = tmp_path / "slow/ray"
    slow.parent.mkdir()
    # The last line of Ray 2.60's traceback on a busy machine, then Ray itself.
    slow.write_text(
        f"""#!/bin/sh
if mkdir {tmp_path}/once 2> /dev/null; then
  echo 'Exception: The current node timed out during startup. This could happen because some of the raylet'
  exit 1
fi
exec {VENV}/bin/ray "$@"
"""
    )
    slow.chmod(0o755)
    port, line = (
        str(free_ports(1)),
        ["bash", str(RAY_NODE), "2", "1", "0", "touch", str(tmp_path / "started")],
    )
    late = of_job(tmp_path, 1, MASTER_PORT=port)
    late["PATH"] = f"{slow.parent}:{late['PATH']}"
    nodes = [
        subprocess.Popen(line, env=each, cwd=tmp_path)
        for each in (of_job(tmp_path, 0, MASTER_PORT=port), late)
    ]
    assert [node.wait() for node in nodes] == [0, 0]
    assert (tmp_path / "once").exists()
    assert (tmp_path / "started").exists()
