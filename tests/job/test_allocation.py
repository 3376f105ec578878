"""Which shells are in an allocation, and what is refused in one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hpclaunch.scheduler.scheduler_interface import Allocation
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from tests.own_process import hpclaunch

pytestmark = pytest.mark.slow

SALLOC = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_CPUS_PER_NODE": "128,64(x2)"}


def submit(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch("submit", "--site", "generic-slurm", *words, env={**os.environ, **environment})


def test_an_allocation_is_read_from_slurms_variables() -> None:
    assert SLURM.allocation(SALLOC) == Allocation(job_id="7", nodes=2, cpus_per_node=64)
    assert SLURM.allocation({"SLURM_JOB_ID": "7"}) == Allocation(job_id="7", nodes=1, cpus_per_node=None)


def test_neither_a_login_shell_nor_a_batch_job_is_one() -> None:
    assert SLURM.allocation({}) is None
    assert SLURM.allocation({**SALLOC, "ENVIRONMENT": "BATCH"}) is None


def test_a_dry_run_in_an_allocation_shows_a_step_of_its_size() -> None:
    answer = submit("--tasks-per-node", "4", "--dry-run", "--", "true", **SALLOC)
    assert "--nodes=2 --ntasks=8 --ntasks-per-node=4 " in answer.stdout
    assert "#SBATCH" not in answer.stdout
    answer = submit("--no-here", "--tasks-per-node", "4", "--dry-run", "--", "true", **SALLOC)
    assert "#SBATCH --ntasks-per-node=4" in answer.stdout


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        (("--nodes", "3"), "3 nodes requested; the allocation 7 has 2"),
        (("--tasks-per-node", "65"), "65 CPUs per node requested"),
        (("--tasks-per-node", "33", "--cpus-per-task", "2"), "66 CPUs per node requested"),
        (("--array", "0-3"), "--array is for jobs in the queue"),
        (("--after", "12"), "--after is for jobs in the queue"),
        (("--max-restarts", "1"), "--max-restarts is for jobs in the queue"),
    ],
)
def test_what_does_not_fit_is_refused(words: tuple[str, ...], finding: str) -> None:
    answer = submit(*words, "--dry-run", "--", "true", **SALLOC)
    assert (answer.returncode, answer.stdout) == (3, "")
    assert finding in answer.stderr
    assert "--no-here" in answer.stderr


@pytest.mark.parametrize(
    ("words", "code", "finding"),
    [
        (("--interactive", "--array", "0-3"), 3, "not for --interactive"),
        (("--interactive", "--max-restarts", "2"), 3, "not for --interactive"),
        (("--interactive", "--no-wait"), 2, "exclude each other"),
        (("--interactive", "--site", "generic-pbs"), 3, "--interactive is for Slurm"),
        (("--here",), 3, "not in a Slurm allocation"),
        (("--array", "0-3", "--max-restarts", "2", "--site", "generic-pbs"), 3, "not go together on PBS"),
        (("--array", "0-3", "--max-restarts", "2", "mnist"), 3, "write the same training's checkpoints"),
        (("--array", "3-0"), 3, "is not a range"),
        (("--after", "nosuch"), 3, "no job 'nosuch'"),
        (("--directive=--dependency=singleton",), 3, "use --after"),
        (("--directive=--array=1-3",), 3, "use --array"),
    ],
)
def test_what_does_not_go_together_is_refused(words: tuple[str, ...], code: int, finding: str) -> None:
    answer = submit(*words, "--dry-run", "--", "true")
    assert (answer.returncode, answer.stdout) == (code, ""), answer.stderr
    assert finding in answer.stderr


def test_pbs_cannot_leave_nodes_out(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("exclude: [n1]\nsite: generic-pbs\n")
    answer = hpclaunch("submit", "--file", str(file), "--dry-run", "--", "true")
    assert answer.returncode == 3
    assert "--exclude n1: PBS has no option that leaves nodes out" in answer.stderr
