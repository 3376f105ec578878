"""Slurm's words into data: on outputs of Slurm 22.05.8, and on forms that the man pages give."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.scheduler_interface import JobState, JobStatus
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from hpclaunch.scheduler.slurm.slurm_status import WORDS, job_status, pending_sentence
from tests.in_one_test import in_one_test

DATA = Path(__file__).parents[1] / "data" / "slurm"


def answer(stdout: str = "", stderr: str = "", exit_code: int = 0) -> CommandResult:
    return CommandResult(exit_code=exit_code, stdout=stdout, stderr=stderr)


def seconds(iso: str | None) -> int:
    assert iso is not None
    return int(dt.datetime.fromisoformat(iso).timestamp())


@in_one_test(
    "stdout, expected",
    [
        ("123\n", "123"),
        ("123;lumi\n", "123;lumi"),
        ("Welcome to the site!\n4711\n", "4711"),
        ("4711\nYour project has 3 hours left.\n", "4711"),
    ],
)
def test_the_id_is_found_among_a_sites_lines(stdout: str, expected: str) -> None:
    assert SLURM.parse_submit(answer(stdout)) == expected


@in_one_test(
    "stdout, stderr, exit_code, words",
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


# The path of the jobs' folder is replaced in what was recorded. Job 9 writes to a folder that no node has.
SCRIPT = "/users/me/.local/state/hpclaunch/jobs/20261123-000000-00abcd/job.sh"
STATES: dict[str, tuple[JobState, int | None]] = {
    "1": ("failed", 3),
    "2": ("done", 0),
    "3": ("failed", 137),
    "5": ("failed", None),
    "6": ("failed", None),
    "7": ("running", None),
    "8": ("queued", None),
    "9": ("failed", None),
    "10": ("done", 0),
}


def recorded(source: str, *ids: str) -> dict[str, JobStatus]:
    return SLURM.parse_status(source, ids, answer((DATA / f"{source}.txt").read_text()))


@pytest.mark.parametrize(("source", "code"), [("squeue", 143), ("sacct", None)])
def test_squeue_and_sacct_tell_states_and_codes(source: str, code: int | None) -> None:
    known = recorded(source, "4", "77", *STATES)
    expected = {**STATES, "4": ("cancelled", code), "5": ("failed", code)}
    assert {i: (s.state, s.exit_code) for i, s in known.items()} == expected
    assert (known["5"].reason or "").startswith("TIMEOUT: it reached its time limit")
    assert (known["6"].reason or "").startswith("NODE_FAIL: one of its nodes failed")
    assert (seconds(known["4"].started), seconds(known["4"].ended)) == (1795406593, 1795406594)
    assert known["8"].started is None
    assert (known["8"].reason or "").startswith(
        "BeginTime: its earliest start time has not come; after a requeue"
    )


@in_one_test("source", SLURM.status_sources)
def test_each_source_tells_which_job_it_is_and_how_often_it_was_requeued(source: str) -> None:
    known = recorded(source, "7", "8", "9", "10")
    for number in ("7", "8", "9"):
        assert SCRIPT in (known[number].identity.script or "")
        assert seconds(known[number].identity.submitted) == 1795406600
    cluster = None if source == "scontrol" else "lab"  # scontrol does not say
    assert {status.identity.cluster for status in known.values()} == {cluster}
    assert {i: status.restarts for i, status in known.items()} == {"7": 1, "8": 0, "9": 0, "10": 0}
    # What salloc runs is in its own words only.
    assert (known["10"].identity.script is None) == (source != "sacct")


@in_one_test("source", SLURM.status_sources)
def test_a_folder_that_the_node_does_not_see_is_no_failure_of_the_script(source: str) -> None:
    status = recorded(source, "9")["9"]
    assert (status.state, status.exit_code) == ("failed", None)
    assert "on the node, so the script never ran; is the folder on a file system that" in (
        status.reason or ""
    )
    if source != "sacct":
        assert f"could not open {SCRIPT.replace('job.sh', 'out.log')} on" in (status.reason or "")


def test_jobs_that_had_the_same_number_are_kept_apart() -> None:
    """As sacct -D lists them when slurmctld has lost its state; the last one is first here."""
    rows = [
        "7|COMPLETED|0:0|10|20|10|lab|None|sbatch --parsable /a/jobs/one/job.sh",
        "7|REQUEUED|0:0|30|40|30|lab|None|sbatch --parsable /a/jobs/two/job.sh",
        "7|FAILED|1:0|50|60|50|lab|None|sbatch --parsable /a/jobs/two/job.sh",
        "7_1|PENDING|0:0|||70|lab|None|sbatch --parsable --array=1 /a/jobs/three|x/job.sh",
    ]
    status = SLURM.parse_status("sacct", ["7"], answer("\n".join(rows)))["7"]
    assert status.jobs[1].state == "queued"
    assert (status.identity.script or "").endswith("/three|x/job.sh")
    assert [(one.state, one.restarts) for one in status.others] == [("failed", 1), ("done", 0)]


def test_the_cluster_has_a_name() -> None:
    text = (
        "Configuration data as of 2026-11-23T03:39:07\nClusterName             = lab\nCompleteWait = 0 sec\n"
    )
    assert SLURM.parse_cluster(answer(text)) == "lab"
    for none in (answer(), answer("ClusterName =\n"), answer(text, "", 1)):
        with pytest.raises(RefusedError, match="scontrol does not name its cluster"):
            SLURM.parse_cluster(none)
    assert SLURM.cluster_in("12;east") == "east"
    assert SLURM.cluster_in("12") is None


@in_one_test(
    "source, stderr",
    [
        ("squeue", "slurm_load_jobs error: Invalid job id specified\n"),
        ("scontrol", "slurm_load_jobs error: Invalid job id specified\n"),
        ("sacct", "Slurm accounting storage is disabled\n"),
    ],
)
def test_not_knowing_a_job_is_no_trouble(source: str, stderr: str) -> None:
    assert SLURM.parse_status(source, ["1"], answer("", stderr, 1)) == {}


@in_one_test(
    "source, stderr",
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
    for word in WORDS.ended.keys() - {"DependencyNeverSatisfied"}:  # a reason, no state
        row = f"1|{word}|0:0|1|2|1|lab|None|\n"
        status = SLURM.parse_status("sacct", ["1"], answer(row))["1"]
        assert status.state == "failed"
        assert status.exit_code is None
        assert status.reason == f"{word}: {WORDS.ended[word]}"


def test_an_unknown_state_is_not_taken_for_an_end() -> None:
    status = SLURM.parse_status("sacct", ["1"], answer("1|HIBERNATING|0:0|1|2|1|lab|None|\n"))["1"]
    assert status.state == "running"
    assert "HIBERNATING" in (status.reason or "")


GARBAGE = ["|||||", "garbage", "1|FAILED", "\x00" * 400, "1 " * 300, "Scheduled maintenance until noon"]


@in_one_test("text", GARBAGE)
@in_one_test("source", SLURM.status_sources)
def test_garbage_is_an_error_and_no_answer(source: str, text: str) -> None:
    with pytest.raises(RefusedError, match=f"{source} gives an answer that cannot be read"):
        SLURM.parse_status(source, ["99"], answer(text))


@in_one_test("text", ["", "\n", "CLUSTER: east\n"])
@in_one_test("source", SLURM.status_sources)
def test_no_row_is_an_answer(source: str, text: str) -> None:
    assert SLURM.parse_status(source, ["99"], answer(text)) == {}


def test_reasons_become_sentences() -> None:
    assert pending_sentence("None") is None
    assert pending_sentence("(null)") is None
    assert pending_sentence("Priority") == f"Priority: {WORDS.pending['Priority']}"
    assert "hours are used up" in (pending_sentence("AssocGrpBillingMinutes") or "")
    assert "hours are used up" in (pending_sentence("QOSGrpGRESMinutes") or "")
    assert "starts when one ends" in (pending_sentence("QOSMaxJobsPerUserLimit") or "")
    down = "ReqNodeNotAvail, UnavailableNodes:nid[1-3]"
    assert pending_sentence(down) == f"{down}: {WORDS.pending['ReqNodeNotAvail']}"
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
    text = "2|COMPLETED|0:0|1|2|1|east|None|\n"
    assert set(SLURM.parse_status("sacct", ["2;east"], answer(text))) == {"2;east"}
    assert SLURM.cancel_command("2;east") == ("scancel", "-M", "east", "2")


def test_cancelling_what_is_gone_is_fine_and_no_answer_is_not() -> None:
    SLURM.parse_cancel(answer())
    SLURM.parse_cancel(answer("", "scancel: error: Kill job error on job id 9: Invalid job id specified", 1))
    with pytest.raises(RefusedError, match="Unable to contact"):
        SLURM.parse_cancel(answer("", "scancel: error: Unable to contact slurm controller", 1))


@in_one_test(
    "code, exit_code, words",
    [
        ("3:0", 3, "the script ended with exit status 3"),
        ("0:9", 137, "the script was ended by SIGKILL"),
        ("128:0", 128, "the script ended with exit status 128"),
        ("192:0", 192, "the script ended with exit status 192"),  # srun's own: it cannot bind
    ],
)
def test_how_a_failed_script_ended(code: str, exit_code: int, words: str) -> None:
    status = job_status("FAILED", code, "1764061200", "1764064800")
    assert (status.state, status.exit_code, status.reason) == ("failed", exit_code, f"FAILED: {words}")


def test_a_cancelled_job_that_never_started_has_no_start() -> None:
    at = "1764061200"
    never = job_status("CANCELLED by 1000", "0:0", at, at)
    assert (never.state, never.started, never.reason) == ("cancelled", None, "CANCELLED by 1000")
    assert job_status("CANCELLED by 1000", "0:0", at, "1764064800").started is not None


@in_one_test(
    "source, row, told",
    [
        ("sacct", "7|CANCELLED|0:0|1|1|1|lab|Dependency|", True),
        ("sacct", "7|CANCELLED by 1000|0:0|1|1|1|lab|Dependency|", False),
        ("scontrol", "JobId=7 JobState=CANCELLED Reason=DependencyNeverSatisfied ExitCode=0:0", True),
        ("scontrol", "JobId=7 JobState=CANCELLED Reason=Dependency ExitCode=0:0", False),
    ],
)
def test_a_job_that_slurm_cancels_since_its_dependency_failed_says_so(
    source: str, row: str, told: bool
) -> None:
    """Of 22.05.8, with --kill-on-invalid-dep; sacct keeps the reason for which the job waited."""
    status = SLURM.parse_status(source, ["7"], answer(row + "\n"))["7"]
    assert status.state == "cancelled"
    assert ("it waited for did not end as" in (status.reason or "")) == told


def test_a_job_that_slurm_says_completed_has_the_code_0() -> None:
    status = job_status("COMPLETED", "0:0", "1764061200", "1764064800")
    assert (status.state, status.exit_code, status.reason) == ("done", 0, None)
