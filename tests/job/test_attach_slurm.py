"""``verify --attach``: jobs that hpclaunch did not submit, with right and wrong bindings, on a real Slurm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.cluster import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

# Two NUMA nodes of a core each, and GPUs in the reverse order.
PROFILE = """\
schema: 1
name: two-cores
extends: generic-slurm
description: the first two cores of this machine
node:
  cpu_model: any
  cores: 2
  numa: [{id: 0, cores: '0'}, {id: 1, cores: '1'}]
  gpus: [{numa: 1}, {numa: 0}]
binding: {cpu: mask_cpu, gpu_visible_var: ROCR_VISIBLE_DEVICES}
"""
RIGHT, WRONG = "$((1 - SLURM_LOCALID))", "0"


def script(cpu: str, ready: Path) -> str:
    """A user's own batch script: two nodes, two ranks each, which bind themselves and then work for long."""
    rank = (
        f"export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID NCCL_SOCKET_IFNAME=hsn0;"
        f" taskset -cp {cpu} $$ > /dev/null; touch {ready}.$SLURM_PROCID; exec sleep 600"
    )
    return f"#!/bin/bash\nsrun --mpi=none --cpu-bind=none bash -c '{rank}'\n"


class Jobs:
    """Running jobs by the binding of their ranks."""

    def __init__(self, cluster: Slurm, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        (folder / "two-cores.yaml").write_text(PROFILE)
        self.ids = {name: self._submit(name, cpu) for name, cpu in (("right", RIGHT), ("wrong", WRONG))}
        for name in self.ids:
            while len(list(folder.glob(f"{name}.ready.*"))) < 4:
                assert self.state(name) in ("PENDING", "RUNNING")

    def _submit(self, name: str, cpu: str) -> str:
        file = self.folder / f"{name}.sh"
        file.write_text(script(cpu, self.folder / f"{name}.ready"))
        words = ("--parsable", "--nodes=2", "--ntasks-per-node=2", f"--output={self.folder}/{name}.log")
        answer = self.cluster.run("sbatch", *words, str(file))
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()

    def state(self, name: str) -> str:
        return self.cluster.run("squeue", "-h", "-j", self.ids[name], "-o", "%T").stdout.strip()

    def verify(self, *words: str, code: int) -> str:
        line = [sys.executable, "-m", "hpclaunch", "verify", "--site", str(self.folder / "two-cores.yaml")]
        answer = subprocess.run(
            [*line, *words], env=self.cluster.environment(), capture_output=True, text=True, cwd=self.folder
        )
        assert answer.returncode == code, answer.stderr
        return answer.stdout if code != 3 else answer.stderr


@pytest.fixture(scope="module")
def jobs(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    running = Jobs(slurm, tmp_path_factory.mktemp("attach"))
    yield running
    slurm.run("scancel", *running.ids.values())


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_right_binding_is_seen_on_both_nodes(jobs: Jobs) -> None:
    found = document(jobs.verify("--attach", jobs.ids["right"], "--json", code=0))
    assert (found["ok"], found["finding"]) == (True, "all 4 ranks have a right binding")
    seen = [(one["rank"], one["host"], one["cpus"], one["planned"], one["gpus"]) for one in found["ranks"]]
    hosts = [one[1] for one in seen]
    assert seen == [
        (0, hosts[0], "1", "1", "0"),
        (1, hosts[0], "0", "0", "1"),
        (2, hosts[2], "1", "1", "0"),
        (3, hosts[2], "0", "0", "1"),
    ]
    assert hosts[0] != hosts[2]
    details = found["details"][0]
    assert details["program"] == ["sleep", "600"]
    assert (details["threads"], details["thread_cpus"], details["devices"]) == (1, {"1": 1}, [])
    assert details["variables"]["NCCL_SOCKET_IFNAME"] == "hsn0"


def test_a_wrong_binding_is_named_with_the_rule_and_what_would_be_right(jobs: Jobs) -> None:
    text = jobs.verify("--attach", jobs.ids["wrong"], code=1)
    assert "4 of 4 ranks have a wrong binding" in text
    assert "rule bind-shared-cores: " in text
    assert "right would be: srun --cpu-bind=mask_cpu:0x2,0x1; ROCR_VISIBLE_DEVICES=0,1" in text


def test_nothing_is_left_behind(jobs: Jobs) -> None:
    files = sorted(jobs.folder.iterdir())
    steps = jobs.cluster.run("squeue", "--steps", "-h", "-o", "%i", "-j", jobs.ids["right"]).stdout
    jobs.verify("--attach", jobs.ids["right"], code=0)
    assert jobs.cluster.run("squeue", "--steps", "-h", "-o", "%i", "-j", jobs.ids["right"]).stdout == steps
    assert sorted(jobs.folder.iterdir()) == files
    assert jobs.state("right") == "RUNNING"
    # By this job's number: other tests look at the same time, into the jobs of their own clusters.
    look = f"HPCLAUNCH-LOOK.* SLURM_JOB_ID {jobs.ids['right']}( |$)"
    left = subprocess.run(["pgrep", "-f", look], capture_output=True, text=True)
    assert left.stdout == ""


def test_a_job_that_does_not_run_is_said_so(jobs: Jobs) -> None:
    assert "squeue does not know job 99999" in subprocess_error(jobs, "99999")
    waiting = jobs.cluster.run("sbatch", "--parsable", "--hold", "--wrap", "true").stdout.strip()
    assert f"job {waiting} is PENDING" in jobs.verify("--attach", waiting, code=3)
    jobs.cluster.run("scancel", waiting)


def subprocess_error(jobs: Jobs, job: str) -> str:
    line = [sys.executable, "-m", "hpclaunch", "verify", "--site", "generic-slurm", "--attach", job]
    answer = subprocess.run(line, env=jobs.cluster.environment(), capture_output=True, text=True)
    assert answer.returncode == 4
    return answer.stderr
