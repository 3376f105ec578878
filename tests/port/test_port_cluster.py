"""The command ``hpclaunch port`` to a cluster that no profile describes: its Slurm tells of its nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from tests.testbed.cluster import Slurm

pytestmark = pytest.mark.slurm

SCRIPT = """#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=16
#SBATCH --gpus-per-task=1
#SBATCH --time=00:10:00
srun ./prog
"""


def test_ranks_are_divided_by_the_gpus_of_a_node_that_slurm_tells_of(
    on_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.sh").write_text(SCRIPT)
    answer = CliRunner().invoke(program, ["port", "a.sh", "--to", "generic-slurm", "--output", "new"])
    assert answer.exit_code == 0, answer.output
    lines = Path("new/job.yaml").read_text().splitlines()
    assert [line for line in lines if line.startswith(("nodes:", "tasks_per", "gpus_per"))] == [
        "nodes: 2",
        "tasks_per_node: 8",
        "gpus_per_task: 1",
    ]
