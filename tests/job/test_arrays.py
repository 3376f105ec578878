"""Job arrays: a job for each index with its own log, result and end, on a real Slurm and on a fake PBS."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError
from hpclaunch.plan.request_rules import array_indices
from hpclaunch.scheduler.pbs import SCHEDULER as PBS
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm
from tests.testbed.kit import fake_on_path

VENV = Path(sys.executable).parent
# Each job says who it is, leaves a result, and the one with index 2 fails.
PROGRAM = (
    'i=$HPCLAUNCH_ARRAY_INDEX; echo "GOT $i"; echo "{\\"index\\": $i}" > "$HPCLAUNCH_RESULT_FILE";'
    ' [ "$i" != 2 ] || exit 7'
)


def status(job: str = "last") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(hpclaunch("status", job, "--json").stdout)
    return document


@pytest.fixture
def on_slurm(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return ("--site", "generic-slurm", "--mpi", "none")


@pytest.fixture
def on_pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    fake_on_path("pbs", tmp_path, monkeypatch)
    monkeypatch.setenv("FAKE_PBS_JOB_PATH", f"{VENV}:/usr/bin:/bin")
    return ("--site", "generic-pbs")


def check_array(usual: tuple[str, ...]) -> None:
    """Run four jobs of which one fails, and see that each is told apart."""
    words = ("--time", "5m", "--array", "0-3%2", "--wait", "--json", "--", "bash", "-c", PROGRAM)
    answer = hpclaunch("submit", *usual, *words)
    assert answer.returncode == 1, answer.stderr
    document = json.loads(answer.stdout)
    assert (document["state"], document["exit_code"]) == ("failed", 7)
    assert document["result"] == {str(index): {"index": index} for index in range(4)}
    blocks = dict(re.findall(r"==> job (\d) <==\n(.*?)(?===> |\Z)", answer.stderr, flags=re.DOTALL))
    # srun may write that a task failed before what the task wrote.
    assert all(f"GOT {index}\n" in blocks[str(index)] for index in range(4)), answer.stderr
    assert "of 4 jobs 3 done, 1 failed; not done: 2 (" in answer.stderr
    array = status()["array"]
    assert {i: (job["state"], job["exit_code"]) for i, job in array.items()} == {
        **{str(i): ("done", 0) for i in (0, 1, 3)},
        "2": ("failed", 7),
    }
    assert "  2      failed, exit code 7" in hpclaunch("status").stdout
    assert hpclaunch("logs", "--index", "3").stdout == "GOT 3\n"
    assert hpclaunch("logs", "--index", "4").returncode == 3


@pytest.mark.slurm
def test_an_array_on_slurm(on_slurm: tuple[str, ...]) -> None:
    check_array(on_slurm)


@pytest.mark.mpi
def test_an_array_on_a_fake_pbs(on_pbs: tuple[str, ...]) -> None:
    check_array(on_pbs)


@pytest.mark.slurm
def test_a_cancelled_array_ends_whole(on_slurm: tuple[str, ...], tmp_path: Path) -> None:
    program = f'echo > "{tmp_path}/$HPCLAUNCH_ARRAY_INDEX"; [ "$HPCLAUNCH_ARRAY_INDEX" = 0 ] || sleep 600'
    answer = hpclaunch("submit", *on_slurm, "--array", "0-5%2", "--", "bash", "-c", program)
    assert answer.returncode == 0, answer.stderr
    while not (tmp_path / "2").exists():
        pass
    assert status()["state"] == "running"
    assert hpclaunch("cancel", "last").returncode == 0
    document = json.loads(hpclaunch("wait", "--json").stdout)
    assert document["state"] == "cancelled"
    states = [job["state"] for job in status()["array"].values()]
    assert states == ["done", *["cancelled"] * 5]


@pytest.mark.slurm
def test_what_slurm_requeued_is_counted_for_each_job_of_an_array(
    on_slurm: tuple[str, ...], slurm: Slurm, tmp_path: Path
) -> None:
    program = f'[ "$HPCLAUNCH_ARRAY_INDEX" = 0 ] || until [ -e {tmp_path}/go ]; do sleep 0.1; done'
    words = ("--sbatch-arg=--requeue", "--array", "0-2", "--", "bash", "-c", program)
    answer = hpclaunch("submit", *on_slurm, *words)
    assert answer.returncode == 0, answer.stderr
    number = str(status()["scheduler_id"]).partition(";")[0]

    def runs(index: str) -> None:
        while slurm.run("squeue", "-h", "-o", "%T", "-j", f"{number}_{index}").stdout.strip() != "RUNNING":
            slurm.run("scontrol", "update", f"jobid={number}_{index}", "starttime=now")

    for count, index in enumerate("112", start=1):
        runs(index)
        assert slurm.run("scontrol", "requeue", f"{number}_{index}").returncode == 0
        while status()["restarts"] < count:
            pass
    (tmp_path / "go").touch()
    runs("1")
    runs("2")
    assert hpclaunch("wait").returncode == 0
    document = status()
    assert (document["state"], document["restarts"]) == ("done", 3)
    assert {i: job["restarts"] for i, job in document["array"].items()} == {"0": 0, "1": 2, "2": 1}


@pytest.mark.slurm
def test_an_array_that_slurm_has_forgotten_is_known_by_its_exit_files(
    own_slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(own_slurm.conf))
    words = ("--site", "generic-slurm", "--mpi", "none", "--array", "1,2", "--", "bash", "-c", PROGRAM)
    job = hpclaunch("submit", *words).stdout.strip()
    folder = Path(status(job)["folder"])
    while not all((folder / index / "exit_status").exists() for index in "12"):
        pass
    own_slurm.forget_jobs()
    assert {i: j["state"] for i, j in status(job)["array"].items()} == {"1": "done", "2": "failed"}


@pytest.mark.mpi
def test_a_job_of_pbs_waits_for_an_array(on_pbs: tuple[str, ...]) -> None:
    words = ("--", "bash", "-c", "true")
    first = hpclaunch("submit", *on_pbs, "--array", "0-1", *words).stdout.strip()
    answer = hpclaunch("submit", *on_pbs, "--after", first, "--wait", *words)
    assert answer.returncode == 0, answer.stderr
    assert status(first)["state"] == "done"


@pytest.mark.mpi
def test_a_job_of_pbs_whose_dependency_failed_ends_unrun(on_pbs: tuple[str, ...], tmp_path: Path) -> None:
    go = tmp_path / "go"
    program = f"until [ -e {go} ]; do sleep 0.05; done; exit 3"
    first = hpclaunch("submit", *on_pbs, "--", "bash", "-c", program).stdout.strip()
    second = hpclaunch("submit", *on_pbs, "--after", first, "--", "true").stdout.strip()
    assert "waits for another job to end (afterok:1.fakepbs)" in str(status(second)["reason"])
    go.touch()
    hpclaunch("wait", second)
    assert (status(second)["state"], status(first)["state"]) == ("failed", "failed")
    assert "without having run" in status(second)["reason"]


@in_one_test(
    "text, indices",
    [("0-3", (0, 1, 2, 3)), ("1-9:4%2", (1, 5, 9)), ("7", (7,)), ("1,4,2-3%1", (1, 2, 3, 4))],
)
def test_indices(text: str, indices: tuple[int, ...]) -> None:
    assert array_indices(text, SLURM) == indices


@in_one_test("text", ["", "a", "3-1", "0-3:0", "0-3%", "0-3%0", "-1", "0-99999", "1,", "0-3 4"])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="--array"):
        array_indices(text, SLURM)


@in_one_test("text", ["1,3", "0-0", "5"])
def test_what_pbs_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="PBS takes one range"):
        array_indices(text, PBS)


@pytest.mark.parametrize("words", [("--array", "0-3"), ("--after", "last")])
def test_this_machine_has_no_queue(words: tuple[str, ...]) -> None:
    hpclaunch_here("submit", "--site", "local", "--", "true")
    answer = hpclaunch_here("submit", "--site", "local", *words, "--", "true")
    assert answer.returncode == 3
    assert "has no queue" in answer.stderr or "hpclaunch wait" in answer.stderr


def test_waiting_jobs_of_an_array_share_a_line_in_sacct() -> None:
    end = "1|lab|None|sbatch job.sh\n"
    text = f"7_[2-3,5%2]|PENDING|0:0|||{end}7_0|COMPLETED|0:0|1|2|{end}7_1|FAILED|3:0|1|2|{end}"
    known = SLURM.parse_status("sacct", ["7"], CommandResult(exit_code=0, stdout=text, stderr=""))
    states = {index: job.state for index, job in known["7"].jobs.items()}
    assert states == {0: "done", 1: "failed", 2: "queued", 3: "queued", 5: "queued"}
