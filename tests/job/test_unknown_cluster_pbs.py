"""A cluster that no profile describes: a fake PBS is asked for its nodes, and really runs the job."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.in_process import hpclaunch_here
from tests.own_process import hpclaunch
from tests.testbed.kit import fake_on_path

CPUS = len(os.sched_getaffinity(0))
SHOWS = 'import os\nprint("bound to", sorted(os.sched_getaffinity(0)), flush=True)\n'


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the fake PBS on PATH and return its home folder."""
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    return fake_on_path("pbs", tmp_path, monkeypatch)


def words(*options: str) -> tuple[str, ...]:
    return ("submit", "--site", "generic-pbs", "--time", "5m", *options, "--", "python3", "train.py")


@pytest.mark.slow
@pytest.mark.parametrize(("gpus", "queue"), [(1, "debug"), (2, "debug"), (2, "prod")])
def test_a_torch_job_requests_all_gpus_of_a_node_and_their_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, queue: str
) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    monkeypatch.setenv("FAKE_PBS_GPUS", str(gpus))
    options = () if queue == "debug" else ("--queue", queue)
    answer = hpclaunch_here(*words("--dry-run", "--cpus-per-task", "1", *options), folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert f"#PBS -l select=1:ncpus={gpus}:mpiprocs={gpus}:ngpus={gpus}" in answer.stdout.splitlines()
    assert f"#PBS -q {queue}" in answer.stdout.splitlines()
    node = os.uname().nodename
    assert f"no profile describes fakepbs; qstat and pbsnodes on this machine: 1 node such as {node}" in (
        answer.stderr
    )


@pytest.mark.slow
@pytest.mark.mpi
def test_ranks_bind_themselves_and_prove_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SHOWS)
    answer = hpclaunch(*words("--tasks-per-node", str(CPUS), "--wait", "--json"), cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    job = json.loads(answer.stdout)
    bound = re.findall(r"bound to \[(\d+)\]", Path(job["log"]).read_text())
    assert sorted(map(int, bound)) == list(range(CPUS))
    assert job["binding"]["finding"] == f"all {CPUS} ranks got their binding"


@pytest.mark.slow
def test_a_server_that_is_down_is_named_where_gpus_are_needed(tmp_path: Path, server: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    (server / "down").touch()
    answer = hpclaunch_here(*words("--dry-run"), folder=tmp_path)
    assert "torch uses GPUs; the GPUs per node are not known: " in answer.stderr
    assert "cannot connect to server fakepbs" in answer.stderr


@pytest.mark.slow
def test_queues_come_into_a_new_profile(tmp_path: Path) -> None:
    made = hpclaunch_here("sites", "new", "here", "--extends", "generic-pbs", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "with 5 queues of PBS" in made.stdout
    shown = json.loads(hpclaunch_here("sites", "show", "here", "--json", folder=tmp_path).stdout)
    assert shown["queues"]["debug"]["max_walltime"] == "01:00:00"
