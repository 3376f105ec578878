"""Jobs that are followed, waited for and cancelled on a Slurm that is played, so that each turn is known."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import UnreadableFileError
from hpclaunch.job import follow_job
from hpclaunch.job.ask_scheduler import Answers
from hpclaunch.job.dependencies import forgotten
from hpclaunch.job.follow_job import LogReader, cancel_job, failed_nodes, read_log, result_of, wait_job
from hpclaunch.job.record import ArrayJob, JobRecord
from hpclaunch.job.refresh import NOT_SUBMITTED, judge, once, refresh, refresh_all, state_now
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import JobIdentity, JobState, JobStatus
from tests.job.played_slurm import Away, Notes, PlayedJob, PlayedSlurm, script_of
from tests.testbed.kit import new_record

SLURM = get_scheduler("slurm")
FAST = (0.001, 0.002)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


def submitted(store: Store, host: PlayedSlurm, *states: str, number: str = "17", **more: Any) -> JobRecord:
    """A job that Slurm has, and will report in these states."""
    record = new_record(store, "slurm", store.root)
    facts = {"state": "queued", "scheduler_id": number, "identity": JobIdentity(cluster="east"), **more}
    record = store.save(replace(record, **facts))
    if states:
        host.jobs[number] = PlayedJob(script_of(record), list(states))
    return record


def leave(record: JobRecord, name: str, text: str) -> None:
    """What the job writes into its folder."""
    path = Path(record.folder) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_a_job_to_wait_for_that_no_source_knows_is_named(store: Store) -> None:
    """A typing error in --after: Slurm starts the job at once, as if the other one had ended long ago."""
    host = PlayedSlurm()
    submitted(store, host, "RUNNING")
    assert list(forgotten(host, SLURM, store, ("17", "71"))) == ["71"]
    asked = list(host.asked)
    assert not forgotten(host, SLURM, store, ("17",)), "its state was asked for as it was settled"
    assert not forgotten(host, SLURM, store, ())
    assert host.asked == asked
    host.refuses["sacct"] = "sacct: error: Problem talking to the database: Connection refused"
    assert not forgotten(host, SLURM, store, ("71",))


def test_a_job_is_followed_to_its_end_with_its_output(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    host, notes, output = PlayedSlurm(), Notes(), list[bytes]()
    record = submitted(store, host, "PENDING", "RUNNING", "COMPLETED")
    leave(record, "out.log", "one\n")
    monkeypatch.setattr(follow_job, "_LATE_FILES_S", 0.0)

    def polled() -> None:
        if host.asked.count("squeue") == 2 and len(output) == 1:
            leave(record, "out.log", "one\ntwo\n")

    ended = wait_job(store, host, record, output.append, poll_s=FAST, note=notes, on_poll=polled)
    assert (ended.state, ended.exit_code, notes.texts) == ("done", 0, [])
    assert b"".join(output) == b"one\ntwo\n"
    assert store.load(record.id) == ended
    asked = len(host.asked)
    assert wait_job(store, host, ended, poll_s=FAST, note=notes) == ended
    assert len(host.asked) == asked, "it is over"


def test_a_login_node_that_cannot_be_reached_is_waited_for_and_named_once_each_time(store: Store) -> None:
    host, notes = Away([True, False, False, True, False, True]), Notes()
    record = submitted(store, host, "RUNNING", "RUNNING", "COMPLETED")
    assert wait_job(store, host, record, poll_s=FAST, note=notes).state == "done"
    assert [text for text in notes.texts if text.endswith("waiting for it")] == [
        "no route to the login node; waiting for it"
    ] * 2


def test_the_exit_file_ends_a_long_pause_at_once(store: Store) -> None:
    """With a pause of a minute this test would take as long."""
    host = PlayedSlurm()
    record = submitted(store, host, "RUNNING", "COMPLETED")
    leave(record, "exit_status", "0\n")
    assert wait_job(store, host, record, poll_s=(60.0, 60.0), note=Notes()).state == "done"
    log = LogReader(host, record, None)
    assert follow_job._follow(host, record, log, lambda: None, 60.0, wake=True)
    assert follow_job._follow(host, record, log, lambda: None, 0.01, wake=False)
    (Path(record.folder) / "exit_status").unlink()
    assert not follow_job._follow(host, record, log, lambda: None, 0.01, wake=True)


@pytest.mark.parametrize("cancels", [True, False])
def test_an_interrupted_wait_cancels_the_job_where_that_was_asked(store: Store, cancels: bool) -> None:
    host, notes = PlayedSlurm(), Notes()
    record = submitted(store, host, "RUNNING")

    def interrupt() -> None:
        if cancels:
            signal.raise_signal(signal.SIGTERM)  # as from ``timeout``
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait_job(store, host, record, poll_s=FAST, note=notes, on_poll=interrupt, interrupt_cancels=cancels)
    assert ("scancel" in host.asked) == cancels
    assert (f"interrupted: cancelling job {record.id}" in notes.texts) == cancels
    assert store.load(record.id).state == ("cancelled" if cancels else "running")
    assert (Path(record.folder) / "cancelled").exists() == cancels


def test_a_job_that_was_not_submitted_cannot_be_waited_for_and_never_is_after_its_cancellation(
    store: Store,
) -> None:
    host, record = PlayedSlurm(), new_record(store, "slurm", store.root)
    with pytest.raises(RefusedError, match=record.id):
        wait_job(store, host, record, poll_s=FAST, note=Notes())
    assert refresh(store, host, record).reason == NOT_SUBMITTED
    ended = cancel_job(store, host, record, Notes())
    assert (ended.state, ended.reason) == ("cancelled", "nothing was submitted")
    assert host.asked == []
    assert cancel_job(store, host, ended, Notes()) == ended, "there is nothing to ask about"


def test_a_submission_that_was_cut_off_is_found_again(store: Store) -> None:
    host, notes = PlayedSlurm(), Notes()
    for answer, state, number in (("17\n", "queued", "17"), ("", "failed", None)):
        record = new_record(store, "slurm", store.root)
        leave(record, "submission/exit_code", "0" if answer else "1")
        leave(record, "submission/stdout", answer)
        leave(record, "submission/stderr", "" if answer else "sbatch: error: invalid account")
        host.jobs["17"] = PlayedJob(script_of(record), ["PENDING"])
        found = refresh(store, host, record, notes)
        assert (found.state, found.scheduler_id) == (state, number)
        assert store.load(record.id).state == state
    assert "invalid account" in (found.reason or "")
    assert found.ended is not None


# --- cancelling -------------------------------------------------------------------------------------------


def test_a_job_is_cancelled_once_and_says_so_in_its_folder(store: Store) -> None:
    for state in ("RUNNING", "PENDING"):
        host = PlayedSlurm()
        record = submitted(store, host, state)
        ended = cancel_job(store, host, record, Notes())
        assert (ended.state, host.asked.count("scancel")) == ("cancelled", 1)
        assert (Path(record.folder) / "cancelled").read_text().startswith("20")
        assert cancel_job(store, host, ended, Notes()).state == "cancelled"
        assert host.asked.count("scancel") == 1


def test_a_job_that_is_over_for_the_record_and_not_for_slurm_is_cancelled(store: Store) -> None:
    host, notes = PlayedSlurm(), Notes()
    record = submitted(store, host, "RUNNING", state="lost", reason="gone", ended="2026-11-25T10:00:00+00:00")
    assert cancel_job(store, host, record, notes).state == "cancelled"
    assert notes.texts == [f"job {record.id} was lost as recorded, but Slurm still has it"]
    host.jobs["17"].states = ["COMPLETED"]
    done = submitted(store, host, "COMPLETED", number="18")
    assert cancel_job(store, host, done, notes).state == "done"
    assert host.asked.count("scancel") == 1


def test_a_refused_cancellation_leaves_no_mark(store: Store) -> None:
    """The mark makes a failure a cancellation; an empty one does not."""
    host = PlayedSlurm()
    record = submitted(store, host, "RUNNING")
    host.refuses["scancel"] = "scancel: error: Access/permission denied"
    with pytest.raises(RefusedError, match="permission denied"):
        cancel_job(store, host, record, Notes())
    assert (Path(record.folder) / "cancelled").read_text() == ""
    leave(record, "exit_status", "3\n")
    del host.jobs["17"], host.refuses["scancel"]
    assert refresh(store, host, record).state == "failed"


def test_a_job_in_a_folder_that_takes_no_mark_is_cancelled_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = PlayedSlurm()

    def full(path: str, data: bytes, mode: int = 0o644) -> None:
        raise BadInputError(f"{path}: No space left on device")

    monkeypatch.setattr(host, "write_file", full)
    record = submitted(store, host, "RUNNING")
    job = host.jobs["17"]
    monkeypatch.setattr(host, "_sacct", lambda _: "")
    run = host.run

    def ended(argv: Any, *more: Any, **named: Any) -> Any:
        answer = run(argv, *more, **named)
        if argv[0] == "scancel":
            job.states, job.code = ["FAILED"], "15:0"
        return answer

    monkeypatch.setattr(host, "run", ended)
    found = cancel_job(store, host, record, Notes())
    assert (found.state, found.reason, found.ended is not None) == ("cancelled", None, True)


def test_only_this_very_job_is_cancelled(store: Store) -> None:
    """Its number may be another job's, its cluster another one, its scheduler away."""
    host = PlayedSlurm()
    record = submitted(store, host, "RUNNING")
    host.jobs["17"].script = "/home/me/other.sh"
    assert cancel_job(store, host, record, Notes()).state == "lost"
    assert "scancel" not in host.asked
    west = PlayedSlurm("west")
    with pytest.raises(RefusedError, match=f"on east: hpclaunch cancel {record.id}"):
        cancel_job(store, west, record, Notes())
    unknown = replace(record, identity=None)
    with pytest.raises(RefusedError, match="the record does not tell which cluster took it") as caught:
        cancel_job(store, PlayedSlurm(), unknown, Notes())
    assert caught.value.hint == "where it is: scancel 17"
    host = PlayedSlurm()
    host.refuses = dict.fromkeys(("squeue", "sacct", "scontrol"), "slurm_load_jobs error: Unable to contact")
    with pytest.raises(RefusedError, match="cannot be asked whether 17 is still this job: squeue gives no"):
        cancel_job(store, host, record, Notes())


