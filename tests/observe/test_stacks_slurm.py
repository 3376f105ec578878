"""``hpclaunch stacks`` on ranks of two nodes of a real Slurm that hang."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MPI_VARIABLES
from tests.observe.hung_job import LINES, HungJob
from tests.testbed.cluster import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


class Array:
    """An array whose job 2 hangs, and whose job 1 does not."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        program = '[ "$HPCLAUNCH_ARRAY_INDEX" = 1 ] || exec sleep 600'
        words = ("--site", "generic-slurm", "--no-exclusive", "--mpi", "none", "--array", "1-2")
        submit = ("submit", *words, "--idle-timeout", "5s", "--", "bash", "-c", program)
        self.id = self.hpclaunch(*submit).stdout.strip()

    def hpclaunch(self, *words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "hpclaunch", *words]
        return subprocess.run(line, capture_output=True, text=True, env=self._environment, cwd=self._folder)


@pytest.fixture(scope="module")
def array(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Array:
    """Submitted before the other job, so that it hangs meanwhile."""
    folder = tmp_path_factory.mktemp("array")
    return Array(folder, {**slurm.environment(), "XDG_STATE_HOME": str(folder)})


@pytest.fixture
def job(slurm: Slurm, array: Array, tmp_path: Path) -> Iterator[HungJob]:
    hung = HungJob(
        tmp_path, "none", "none", "skip", "none", environment={**slurm.environment(), **MPI_VARIABLES}
    )
    hung.submit("--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "2", "--idle-timeout", "20s")
    yield hung
    hung.end()


RAISES = """import sys
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 2:
    raise ValueError("negative temperature")
MPI.COMM_WORLD.barrier()
"""


def test_a_rank_that_raised_and_waits_in_mpi_finalize_is_not_slow(slurm: Slurm, tmp_path: Path) -> None:
    environment = {**slurm.environment(), **MPI_VARIABLES, "XDG_STATE_HOME": str(tmp_path / "state")}

    def hpclaunch(*words: str) -> str:
        line = [sys.executable, "-m", "hpclaunch", *words]
        done = subprocess.run(line, capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "mc.py").write_text(RAISES)
    sizes = ("--nodes", "2", "--tasks-per-node", "2", "--gpus-per-task", "0")
    job = hpclaunch("submit", "--site", "generic-slurm", *sizes, "--", sys.executable, "mc.py").strip()
    stderr = tmp_path / "state" / "hpclaunch" / "jobs" / job / "stderr" / "2"
    end = time.monotonic() + 60
    while not (stderr.exists() and "negative" in stderr.read_text()):
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(1)  # from the traceback to MPI_Finalize
    found = json.loads(hpclaunch("stacks", job, "--json", "--watch", "4"))
    hpclaunch("cancel", job)
    assert (found["kind"], found["suspects"]) == ("over", [2])
    words = r"stuck: rank 2 \(n\d\), now raised ValueError: negative temperature, and"
    assert re.search(words, found["finding"])
    assert [one["progress"] for one in found["by_rank"]] == ["waits", "waits", "stuck", "waits"]


def test_a_rank_that_skips_a_collective_is_named_with_its_node_and_after_the_end(job: HungJob) -> None:
    found = job.stacks()
    assert (found["kind"], found["suspects"], found["nodes_answered"]) == ("mismatch", [2], 2)
    nodes = [one["node"] for one in found["by_rank"]]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    called = [(one["what"], one["at"]) for one in found["by_rank"]]
    others = ("allreduce", LINES["allreduce"])
    assert called == [others, others, ("allgather", LINES["allgather"]), others]
    assert not any(one["moved"] for one in found["by_rank"])
    said = job.hpclaunch("stacks", job.id).splitlines()[0]
    assert f"rank 2 ({nodes[2]}) in allgather ({LINES['allgather']})" in said
    ended = json.loads(job.hpclaunch("wait", job.id, "--json", code=1))
    assert (ended["state"], ended["exit_code"]) == ("failed", 124)
    assert (ended["hang"]["kind"], ended["hang"]["suspects"]) == ("mismatch", [2])
    assert job.stacks()["by_rank"][2]["stack"] == found["by_rank"][2]["stack"]


def test_each_job_of_an_array_has_its_own_hang(array: Array) -> None:
    ended = json.loads(array.hpclaunch("wait", array.id, "--json").stdout)
    assert (ended["state"], ended["hang"]) == ("failed", None)
    jobs = ended["array"]
    assert (jobs["1"]["state"], jobs["1"]["hang"]) == ("done", None)
    assert (jobs["2"]["state"], jobs["2"]["exit_code"], jobs["2"]["hang"]["suspects"]) == ("failed", 124, [])
    finding = jobs["2"]["hang"]["finding"]
    assert finding
    shown = array.hpclaunch("status", array.id).stdout
    assert f"job 2: {finding[:40]}" in shown
    assert array.hpclaunch("stacks", array.id, "--index", "2").stdout.startswith(finding[:40])
    assert "name one of its jobs: --index N (hung: 2)" in array.hpclaunch("stacks", array.id).stderr
    assert "is done, so it has no ranks" in array.hpclaunch("stacks", array.id, "--index", "1").stderr
    assert "has no index 7" in array.hpclaunch("stacks", array.id, "--index", "7").stderr
