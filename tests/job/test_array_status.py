"""The state of an array: from what its scheduler says of each job, or from the files that the jobs left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.job import job_end
from hpclaunch.job.job_end import array_verdict, ended_as, job_of_array, open_indices, with_array_status
from hpclaunch.job.record import PREFIX, ArrayJob, JobRecord
from hpclaunch.job.store import Store
from hpclaunch.scheduler.scheduler_interface import JobState, JobStatus
from tests.testbed.kit import new_record

NOW = "2026-11-25T10:00:00+00:00"
REPORT = PREFIX + "rank=0 host=n1 local_rank=0 cpus=0 planned=0 verdict={}\n"


@pytest.fixture
def record(tmp_path: Path) -> JobRecord:
    """An array of three jobs with one rank each, which Slurm has taken."""
    return replace(
        new_record(Store(tmp_path), "slurm", tmp_path),
        array={index: ArrayJob(state="queued") for index in (1, 2, 3)},
        plan={"binding": {"ranks": []}},
        tasks=1,
    )


def judged(
    record: JobRecord, said: Mapping[int, JobStatus], left: Mapping[str, bytes], *, asked: bool = True
) -> JobRecord:
    files = {f"{record.folder}/{name}": text for name, text in left.items()}
    status = JobStatus(state="running", jobs=dict(said)) if said else None
    return with_array_status(record, status, files, NOW, asked=asked)


def states(record: JobRecord) -> list[JobState]:
    return [job.state for _, job in sorted(record.array.items())]


def test_jobs_that_the_scheduler_forgot_are_judged_by_their_files(record: JobRecord) -> None:
    found = judged(record, {}, {"1/exit_status": b"0\n", "2/exit_status": b"3\n"})
    assert states(found) == ["done", "failed", "lost"]
    assert (found.array[1].exit_code, found.array[2].exit_code) == (0, 3)
    assert found.array[1].reason is None
    assert found.array[2].reason == "it ended with exit status 3"
    assert found.exit_code == 3
    assert found.reason is not None
    assert "not done: 2 (it ended with exit status 3)" in found.reason


def test_jobs_of_an_array_that_was_cancelled_did_not_fail(record: JobRecord) -> None:
    found = judged(record, {}, {"cancelled": b"1", "1/exit_status": b"0", "2/exit_status": b"143"})
    assert states(found) == ["done", "cancelled", "cancelled"]


def test_a_scheduler_that_did_not_answer_changes_nothing(record: JobRecord) -> None:
    found = judged(record, {}, {"1/exit_status": b"0"}, asked=False)
    assert states(found) == ["done", "queued", "queued"]
    assert found.ended is None


def test_an_array_is_done_when_all_its_jobs_are(record: JobRecord) -> None:
    done = JobStatus(state="done", exit_code=0, started="2026-11-25T09:00:00+00:00", ended=NOW, restarts=1)
    found = judged(record, dict.fromkeys((1, 2, 3), done), {})
    assert (found.state, found.exit_code, found.reason, found.restarts) == ("done", 0, None, 3)
    assert (found.started, found.ended) == ("2026-11-25T09:00:00+00:00", NOW)


def test_the_reason_that_a_script_wrote_stands_before_its_schedulers(record: JobRecord) -> None:
    failed = JobStatus(state="failed", exit_code=1, reason="FAILED")
    found = judged(record, {1: failed, 2: failed}, {"1/reason": b"restarts are used up\n"})
    assert found.array[1].reason == "restarts are used up"
    assert found.array[2].reason == "FAILED"


def test_a_job_that_its_scheduler_ended_has_no_good_exit_code() -> None:
    """Its script had ended well, and the scheduler counts it as failed: a node was lost."""
    job, failed = ArrayJob(state="running"), JobStatus(state="failed", reason="NODE_FAIL")
    assert ended_as(job, failed, 0).exit_code is None
    assert ended_as(job, failed, 7).exit_code == 7
    assert ended_as(job, JobStatus(state="done"), 0).exit_code == 0
    assert ended_as(job, replace(failed, exit_code=9), 7).exit_code == 9


def test_the_binding_of_an_array_is_that_of_each_of_its_jobs(record: JobRecord) -> None:
    done = replace(record, array=dict.fromkeys((1, 2, 3), ArrayJob(state="done")))
    good, wrong = REPORT.format("ok"), REPORT.format("cpus-differ")
    assert array_verdict(done, dict.fromkeys((1, 2, 3), good)).ok
    differs = array_verdict(done, {1: good, 2: wrong, 3: good})
    assert not differs.ok
    assert differs.finding.startswith("job 2 of the array: ")
    silent = array_verdict(done, {1: good, 3: good})
    assert not silent.ok
    assert silent.finding.startswith("job 2 of the array: ")


def test_the_binding_of_an_array_that_runs_is_that_of_the_jobs_that_began(record: JobRecord) -> None:
    states: dict[int, JobState] = {1: "running", 2: "running", 3: "queued"}
    running = replace(record, array={index: ArrayJob(state=state) for index, state in states.items()})
    good = REPORT.format("ok")
    found = array_verdict(running, {1: good, 2: good})
    assert (found.ok, found.finding.startswith("in 2 of 3 jobs of the array ")) == (True, True)
    assert array_verdict(running, dict.fromkeys((1, 2, 3), good)).finding.startswith("in each job of the ")
    judged = replace(running, binding=found)
    assert judged.node_names == [], "these ranks are of one job; another one may be on another node"
    assert replace(judged, array={}).node_names == ["n1"]


def test_a_job_that_never_began_has_no_binding_to_judge(record: JobRecord) -> None:
    cancelled = replace(record, array={1: ArrayJob(state="done"), 2: ArrayJob(state="cancelled")})
    assert array_verdict(cancelled, {1: REPORT.format("ok")}).ok
    none = replace(record, array={1: ArrayJob(state="cancelled")})
    assert array_verdict(none, {}).finding == "no job of the array reported its binding"


def test_an_index_that_the_array_does_not_have_is_refused(record: JobRecord) -> None:
    assert job_of_array(record, 2).folder == f"{record.folder}/2"
    with pytest.raises(BadInputError, match="has no index 7: its indices are 1, 2, 3"):
        job_of_array(record, 7)


def test_a_record_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    record = new_record(store, "slurm", tmp_path)
    said: list[str] = []
    assert store.keep(record, said.append).id == record.id
    assert said == []
    (tmp_path / "state").rename(tmp_path / "gone")
    (tmp_path / "state").write_text("a file where the folder was")
    for _ in range(2):
        assert store.keep(replace(record, state="running"), said.append).state == "running"
    assert len(said) == 1
    assert "the state shown is right, and is not saved" in said[0]


def test_a_job_is_open_until_its_end_is_known(record: JobRecord) -> None:
    states: tuple[JobState, ...] = ("queued", "running", "done", "failed", "cancelled", "lost")
    array = {index: ArrayJob(state=state) for index, state in enumerate(states)}
    assert open_indices(replace(record, array=array)) == {0, 1, 5}


def test_five_jobs_that_are_not_done_are_named_and_more_hinted_at(record: JobRecord) -> None:
    failed = JobStatus(state="failed", exit_code=1, reason="FAILED")
    for count, said in ((5, "3 (FAILED), 4 (FAILED), 5 (FAILED)"), (6, "4 (FAILED), 5 (FAILED), ...")):
        many = replace(record, array={index: ArrayJob(state="queued") for index in range(1, count + 1)})
        reason = judged(many, dict.fromkeys(many.array, failed), {}).reason or ""
        assert reason.startswith(f"of {count} jobs {count} failed; not done: 1 (FAILED), 2 (FAILED), ")
        assert said in reason


def test_twenty_indices_are_named_where_one_is_asked_for_that_the_array_lacks(record: JobRecord) -> None:
    many = replace(record, array={index: ArrayJob() for index in range(1, 30)})
    with pytest.raises(BadInputError, match=r"19, 20$"):
        job_of_array(many, 30)
    with pytest.raises(BadInputError, match="it is not an array"):
        job_of_array(replace(record, array={}), 1)


def test_an_array_that_waits_says_what_for(record: JobRecord) -> None:
    waits = JobStatus(state="queued", reason="Priority: others come first")
    found = judged(record, {1: JobStatus(state="running"), 2: waits, 3: waits}, {})
    assert found.reason == "of 3 jobs 2 queued, 1 running; Priority: others come first"
    failed = JobStatus(state="failed", exit_code=2, reason="FAILED")
    found = judged(record, {1: JobStatus(state="done", exit_code=0), 2: waits, 3: failed}, {})
    assert found.reason is not None
    assert found.reason.endswith("; not done: 3 (FAILED)")
    assert (found.exit_code, found.ended) == (None, None), "it is not over"


def test_what_files_tell_is_a_number_or_nothing() -> None:
    for text, code in ((b"0\n", 0), (b" 137 ", 137), (b"1000", None), (b"-1", None), (b"", None)):
        assert job_end.exit_status({"/j/exit_status": text}, "/j") == code
    assert job_end.exit_status({}, "/j") is None
    for count, restarts in ((b"3\n", 3), (b"123456789", 123456789), (b"1234567890", 0), (b"x", 0), (None, 0)):
        assert job_end.restarts_in(count) == restarts


def test_the_folders_of_runs_that_ended_in_a_way(record: JobRecord) -> None:
    array = replace(record, array={1: ArrayJob(state="done"), 2: ArrayJob(state="failed")}, folder="/j")
    one = replace(record, array={}, folder="/j")
    assert job_end.run_folders(array) == ["/j/1", "/j/2"]
    assert (
        job_end.failed_folders(array) == job_end.failed_folders(replace(array, state="cancelled")) == ["/j/2"]
    )
    for state, folders in (("done", []), ("failed", ["/j"]), ("cancelled", ["/j"]), ("lost", [])):
        assert job_end.failed_folders(replace(one, state=state)) == folders
    assert job_end.run_folders(one) == ["/j"]


def test_a_good_exit_code_is_not_that_of_a_job_which_its_scheduler_ended(record: JobRecord) -> None:
    one = replace(record, array={}, started="2026-11-25T09:00:00+00:00", restarts=2)
    for status, left, code in (
        (JobStatus(state="failed", exit_code=0, reason="TIMEOUT"), None, None),
        (JobStatus(state="failed", reason="TIMEOUT"), 0, None),
        (JobStatus(state="failed", reason="FAILED"), 3, 3),
        (JobStatus(state="failed", exit_code=4, reason="FAILED"), 3, 4),
        (JobStatus(state="done", exit_code=0), 3, 0),
    ):
        found = ended_as(one, status, left)
        assert (found.exit_code, found.started, found.restarts) == (code, one.started, 2)


@pytest.mark.parametrize(
    ("words", "ranks", "alike"),
    [
        ("Hello from rank 0 of 1", 2, True),
        ("I am rank: 0, world size: 1", 2, True),
        ("rank 0/1", 3, True),
        ("local rank 0 of 1", 2, False),
        ("rank 0 of 1.5", 2, False),
        ("rank 0 of 2", 2, False),
    ],
)
def test_ranks_that_each_say_they_are_alone(record: JobRecord, words: str, ranks: int, alike: bool) -> None:
    one = replace(record, tasks=ranks, array={}, plan={"launch": ["srun", "--mpi=pmi2"]})
    said = job_end.alone(one, f"{words}\n" * ranks)
    assert (said is not None) == alike
    assert (
        said is None
        or f"all {ranks} ranks print 'rank 0 of 1': each ran alone, as srun's plugin pmi2" in said
    )
    assert job_end.alone(one, f"{words}\n" * (ranks - 1)) is None, "one rank said something else"
    assert job_end.alone(replace(one, tasks=1), f"{words}\n") is None
    assert job_end.alone(replace(one, request={"mpi": "none"}), f"{words}\n" * ranks) is None
