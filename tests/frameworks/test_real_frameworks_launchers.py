"""Programs that torchrun, accelerate, deepspeed and fabric start, as people type them, here and on Slurm.

The reference is a run by hand with the launcher alone, on one machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.by_hand import ENVIRONMENT, PROGRAMS, VENV, digest_by_hand
from tests.testbed.cluster import Slurm

pytestmark = pytest.mark.slow
PROFILE = """\
schema: 1
name: two-cores
extends: generic-slurm
description: the first two cores of this machine
node:
  cpu_model: any
  cores: 2
  numa: [{id: 0, cores: 0-1}]
binding: {cpu: mask_cpu, needs_whole_node: false}
"""


# Command as the launcher's own documentation has it -> its run by hand.
CASES = {
    "torchrun fsdp.py digest": "fsdp",
    "python -m torch.distributed.run ddp.py digest": "ddp",
    "accelerate launch --config_file accelerate.yaml accelerated.py digest": "accelerate",
    "deepspeed zero.py digest --deepspeed_config deepspeed.json": "deepspeed",
    "fabric run --accelerator cpu --strategy ddp fabric.py digest": "fabric",
    "torchrun trainer.py digest --devices 2 --num-nodes {nodes}": "trainer under torchrun",
    "bash run.sh digest": "fsdp",
    "python trainer.py digest --devices 2 --num-nodes {nodes}": "trainer",
    "python mean.py digest": "jax",
}


def programs_in(folder: Path) -> Path:
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    (folder / "two-cores.yaml").write_text(PROFILE)
    (folder / "run.sh").write_text('set -e\ntorchrun fsdp.py "$1"\n')
    return folder


@cache
def by_hand(name: str, workers: int, folder: Path) -> str:
    """The digest of a run with the launcher alone, on one node."""
    return digest_by_hand(name, 1, workers, folder / f"{name}-{workers}")


def submit(place: Path, *words: str) -> dict[str, Any]:
    """Submit, wait, and return the document of the job."""
    given = [word for name, value in ENVIRONMENT.items() for word in ("--env", f"{name}={value}")]
    line = [
        sys.executable,
        "-m",
        "hpclaunch",
        "submit",
        "--venv",
        str(VENV),
        *given,
        "--wait",
        "--json",
        *words,
    ]
    done = subprocess.run(line, cwd=place, capture_output=True, text=True)
    assert done.stdout.startswith("{"), done.stderr
    document: dict[str, Any] = {**json.loads(done.stdout), "said": done.stderr}
    return document


def asked(*words: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "hpclaunch", *words, "--json"]
    document: dict[str, Any] = json.loads(subprocess.run(line, capture_output=True, text=True).stdout)
    return document


def bound(document: dict[str, Any]) -> list[tuple[int, str]]:
    found = asked("verify", document["id"])
    return sorted((each["rank"], each["verdict"]) for each in found["ranks"])


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("by hand")


@pytest.mark.parametrize("command", CASES)
def test_the_workers_of_this_machine_are_bound_and_train_as_by_hand(
    command: str, tmp_path: Path, references: Path
) -> None:
    place = programs_in(tmp_path)
    words = command.format(nodes=1).split()
    document = submit(place, "--site", "local", "--tasks-per-node", "2", "--", *words)
    assert document["state"] == "done", document["said"]
    assert (place / "digest").read_text() == by_hand(CASES[command], 2, references)
    assert bound(document) == [(0, "ok"), (1, "ok")]


@pytest.mark.slurm
@pytest.mark.parametrize("command", CASES)
def test_two_nodes_train_as_one_machine_by_hand(
    command: str, slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, references: Path
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    place = programs_in(tmp_path)
    words = command.format(nodes=2).split()
    sizes = ("--site", str(place / "two-cores.yaml"), "--nodes", "2", "--tasks-per-node", "2")
    document = submit(place, *sizes, "--", *words)
    assert document["state"] == "done", document["said"]
    assert (place / "digest").read_text() == by_hand(CASES[command], 4, references)
    assert bound(document) == [(rank, "ok") for rank in range(4)]


def test_workers_that_torchrun_starts_again_are_bound_again_and_counted(tmp_path: Path) -> None:
    place = programs_in(tmp_path)
    words = ("torchrun", "--max-restarts", "3", "again.py")
    document = submit(place, "--site", "local", "--tasks-per-node", "2", "--", *words)
    assert (document["state"], document["restarts"]) == ("done", 0), document["said"]
    assert bound(document) == [(0, "ok"), (1, "ok")]
    status = [sys.executable, "-m", "hpclaunch", "status", document["id"]]
    shown = subprocess.run(status, capture_output=True, text=True).stdout
    assert "started again by torchrun, " in shown


@pytest.mark.slurm
@pytest.mark.parametrize(
    "command",
    [
        "torchrun again.py",
        "deepspeed zero.py digest --deepspeed_config deepspeed.json",
        "accelerate launch --multi_gpu again.py",
    ],
)
def test_a_worker_that_is_killed_ends_the_job_and_is_named(
    command: str, slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    place = programs_in(tmp_path)
    (place / "kill").touch()
    sizes = ("--site", str(place / "two-cores.yaml"), "--nodes", "2", "--tasks-per-node", "1")
    document = submit(place, *sizes, "--", *command.split())
    assert document["state"] == "failed"
    assert "first failure reported: rank 1" in document["said"], document["said"]
    assert "137" in document["said"] or "signal 9" in document["said"]


@pytest.mark.slurm
@pytest.mark.parametrize("command", ["torchrun waits.py", "deepspeed waits.py"])
def test_stacks_and_the_proof_know_the_workers(
    command: str, slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A worker that is moved by hand while it runs is told."""
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    place = programs_in(tmp_path)
    sizes = ("--site", str(place / "two-cores.yaml"), "--nodes", "2", "--tasks-per-node", "2")
    document = submit(place, *sizes, "--no-wait", "--", *command.split())
    while len(list(place.glob("pid.*"))) < 4:
        time.sleep(0.1)
    pid = (place / "pid.3").read_text()
    subprocess.run(["taskset", "-cp", "0", pid], check=True, capture_output=True)
    while not any(each["rank"] == 3 and each["later"] for each in asked("verify", document["id"])["ranks"]):
        time.sleep(0.5)
    found = asked("stacks", document["id"])
    assert [each["rank"] for each in found["by_rank"]] == [0, 1, 2, 3]
    assert (found["missing"], found["other_processes"]) == ([], [])
    (place / "go").touch()
    asked("wait", document["id"])
    assert asked("status", document["id"])["state"] == "done"
