"""``hpclaunch stacks`` on real ranks of this machine that hang, and on programs that its signal would end."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.observe.hung_job import LINES, HungJob
from tests.testbed.kit import alive

pytestmark = pytest.mark.mpi
OTHERS = ("c", "shell", "isolated", "bare")


@pytest.fixture
def hang(tmp_path: Path) -> Iterator[Callable[..., HungJob]]:
    jobs: list[HungJob] = []

    def start(*faults: str, framework: str = "mpi4py") -> HungJob:
        jobs.append(HungJob(tmp_path, *faults))
        words = ("--site", "local", "--tasks", str(len(faults)), "--framework", framework)
        jobs[-1].submit(*words)
        return jobs[-1]

    yield start
    for job in jobs:
        job.end()


def test_ranks_that_stop_or_read_are_named_with_the_place(hang: Callable[..., HungJob]) -> None:
    job = hang("none", "stop", "read", "none", "worker")
    found = job.stacks()
    assert (found["kind"], found["suspects"], found["missing"]) == ("stopped", [1, 2, 4], [])
    ranks = {one["rank"]: one for one in found["by_rank"]}
    assert (ranks[1]["state"], ranks[1]["what"]) == ("T", "stopped by a signal (state T)")
    fifo = str(job.folder / "data.fifo")
    assert (ranks[2]["what"], ranks[2]["path"], ranks[2]["at"]) == ("open()", fifo, LINES["read"])
    assert "load" in [frame["function"] for frame in ranks[2]["stack"]]
    waiting = [(ranks[rank]["what"], ranks[rank]["at"]) for rank in (0, 3)]
    assert waiting == [("allreduce", LINES["allreduce"])] * 2
    # Open MPI looks for its message all the time: whether it has got some cannot be seen.
    assert not any(ranks[rank]["moved"] for rank in (0, 3))
    said = job.hpclaunch("stacks", job.id).splitlines()[0]
    (worker,) = ranks[4]["workers"]
    assert (worker["what"], worker["path"], worker["at"]) == ("open()", fifo, LINES["read"])
    assert ranks[4]["at"] == LINES["join"]
    assert said.startswith(f"2 of 5 in allreduce ({LINES['allreduce']}); rank 1 (")
    assert f") in open() of {fifo} ({LINES['read']}); rank 4 (" in said
    assert f", its process {worker['pid']} in open() of {fifo} ({LINES['read']}); no output since " in said


@pytest.mark.parametrize("framework", ["mpi4py", "torch"])  # by mpiexec, and by a shell
def test_programs_that_the_signal_would_end_survive(
    hang: Callable[..., HungJob], tmp_path: Path, framework: str
) -> None:
    (tmp_path / "sleeps.c").write_text("#include <unistd.h>\nint main(void) { for (;;) sleep(600); }\n")
    subprocess.run(["gcc", "-o", str(tmp_path / "sleeps"), str(tmp_path / "sleeps.c")], check=True)
    job = hang(*OTHERS, framework=framework)
    pids = {name: int((tmp_path / f"became.{name}").read_text()) for name in OTHERS}
    found = job.stacks()
    assert [name for name, pid in pids.items() if not alive(pid)] == []
    seen = {one["rank"]: one["pid"] for one in found["by_rank"]}
    assert (seen[0], seen[2], seen[3]) == (pids["c"], pids["isolated"], pids["bare"])
    assert 1 in seen  # by the shell's child
    assert [one["stack"] for one in found["by_rank"]] == [[]] * 4
    assert found["kind"] == "unclear"
