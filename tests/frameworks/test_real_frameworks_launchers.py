"""Programs that torchrun, accelerate, deepspeed and fabric start, as people type them, here and on Slurm.

The reference is a run by hand with the launcher alone, on one machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.testbed.cluster import Slurm

pytestmark = pytest.mark.slow
VENV = Path(os.environ["HPCLAUNCH_TEST_FRAMEWORKS"])
PROGRAMS = Path(__file__).parents[1] / "data" / "launched"
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


class Typed(NamedTuple):
    """A command as the launcher's own documentation has it, and its words by hand for one machine."""

    command: str
    by_hand: str
    """With the number of workers and a port."""


CASES = {
    "torchrun": Typed(
        "torchrun fsdp.py digest", "torchrun --standalone --nproc-per-node {workers} fsdp.py digest"
    ),
    "torch.distributed.run": Typed(
        "python -m torch.distributed.run fsdp.py digest",
        "torchrun --standalone --nproc-per-node {workers} fsdp.py digest",
    ),
    "accelerate": Typed(
        "accelerate launch --config_file accelerate.yaml accelerated.py digest",
        "accelerate launch --config_file accelerate.yaml --num_machines 1 --num_processes {workers}"
        " --main_process_port {port} accelerated.py digest",
    ),
    "deepspeed": Typed(
        "deepspeed zero.py digest --deepspeed_config deepspeed.json",
        "deepspeed --hostfile hosts --no_ssh --node_rank 0 --master_addr 127.0.0.1 --master_port {port}"
        " zero.py digest --deepspeed_config deepspeed.json",
    ),
    "fabric": Typed(
        "fabric run --accelerator cpu --strategy ddp fabric.py digest",
        "fabric run --accelerator cpu --strategy ddp --devices {workers} --main-port {port} fabric.py digest",
    ),
}
ENVIRONMENT = {
    "DS_ACCELERATOR": "cpu",
    "OMP_NUM_THREADS": "1",
    "TORCH_EXTENSIONS_DIR": f"{VENV}/extensions",  # DeepSpeed builds one for CPUs
}


def programs_in(folder: Path) -> Path:
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    (folder / "two-cores.yaml").write_text(PROFILE)
    return folder


@cache
def by_hand(case: str, workers: int, folder: Path) -> str:
    """The digest of a run with the launcher alone."""
    place = programs_in(folder / f"{case}-{workers}")
    (place / "hosts").write_text(f"localhost slots={workers}\n")
    words = CASES[case].by_hand.format(workers=workers, port=23000 + os.getpid() % 7000)
    variables = {**os.environ, **ENVIRONMENT, "PATH": f"{VENV}/bin:{os.environ['PATH']}"}
    done = subprocess.run(words.split(), cwd=place, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (place / "digest").read_text()


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


def bound(document: dict[str, Any]) -> list[tuple[int, str]]:
    line = [sys.executable, "-m", "hpclaunch", "verify", document["id"], "--json"]
    found = json.loads(subprocess.run(line, capture_output=True, text=True).stdout)
    return sorted((each["rank"], each["verdict"]) for each in found["ranks"])


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("by hand")


@pytest.mark.parametrize("case", CASES)
def test_the_workers_of_this_machine_are_bound_and_train_as_by_hand(
    case: str, tmp_path: Path, references: Path
) -> None:
    place = programs_in(tmp_path)
    words = CASES[case].command.split()
    document = submit(place, "--site", "local", "--tasks-per-node", "2", "--", *words)
    assert document["state"] == "done", document["said"]
    assert (place / "digest").read_text() == by_hand(case, 2, references)
    assert bound(document) == [(0, "ok"), (1, "ok")]


@pytest.mark.slurm
@pytest.mark.parametrize("case", [name for name in CASES if name != "torch.distributed.run"])
def test_two_nodes_train_as_one_machine_by_hand(
    case: str, slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, references: Path
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    place = programs_in(tmp_path)
    words = CASES[case].command.split()
    sizes = ("--site", str(place / "two-cores.yaml"), "--nodes", "2", "--tasks-per-node", "2")
    document = submit(place, *sizes, "--", *words)
    assert document["state"] == "done", document["said"]
    assert (place / "digest").read_text() == by_hand(case, 4, references)
    assert bound(document) == [(rank, "ok") for rank in range(4)]
