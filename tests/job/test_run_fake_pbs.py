"""Jobs on a fake PBS, which really runs the scripts and answers in the form recorded from a real one."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpclaunch.errors import RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.follow_job import LogReader, cancel_job, result_of, wait_job
from hpclaunch.job.record import JobRecord
from hpclaunch.job.refresh import refresh, refresh_all
from hpclaunch.job.start_job import submit_job
from hpclaunch.job.store import Store
from hpclaunch.job.submission import recover
from hpclaunch.scheduler.registry import get_scheduler
from tests.testbed.kit import contract_script, fake_on_path, new_record, submit

pytestmark = pytest.mark.slow

HOST, PBS = LocalHost(), get_scheduler("pbs")
FAST = (0.05, 0.3)
FAKES = Path(__file__).parents[1] / "fakes"


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the fake PBS on PATH and return its home folder."""
    return fake_on_path("pbs", tmp_path, monkeypatch)


def wait(store: Store, record: JobRecord) -> tuple[JobRecord, str]:
    pieces: list[bytes] = []
    record = wait_job(store, HOST, record, pieces.append, poll_s=FAST)
    return record, b"".join(pieces).decode()


def until(store: Store, record: JobRecord, state: str) -> JobRecord:
    while record.state != state:
        record = refresh(store, HOST, record)
    return record


def test_from_submission_to_result(store: Store, tmp_path: Path) -> None:
    body = 'cd "$PBS_O_WORKDIR"; pwd; echo "{\\"answer\\": 42}" > "$HPCLAUNCH_RESULT_FILE"'
    record = submit(store, "pbs", body, tmp_path)
    assert (record.state, record.scheduler_id) == ("queued", "1.fakepbs")
    record, output = wait(store, record)
    assert (record.state, record.exit_code, record.reason) == ("done", 0, None)
    assert output == f"{tmp_path}\n"
    assert result_of(HOST, record) == {"answer": 42}
    assert record.started is not None
    assert record.ended is not None
    created, ended = (dt.datetime.fromisoformat(time) for time in (record.created, record.ended))
    assert created <= ended