# --- what a job has written -------------------------------------------------------------------------------


def test_output_is_read_from_where_it_stopped_and_again_where_it_was_emptied(store: Store) -> None:
    """A run that begins again writes its log anew; the last byte that was read tells."""
    host, pieces = PlayedSlurm(), list[bytes]()
    record = submitted(store, host)
    reader = LogReader(host, record, pieces.append)
    for text in ("one\n", "one\ntwo\n", "one\ntwo\n", "on", "again, and longer than before\n"):
        leave(record, "out.log", text)
        reader.drain()
    assert pieces == [b"one\n", b"two\n", b"on", b"again, and longer than before\n"]
    LogReader(host, record, None).drain(late_s=60.0)


def test_logs_of_an_array_come_whole_each_below_its_index(store: Store) -> None:
    host, pieces = PlayedSlurm(), list[bytes]()
    jobs = {index: ArrayJob(state="running") for index in (1, 2, 10)}
    record = submitted(store, host, array=jobs, state="running")
    reader = follow_job.ArrayLogReader(host, record, pieces.append)
    for index in jobs:
        leave(record, f"{index}/out.log", f"log {index}\n")
    reader.drain()
    assert pieces == []
    leave(record, "2/exit_status", "0\n")
    reader.drain()
    reader.drain()
    assert b"".join(pieces) == b"==> job 2 <==\nlog 2\n"
    leave(record, "out.log", "of all\n")
    reader.drain(over=True)
    assert b"".join(pieces[2:]) == (
        b"==> job 1 <==\nlog 1\n==> job 10 <==\nlog 10\n==> the array <==\nof all\n"
    )
    pieces.clear()
    read_log(host, record, pieces.append)
    assert b"".join(pieces).count(b"<==") == 4


