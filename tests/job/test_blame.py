"""What a log says of nodes and ranks: which failed first, and which node is to be left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hpclaunch.job.blame import bad_nodes, first_death
from hpclaunch.job.report import PREFIX, verdict
from hpclaunch.job.store import Store
from tests.testbed.kit import new_record

# As Slurm 22.05.8 wrote them.
NODE_FAILED = """srun: Job step aborted: Waiting up to 4 seconds for job step to finish.
srun: error: Node failure on n2
slurmstepd-n1: error: *** STEP 11.0 ON n1 CANCELLED AT 2026-11-21T07:59:40 DUE TO NODE FAILURE ***
srun: error: n1: task 0: Terminated
"""
NOT_THE_NODES = """srun: error: n3: task 1: Killed
srun: error: Task launch for StepId=15.0 failed on node n1: Unable to satisfy cpu bind request
srun: error: n1: task 0: Terminated
"""


def test_the_node_that_slurm_names_is_blamed(tmp_path: Path) -> None:
    record = new_record(Store(tmp_path), "slurm", tmp_path)
    assert bad_nodes(record, NODE_FAILED) == {"n2": "srun: error: Node failure on n2"}


def test_a_program_or_a_request_that_fails_does_not_make_the_node_bad(tmp_path: Path) -> None:
    assert bad_nodes(new_record(Store(tmp_path), "slurm", tmp_path), NOT_THE_NODES) == {}


def test_a_node_that_bound_its_ranks_otherwise_is_blamed(tmp_path: Path) -> None:
    line = PREFIX + "rank={} host={} local_rank=0 cpus=0 planned=0 verdict={}\n"
    log = line.format(0, "n1", "ok") + line.format(1, "n2", "cpus-differ")
    record = replace(new_record(Store(tmp_path), "slurm", tmp_path), binding=verdict(log, 2))
    assert bad_nodes(record, log) == {"n2": "rank 1 did not get its binding (cpus-differ)"}


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (NOT_THE_NODES, "first ended rank 1 on n3: Killed"),
        (
            "srun: error: n2: tasks 0-3,7: Exited with exit code 1\n",
            "rank 0-3,7 on n2: Exited with exit code 1",
        ),
        ("Traceback\n  srun: error: n2: task 1: quoted\n", None),
    ],
)
def test_the_rank_that_ended_first_is_named(log: str, words: str | None) -> None:
    found = first_death(log)
    assert (found is None) == (words is None)
    assert (words or "") in (found or "")
