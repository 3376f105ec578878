"""``hpclaunch submit`` as a whole, on a real Slurm and on a fake PBS."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed.cluster import Slurm

pytestmark = pytest.mark.slow

VENV = Path(sys.executable).parent
HPCLAUNCH = str(VENV / "hpclaunch")
FAKES = Path(__file__).parents[1] / "fakes"
RESULT = 'echo "rank $RANK of $WORLD_SIZE on $(hostname)"; echo "{\\"ok\\": true}" > "$HPCLAUNCH_RESULT_FILE"'


def call(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HPCLAUNCH, *words], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def submit(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return call(environment, "submit", "--time", "5m", "--wait", "--json", *words)


@pytest.fixture
def on_slurm(slurm: Slurm) -> dict[str, str]:
    return {"SLURM_CONF": str(slurm.conf), "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm,tcp"}


@pytest.fixture
def on_pbs(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "pbs").mkdir()
    return {
        "FAKE_PBS_HOME": str(tmp_path / "pbs"),
        "FAKE_PBS_JOB_PATH": f"{VENV}:/usr/bin:/bin",
        "PATH": f"{FAKES / 'fake_pbs'}:{os.environ['PATH']}",
    }


@pytest.mark.slurm
def test_slurm_two_nodes(on_slurm: dict[str, str]) -> None:
    done = submit(
        on_slurm,
        "--site",
        "generic-slurm",
        "--nodes",
        "2",
        "--tasks-per-node",
        "2",
        "--",
        "bash",
        "-c",
        RESULT,
    )
    document = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert (document["state"], document["exit_code"], document["result"]) == ("done", 0, {"ok": True})
    ranks = sorted(line.split(" on ")[0] for line in done.stderr.splitlines() if line.startswith("rank "))
    assert ranks == [f"rank {i} of 4" for i in range(4)]


@pytest.mark.slurm
def test_slurm_failure(on_slurm: dict[str, str]) -> None:
    done = submit(on_slurm, "--site", "generic-slurm", "--", "bash", "-c", "exit 3")
    document = json.loads(done.stdout)
    assert (done.returncode, document["state"], document["exit_code"]) == (1, "failed", 3)
    assert "FAILED: the script ended with exit status 3" in done.stderr


@pytest.mark.slurm
def test_slurm_ctrl_c_leaves_the_job_alone(on_slurm: dict[str, str]) -> None:
    words = [HPCLAUNCH, "submit", "--site", "generic-slurm", "--time", "5m", "--wait", "--"]
    process = subprocess.Popen(
        [*words, "bash", "-c", "echo started; sleep 1000"],
        env={**os.environ, **on_slurm},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and line != b"started\n":
        line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert b"goes on: hpclaunch logs -f" in said
    assert json.loads(call(on_slurm, "status", "--json").stdout)["state"] == "running"
    assert call(on_slurm, "cancel", "last").returncode == 0
    assert call(on_slurm, "wait").returncode == 1


# The tests' machine has no modules and no conda; functions of their names are handed on to the job.
NO_MODULES = {"BASH_FUNC_module%%": "() { :; }", "BASH_FUNC_conda%%": "() { :; }"}


@pytest.mark.mpi
@pytest.mark.openmpi
def test_the_polaris_script_on_a_fake_pbs_with_a_fake_pals(on_pbs: dict[str, str], tmp_path: Path) -> None:
    environment = {
        **on_pbs,
        **NO_MODULES,
        "FAKE_PBS_JOB_PATH": f"{FAKES / 'fake_pals'}:{on_pbs['FAKE_PBS_JOB_PATH']}",
        "FAKE_PALS_MPIEXEC": str(VENV / "mpiexec"),
        "FAKE_PALS_LOG": str(tmp_path / "pals.log"),
    }
    options = ("--site", "polaris", "--nodes", "1", "--account", "MyProject", "--queue", "debug")
    done = submit(environment, *options, "--", "bash", "-c", RESULT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"] == {"ok": True}
    ranks = sorted(line.split(" on ")[0] for line in done.stderr.splitlines() if line.startswith("rank "))
    assert ranks == [f"rank {i} of 4" for i in range(4)]
    assert (
        (tmp_path / "pals.log").read_text().startswith("-n 4 --ppn 4 --cpu-bind list:24-31:16-23:8-15:0-7 ")
    )


@pytest.mark.mpi
def test_fake_pbs(on_pbs: dict[str, str]) -> None:
    done = submit(on_pbs, "--site", "generic-pbs", "--tasks-per-node", "2", "--", "bash", "-c", RESULT)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["state"], document["exit_code"], document["result"]) == ("done", 0, {"ok": True})
    ranks = sorted(line.split(" on ")[0] for line in done.stderr.splitlines() if line.startswith("rank "))
    assert ranks == ["rank 0 of 2", "rank 1 of 2"]


@pytest.mark.mpi
def test_the_nodes_of_a_fake_pbs_are_looked_at_first(on_pbs: dict[str, str], tmp_path: Path) -> None:
    """By the real mpiexec, one process a node; and DeepSpeed's hostfile names each node once."""
    words = ("--site", "generic-pbs", "--tasks-per-node", "2", "--preflight", "--framework", "deepspeed")
    show = 'echo "rank $RANK of $WORLD_SIZE"; cat "$HPCLAUNCH_HOSTFILE"'
    done = submit(on_pbs, *words, "--space", str(tmp_path), "--", "bash", "-c", show)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert not any(line.startswith("hpclaunch-preflight") for line in lines)
    status = json.loads(call(on_pbs, "status", json.loads(done.stdout)["id"], "--json").stdout)
    said = (Path(status["folder"]) / "preflight").read_text().splitlines()
    assert sum(line.startswith("hpclaunch-preflight") and '"clock"' in line for line in said) == 1
    (host,) = {line.split()[0] for line in lines if line.endswith(" slots=2")}
    assert len([line for line in lines if line.startswith(f"{host} slots")]) == 2  # one line, from each rank
    refused = submit(on_pbs, *words, "--space", "/nosuch", "--", "bash", "-c", show)
    assert refused.returncode == 1
    assert "preflight failed: " in refused.stderr
    assert "rank 0" not in refused.stderr


def test_fake_pbs_failure_and_refusal(on_pbs: dict[str, str]) -> None:
    done = submit(on_pbs, "--site", "generic-pbs", "--", "bash", "-c", "exit 3")
    assert (done.returncode, json.loads(done.stdout)["state"]) == (1, "failed")
    done = submit(on_pbs, "--site", "generic-pbs", "--queue", "nosuch", "--", "true")
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (4, "refused")
    assert "Unknown queue" in done.stderr


def test_a_scheduler_that_is_not_here_is_named(tmp_path: Path) -> None:
    for name in ("bash", "tar", "mkdir", "mv", "rm"):  # which each machine has
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    for site, program in (("generic-slurm", "srun"), ("generic-pbs", "qsub")):
        done = submit({"PATH": str(tmp_path)}, "--site", site, "--", "true")
        assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (4, "refused")
        assert f"{program}: no such program" in done.stderr
