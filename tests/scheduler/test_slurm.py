"""Slurm's words into data: on outputs of Slurm 22.05.8, and on forms that the man pages give."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.scheduler_interface import JobState
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from hpclaunch.scheduler.slurm_reasons import ENDED, PENDING, pending_sentence

DATA = Path(__file__).parents[1] / "data" / "slurm"


def answer(stdout: str = "", stderr: str = "", exit_code: int = 0) -> CommandResult:
    return CommandResult(exit_code=exit_code, stdout=stdout, stderr=stderr)


def seconds(iso: str | None) -> int:
    assert iso is not None
    return int(dt.datetime.fromisoformat(iso).timestamp())


@pytest.mark.parametrize(
    ("stdout", "expected"),
    [
        ("123\n", "123"),
        ("123;lumi\n", "123;lumi"),
        ("Welcome to the site!\n4711\n", "4711"),
        ("4711\nYour project has 3 hours left.\n", "4711"),
    ],
)
def test_the_id_is_found_among_a_sites_lines(stdout: str, expected: str) -> None:
    assert SLURM.parse_submit(answer(stdout)) == expected


@pytest.mark.parametrize(
    ("stdout", "stderr", "exit_code", "words"),
    [
        (
            "",
            "sbatch: error: invalid partition specified: nosuch\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
            1,
            "invalid partition specified: nosuch; "
            "Batch job submission failed: Invalid partition name specified",
        ),
        ("", "sbatch: unrecognized option '--x'\n", 255, "sbatch: unrecognized option '--x'"),
        ("", "", 1, "exit status 1, no reason given"),
        ("Submitted nothing\n", "", 0, "Submitted nothing"),
    ],
)
def test_a_refusal_keeps_slurms_words(stdout: str, stderr: str, exit_code: int, words: str) -> None:
    with pytest.raises(RefusedError) as caught:
        SLURM.parse_submit(answer(stdout, stderr, exit_code))
    assert caught.value.message == f"Slurm refused the job: {words}"


def test_squeue_tells_states_codes_and_times() -> None:
    text = (DATA / "squeue.txt").read_text()
    known = SLURM.parse_status("squeue", ["1", "2", "3", "4", "5", "77"], answer(text))
    assert {i: (s.state, s.exit_code) for i, s in known.items()} == {
        "1": ("failed", 3),
        "2": ("done", 0),
        "3": ("failed", 137),
        "4": ("cancelled", 143),
        "5": ("queued", None),
    }
    assert seconds(known["4"].started) == 1795244335
    assert seconds(known["4"].ended) == 1795244337
    assert known["5"].started is None
    assert known["5"].reason == "BeginTime: its earliest start time has not come"


def test_sacct_tells_the_same_and_the_last_attempt_counts() -> None:
    text = (DATA / "sacct.txt").read_text()
    known = SLURM.parse_status("sacct", list("12345678"), answer(text))
    states: dict[str, tuple[JobState, int | None]] = {
        "1": ("failed", 3),
        "2": ("done", 0),
        "3": ("failed", 137),
        "4": ("cancelled", None),
        "5": ("failed", None),
        "6": ("failed", None),
        "7": ("running", None),
        "8": ("queued", None),
    }
    assert {i: (s.state, s.exit_code) for i, s in known.items()} == states
    assert known["4"].reason == "CANCELLED by 0"
    assert (known["5"].reason or "").startswith("TIMEOUT: it reached its time limit")
    assert (known["6"].reason or "").startswith("NODE_FAIL: one of its nodes failed")


def test_scontrol_tells_the_same() -> None:
    text = (
        "JobId=6 JobName=x.sh UserId=me(1000) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) "
        "Requeue=1 ExitCode=5:0 RunTime=00:00:01 StartTime=1795244570 EndTime=1795244571 "
        "Command=/a b=c/x.sh\n"
    )
    status = SLURM.parse_status("scontrol", ["6"], answer(text))["6"]
    assert (status.state, status.exit_code, seconds(status.ended)) == ("failed", 5, 1795244571)
    assert status.reason == "FAILED: the script ended with exit status 5"


@pytest.mark.parametrize(
    ("source", "stderr"),
    [
        ("squeue", "slurm_load_jobs error: Invalid job id specified\n"),
        ("scontrol", "slurm_load_jobs error: Invalid job id specified\n"),
        ("sacct", "Slurm accounting storage is disabled\n"),
    ],
)
def test_not_knowing_a_job_is_no_trouble(source: str, stderr: str) -> None:
    assert SLURM.parse_status(source, ["1"], answer("", stderr, 1)) == {}


@pytest.mark.parametrize(
    ("source", "stderr"),
    [
        ("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"),
        ("squeue", "squeue: fatal: Unable to process configuration file\n"),
        ("sacct", "sacct: error: Problem talking to the database: Connection refused\n"),
    ],
)
def test_no_answer_is_not_taken_for_a_lost_job(source: str, stderr: str) -> None:
    with pytest.raises(RefusedError, match=f"{source} gives no answer"):
        SLURM.parse_status(source, ["1"], answer("", stderr, 1))


def test_every_ended_state_has_a_sentence_and_is_final() -> None:
    for word in ENDED:
        row = f"1|{word}|0:0|1|2|None\n"
        status = SLURM.parse_status("sacct", ["1"], answer(row))["1"]
        assert status.state == "failed"
        assert status.exit_code is None
        assert status.reason == f"{word}: {ENDED[word]}"


def test_an_unknown_state_is_not_taken_for_an_end() -> None:
    status = SLURM.parse_status("sacct", ["1"], answer("1|HIBERNATING|0:0|1|2|None\n"))["1"]
    assert status.state == "running"
    assert "HIBERNATING" in (status.reason or "")


@pytest.mark.parametrize("text", ["", "\n", "|||||", "garbage", "1|FAILED", "\x00" * 400, "1 " * 300])
@pytest.mark.parametrize("source", SLURM.status_sources)
def test_garbage_is_no_status(source: str, text: str) -> None:
    assert SLURM.parse_status(source, ["99"], answer(text)) == {}


def test_reasons_become_sentences() -> None:
    assert pending_sentence("None") is None
    assert pending_sentence("(null)") is None
    assert pending_sentence("Priority") == f"Priority: {PENDING['Priority']}"
    assert "hours are used up" in (pending_sentence("AssocGrpBillingMinutes") or "")
    assert "hours are used up" in (pending_sentence("QOSGrpGRESMinutes") or "")
    assert "starts when one ends" in (pending_sentence("QOSMaxJobsPerUserLimit") or "")
    down = "ReqNodeNotAvail, UnavailableNodes:nid[1-3]"
    assert pending_sentence(down) == f"{down}: {PENDING['ReqNodeNotAvail']}"
    assert pending_sentence("SomethingNew") == "SomethingNew"


def test_all_jobs_of_a_cluster_are_one_question() -> None:
    ids = [str(i) for i in range(1000)]
    ((*_, last),) = SLURM.status_commands("squeue", ids)
    assert last.split(",") == ids
    commands = SLURM.status_commands("sacct", ["1", "2;east", "3", "4;east"])
    assert [command[-3:] for command in commands] == [
        (commands[0][-3], "-j", "1,3"),
        ("east", "-j", "2,4"),
    ]
    text = "2|COMPLETED|0:0|1|2|None\n"
    assert set(SLURM.parse_status("sacct", ["2;east"], answer(text))) == {"2;east"}
    assert SLURM.cancel_command("2;east") == ("scancel", "-M", "east", "2")


def test_cancelling_what_is_gone_is_fine_and_no_answer_is_not() -> None:
    SLURM.parse_cancel(answer())
    SLURM.parse_cancel(answer("", "scancel: error: Kill job error on job id 9: Invalid job id specified", 1))
    with pytest.raises(RefusedError, match="Unable to contact"):
        SLURM.parse_cancel(answer("", "scancel: error: Unable to contact slurm controller", 1))