def test_results_are_read_and_damaged_ones_noted(store: Store) -> None:
    host, notes = PlayedSlurm(), Notes()
    record = submitted(store, host)
    assert result_of(host, record, notes) is None
    leave(record, "result.json", '{"loss": 0.5}')
    assert result_of(host, record, notes) == {"loss": 0.5}
    array = submitted(store, host, array={1: ArrayJob(), 2: ArrayJob(), 3: ArrayJob()})
    assert result_of(host, array, notes) is None
    leave(array, "1/result.json", '{"loss": 1}')
    leave(array, "3/result.json", "[1]")
    assert notes.texts == []
    assert result_of(host, array, notes) == {"1": {"loss": 1}, "3": None}
    (said,) = notes.texts
    assert f"{array.folder}/3/result.json: damaged result: " in said


def test_output_that_is_not_there_yet_is_said_with_the_state(store: Store) -> None:
    host, pieces = PlayedSlurm(), list[bytes]()
    record = submitted(store, host)
    with pytest.raises(BadInputError, match="no output yet") as caught:
        read_log(host, record, pieces.append)
    assert caught.value.hint == "the job is queued"
    leave(record, "out.log", "one\n")
    read_log(host, record, pieces.append)
    assert pieces == [b"one\n"]


def test_the_node_whose_failure_ended_a_job_is_asked_for_where_it_has_a_number(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = PlayedSlurm()
    monkeypatch.setattr(
        host, "_scontrol", lambda _: "JobId=17 JobState=NODE_FAIL FailedNode=nid007 Restarts=0\n"
    )
    assert failed_nodes(host, submitted(store, host)) == ("nid007",)
    assert failed_nodes(host, replace(submitted(store, host), scheduler_id=None)) == ()
    assert host.asked == ["scontrol"]


# --- the state --------------------------------------------------------------------------------------------


def test_what_several_jobs_say_is_said_once() -> None:
    notes = Notes()
    say = once(notes)
    for text in ("a", "b", "a"):
        say(text)
    assert notes.texts == ["a", "b"]


def test_many_jobs_are_asked_about_with_one_question_in_their_order(store: Store) -> None:
    host, notes = PlayedSlurm(), Notes()
    records = [
        submitted(store, host, state, number=number) for number, state in (("9", "RUNNING"), ("8", "FAILED"))
    ]
    local = store.save(replace(new_record(store, "local", store.root), state="done"))
    found = refresh_all(store, host, [records[0], local, records[1]], notes)
    assert [one.id for one in found] == [records[0].id, local.id, records[1].id]
    assert [one.state for one in found] == ["running", "done", "failed"]
    assert host.asked.count("squeue") == 1
    host.refuses = dict.fromkeys(("squeue", "sacct", "scontrol"), "Unable to contact slurm controller")
    assert refresh_all(store, host, found[:1], notes) == found[:1]
    (said,) = notes.texts
    assert said.startswith("slurm jobs are shown as they were last known: squeue gives no answer")


def test_a_folder_that_cannot_be_read_is_a_fault_of_its_job_only(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, notes = PlayedSlurm(), Notes()
    broken, good = submitted(store, host, number="9"), submitted(store, host, number="8")
    leave(good, "exit_status", "0\n")
    read_files = host.read_files

    def reading(paths: Any) -> dict[str, bytes]:
        if any(path.startswith(broken.folder) for path in paths):
            raise UnreadableFileError(f"{broken.folder}: Permission denied")
        return read_files(paths)

    monkeypatch.setattr(host, "read_files", reading)
    found = refresh_all(store, host, [broken, good], notes)
    assert [one.state for one in found] == ["queued", "done"]
    assert notes.texts == [f"its job is shown as it was last known: {broken.folder}: Permission denied"]
    with pytest.raises(UnreadableFileError):
        refresh(store, host, broken, notes)


def test_a_job_that_is_not_known_any_more_is_judged_by_its_exit_file(store: Store) -> None:
    cases: list[tuple[dict[str, str], JobState, int | None, str | None]] = [
        ({"exit_status": "0\n"}, "done", 0, None),
        ({"exit_status": "3\n"}, "failed", 3, "the script ended with exit status 3"),
        ({"exit_status": "143\n", "cancelled": "2026\n"}, "cancelled", 143, None),
        ({"exit_status": "3\n", "reason": "restarts are used up\n"}, "failed", 3, "restarts are used up"),
        ({"exit_status": "x\n"}, "lost", None, None),
    ]
    for files, state, code, reason in cases:
        host = PlayedSlurm()
        record = submitted(store, host)
        for name, text in files.items():
            leave(record, name, text)
        found = refresh(store, host, record)
        assert (found.state, found.exit_code) == (state, code)
        assert state == "lost" or found.reason == reason


def test_a_job_that_runs_is_shown_with_its_restarts_and_its_checks(store: Store) -> None:
    host = PlayedSlurm()
    record = submitted(store, host, "RUNNING", plan={"supervision": True})
    host.jobs["17"].restarts = 1
    leave(record, "restarts", "3\n")
    assert state_now(store, host, record).restarts == 3
    host.jobs["17"].restarts = 4
    assert state_now(store, host, record).restarts == 4
    bound = submitted(store, host, "RUNNING", plan={"binding": {"ranks": []}}, number="18")
    assert state_now(store, host, bound).binding is None, "no rank has begun"
    host.jobs["18"].states = ["PENDING"]
    leave(bound, "restarts", "3\n")
    assert (state_now(store, host, bound).state, state_now(store, host, bound).restarts) == ("queued", 0)


def judged(record: JobRecord, left: dict[str, str] | None = None, **answers: Any) -> JobRecord:
    files = {f"{record.folder}/{name}": text.encode() for name, text in (left or {}).items()}
    return judge(record, SLURM, Answers(**answers), files)


def test_why_a_job_is_lost_says_how_certain_that_is(store: Store) -> None:
    record = submitted(store, PlayedSlurm())
    found = judged(record, cluster="east")
    assert (found.state, found.reason) == (
        "lost",
        "slurm of east no longer knows the job, and it left no exit status: it was killed at once, its node "
        "or this machine went down, or its disk was full",
    )
    assert (judged(record).reason or "").startswith("slurm no longer knows the job, and it left")
    stranger = judged(record, strangers=frozenset((record.id,))).reason or ""
    assert "no longer knows the job, and 17 is another job by now, and it left" in stranger
    other = judged(replace(record, identity=None)).reason or ""
    assert other.endswith("or another cluster has it: which one took it is not recorded")
    array = judged(replace(record, array={1: ArrayJob(state="running")}))
    assert (array.state, array.reason) == ("lost", "of 1 jobs 1 lost; not done: 1 (lost)")


def test_nothing_is_concluded_from_a_scheduler_that_was_not_asked(store: Store) -> None:
    record = submitted(store, PlayedSlurm(), state="running")
    trouble = RefusedError("no answer")
    assert judged(record, trouble=trouble) == record
    assert judged(record, {"exit_status": "0"}, trouble=trouble).state == "done"
    assert judged(record, {"exit_status": "0"}, unusable={record.id: trouble}) == record
    away = judged(record, away={record.id: "as last known on east; elsewhere"})
    assert (away.state, away.reason) == ("running", "as last known on east; elsewhere")
    assert judged(record, {"exit_status": "0"}, away={record.id: "as last known on east"}).state == "done"
    done = replace(record, state="done")
    assert judged(done) == done
    assert judged(replace(record, state="lost"), {"exit_status": "0"}).state == "done"
    none = replace(record, scheduler_id=None)
    assert judged(none).state == "running"


def test_the_next_job_of_a_chain_takes_over(store: Store) -> None:
    """Where a site forbids requeueing, the script submits itself again and leaves the number."""
    record = submitted(store, PlayedSlurm(), state="running")
    ended = {record.id: JobStatus(state="failed", exit_code=1, reason="TIMEOUT: it took longer")}
    next_one = judged(record, {"next_id": "18\n"}, statuses=ended)
    assert (next_one.state, next_one.scheduler_id, next_one.reason) == (
        "queued",
        "18",
        "restarted by its own script",
    )
    over = judged(record, {"next_id": "18\n", "exit_status": "0\n"}, statuses=ended)
    assert (over.state, over.scheduler_id, over.exit_code) == ("done", "18", 0)
    same = judged(replace(record, scheduler_id="18;east"), {"next_id": "18\n"}, statuses=ended)
    assert (same.state, same.scheduler_id, same.reason) == ("failed", "18;east", "TIMEOUT: it took longer")
    damaged = judged(record, {"next_id": "sbatch: error\n"}, statuses=ended)
    assert damaged.reason == f"TIMEOUT: it took longer; {record.folder}/next_id holds no id of a next job"
    words = judged(record, {"next_id": "x", "reason": "checkpoint is damaged\n"}, statuses=ended)
    assert words.reason == "checkpoint is damaged"
    done = judged(record, {"next_id": "x"}, statuses={record.id: JobStatus(state="done", exit_code=0)})
    assert (done.state, done.reason) == ("done", None)


def test_a_job_that_slurm_has_again_is_open_again(store: Store) -> None:
    record = submitted(store, PlayedSlurm(), state="lost", reason="gone", exit_code=1, ended="2026-11-25")
    found = judged(record, statuses={record.id: JobStatus(state="running", restarts=2)})
    assert (found.state, found.reason, found.exit_code, found.ended) == ("running", None, None, None)
    assert found.restarts == 2