def test_times_hold_in_any_time_zone(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Qstat prints local times without a zone; whoever asks is elsewhere, too."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "XST-5:30")
        time.tzset()
        begun = dt.datetime.now(dt.timezone.utc).replace(microsecond=0)
        record, _ = wait(store, submit(store, "pbs", "true", tmp_path))
    time.tzset()
    assert record.started is not None
    started = dt.datetime.fromisoformat(record.started)
    assert begun <= started <= dt.datetime.now(dt.timezone.utc)
    assert started.utcoffset() == dt.timedelta(hours=5, minutes=30)


@pytest.mark.parametrize(("body", "exit_code"), [("exit 3", 3), ("kill -9 $$", 137), ("nothing-there", 127)])
def test_a_failed_job_keeps_its_exit_code(store: Store, tmp_path: Path, body: str, exit_code: int) -> None:
    record, _ = wait(store, submit(store, "pbs", body, tmp_path))
    assert (record.state, record.exit_code) == ("failed", exit_code)
    assert record.reason


def test_output_comes_while_the_job_runs_only_where_it_is_asked_for(store: Store, tmp_path: Path) -> None:
    """PBS keeps output in its spool until the end, unless ``-k doe`` asks for direct writing."""
    go, record = tmp_path / "go", new_record(store, "pbs", tmp_path)
    log = Path(record.folder) / "out.log"
    body = f"echo first; until [ -e {go} ]; do sleep 0.02; done; echo second"
    script = contract_script(record, body, ["#PBS -j oe", f"#PBS -o {log}"])
    record = until(store, submit_job(store, HOST, PBS, record, script), "running")
    assert not log.exists()
    go.touch()
    assert wait(store, record)[1] == "first\nsecond\n"
    go.unlink()
    direct, got = submit(store, "pbs", body, tmp_path), b""

    def on_output(data: bytes) -> None:
        nonlocal got
        got += data
        go.touch()

    assert wait_job(store, HOST, direct, on_output, poll_s=FAST).state == "done"
    assert got == b"first\nsecond\n"


def test_cancelling_a_running_and_a_queued_job(store: Store, tmp_path: Path, server: Path) -> None:
    record = until(store, submit(store, "pbs", "sleep 1000", tmp_path), "running")
    cancel_job(store, HOST, record)
    record, _ = wait(store, store.load(record.id))
    assert (record.state, record.exit_code) == ("cancelled", 143)
    (server / "stopped").touch()
    record = submit(store, "pbs", "true", tmp_path)
    record = refresh(store, HOST, record)
    assert record.reason == (
        "Not Running: Queue not started.: "
        "the queue takes no jobs to run now: wait for the site, or take another"
    )
    record = cancel_job(store, HOST, record)
    assert (record.state, record.exit_code) == ("cancelled", None)


def test_a_walltime_kill_is_no_success_even_if_the_script_says_so(store: Store, tmp_path: Path) -> None:
    body = "trap 'exit 0' TERM; sleep 1000 & wait"
    record, output = wait(store, submit(store, "pbs", body, tmp_path, "#PBS -l walltime=00:00:01"))
    assert (record.state, record.exit_code) == ("failed", None)
    assert "it reached its walltime" in (record.reason or "")
    assert "job killed: walltime" in output


@pytest.mark.parametrize(
    ("directive", "words"),
    [("#PBS -q nosuch", "Unknown queue"), ("#PBS -l walltime=soon", "Illegal attribute or resource value")],
)
def test_what_qsub_refuses_is_told_in_its_words(
    store: Store, tmp_path: Path, directive: str, words: str
) -> None:
    with pytest.raises(RefusedError, match=words):
        submit(store, "pbs", "true", tmp_path, directive)
    assert store.find("last").state == "failed"


def test_broken_json_is_left_to_the_text(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PBS_JSON", "broken")
    record, _ = wait(store, submit(store, "pbs", "exit 3", tmp_path))
    assert (record.state, record.exit_code) == ("failed", 3)
    assert record.ended is not None


def test_a_server_without_history_leaves_it_to_the_exit_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PBS_HISTORY", "0")
    record, _ = wait(store, submit(store, "pbs", "exit 5", tmp_path))
    assert (record.state, record.exit_code) == ("failed", 5)


def test_a_job_after_an_unknown_one_is_not_lost(store: Store, tmp_path: Path, server: Path) -> None:
    records = [submit(store, "pbs", "sleep 1000", tmp_path) for _ in range(3)]
    records = [until(store, record, "running") for record in records]
    saved = (server / "1.json").read_text()
    (server / "1.json").unlink()
    assert [record.state for record in refresh_all(store, HOST, records)] == ["lost", "running", "running"]
    (server / "1.json").write_text(saved)
    for record in records:
        subprocess.run(["qdel", record.scheduler_id or ""], check=True)
        wait(store, store.load(record.id))


def test_a_server_that_is_down_loses_no_job(store: Store, tmp_path: Path, server: Path) -> None:
    record = until(store, submit(store, "pbs", "sleep 1000", tmp_path), "running")
    (server / "down").touch()
    with pytest.raises(RefusedError, match="cannot connect to server fakepbs"):
        refresh(store, HOST, record)
    notes: list[str] = []
    assert [r.state for r in refresh_all(store, HOST, [record], notes.append)] == ["running"]
    assert "as they were last known" in notes[0]
    with pytest.raises(RefusedError, match="did not cancel"):
        cancel_job(store, HOST, record)
    with pytest.raises(RefusedError, match="cannot connect"):
        submit(store, "pbs", "true", tmp_path)
    (server / "down").unlink()
    cancel_job(store, HOST, record)
    assert wait(store, store.load(record.id))[0].state == "cancelled"


@pytest.mark.mpi
@pytest.mark.openmpi
@pytest.mark.parametrize(("site", "has_pmi"), [("aurora", False), ("polaris", True)])
def test_ranks_under_a_fake_of_pals_know_who_they_are(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: str, has_pmi: bool
) -> None:
    venv = Path(sys.executable).parent
    monkeypatch.setenv("FAKE_PBS_JOB_PATH", f"{FAKES / 'fake_pals'}:{venv}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE_PALS_MPIEXEC", str(venv / "mpiexec"))
    monkeypatch.setenv("FAKE_PALS_SITE", site)
    program = (
        "from mpi4py import MPI; import os; c = MPI.COMM_WORLD; "
        "print(c.rank == int(os.environ['PALS_RANKID']), c.size, 'PMI_RANK' in os.environ)"
    )
    body = f'mpiexec -n 2 --ppn 2 --depth 1 --cpu-bind list:0:1 python -c "{program}"'
    record, output = wait(store, submit(store, "pbs", body, tmp_path, "#PBS -l select=1:ncpus=2"))
    assert record.state == "done", output
    assert output.splitlines() == [f"True 2 {has_pmi}"] * 2


def test_a_submission_that_waits_for_a_job_which_fails_is_no_refusal(store: Store, tmp_path: Path) -> None:
    """With ``-W block=true`` qsub exits with the status of the job."""
    record = submit(store, "pbs", "exit 7", tmp_path, "#PBS -W block=true")
    record, _ = wait(store, record)
    assert (record.state, record.exit_code) == ("failed", 7)


def test_a_job_that_ended_before_its_submission_was_answered_is_found(store: Store, tmp_path: Path) -> None:
    record, _ = wait(store, submit(store, "pbs", "exit 7", tmp_path))
    for name in ("exit_code", "stdout"):
        (Path(record.folder) / "submission" / name).unlink()
    found = recover(HOST, PBS, f"{record.folder}/job.sh", record.folder)
    assert found == record.scheduler_id


def test_a_log_that_is_emptied_for_another_run_is_followed(store: Store, tmp_path: Path) -> None:
    record, got = new_record(store, "pbs", tmp_path), list[bytes]()
    log, reader = Path(record.folder) / "out.log", LogReader(HOST, record, got.append)
    for text in ("first run\n", "first run\ngoes on\n", "2\n", "2nd run, which says more\n"):
        log.write_text(text)
        reader.drain()
    assert b"".join(got) == b"first run\ngoes on\n2\n2nd run, which says more\n"
