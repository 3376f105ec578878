"""Slurm is asked before a job is submitted: its estimate, its refusals, and temporary ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm

pytestmark = pytest.mark.slurm


def submit(*words: str) -> subprocess.CompletedProcess[str]:
    usual = ("--site", "generic-slurm", "--time", "5m", "--mpi", "none")
    return hpclaunch("submit", *usual, *words, "--", "true")


def kept() -> list[str]:
    return [path.name for path in Path(os.environ["XDG_STATE_HOME"]).glob("hpclaunch/jobs/*")]


@pytest.fixture
def drained(on_slurm: Slurm) -> Iterator[Slurm]:
    """Two of the four nodes are drained."""
    on_slurm.run("scontrol", "update", "nodename=n3,n4", "state=drain", "reason=trial")
    yield on_slurm
    on_slurm.run("scancel", "--me")
    on_slurm.run("scontrol", "update", "nodename=n3,n4", "state=resume")


def test_the_estimate_of_the_start_is_shown(on_slurm: Slurm) -> None:
    answer = submit("--nodes", "2", "--wait")
    assert answer.returncode == 0, answer.stderr
    assert "expected to start at 20" in answer.stderr
    assert "(partition standard)" in answer.stderr
    assert "expected to start" not in submit("--no-test-only", "--wait").stderr


def test_a_refusal_refuses_and_leaves_nothing(on_slurm: Slurm) -> None:
    answer = submit("--nodes", "5")
    assert (answer.returncode, answer.stdout) == (4, "")
    assert "Slurm would refuse the job: More processors requested than permitted" in answer.stderr
    assert kept() == []
    answer = submit("--nodes", "5", "--no-test-only")
    assert answer.returncode == 4
    assert "Slurm refused the job" in answer.stderr
    assert len(kept()) == 1


def test_drained_nodes_are_warned_of_and_waited_for(drained: Slurm) -> None:
    answer = submit("--nodes", "3")
    assert answer.returncode == 0, answer.stderr
    assert "only for now: of 4 nodes 2 are away (n3 drain, n4 drain)" in answer.stderr
    assert drained.run("squeue", "-h", "-o", "%t").stdout.split() == ["PD"]


def test_what_drained_nodes_do_not_explain_is_refused(drained: Slurm) -> None:
    answer = submit("--nodes", "2", "--directive", "--tmp=9999999")
    assert answer.returncode == 4
    assert "Requested node configuration is not available" in answer.stderr
    assert kept() == []
