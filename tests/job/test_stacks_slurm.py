"""``hpclaunch stacks`` on ranks of two nodes of a real Slurm that hang."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MPI_VARIABLES
from tests.job.hung_job import LINES, HungJob
from tests.testbed.cluster import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


@pytest.fixture
def job(slurm: Slurm, tmp_path: Path) -> Iterator[HungJob]:
    hung = HungJob(
        tmp_path, "none", "none", "skip", "none", environment={**slurm.environment(), **MPI_VARIABLES}
    )
    hung.submit("--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "2", "--idle-timeout", "20s")
    yield hung
    hung.end()


def test_a_rank_that_skips_a_collective_is_named_with_its_node_and_after_the_end(job: HungJob) -> None:
    found = job.stacks()
    assert (found["kind"], found["suspects"], found["nodes_answered"]) == ("mismatch", [2], 2)
    nodes = [one["node"] for one in found["by_rank"]]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    called = [(one["what"], one["at"], one["moved"]) for one in found["by_rank"]]
    others = ("allreduce", LINES["allreduce"], False)
    assert called == [others, others, ("allgather", LINES["allgather"], False), others]
    said = job.hpclaunch("stacks", job.id).splitlines()[0]
    assert f"rank 2 ({nodes[2]}) in allgather ({LINES['allgather']})" in said
    ended = json.loads(job.hpclaunch("wait", job.id, "--json", code=1))
    assert (ended["state"], ended["exit_code"]) == ("failed", 124)
    assert (ended["hang"]["kind"], ended["hang"]["suspects"]) == ("mismatch", [2])
    assert job.stacks()["by_rank"][2]["stack"] == found["by_rank"][2]["stack"]
