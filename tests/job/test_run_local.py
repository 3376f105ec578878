"""Jobs on this machine, without a scheduler: real processes and real MPI ranks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpclaunch.errors import RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.follow_job import cancel_job, read_log, result_of, wait_job
from hpclaunch.job.record import JobRecord
from hpclaunch.job.refresh import refresh, refresh_all
from hpclaunch.job.start_job import submit_job
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from tests.testbed.kit import alive, contract_script, new_record, submit

HOST, LOCAL = LocalHost(), get_scheduler("local")
VENV_MPIEXEC = Path(sys.executable).parent / "mpiexec"


pytestmark = pytest.mark.slow  # together


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / 'state of $HOME\'s "store" ü')


def until(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.02)


def wait(store: Store, record: JobRecord) -> tuple[JobRecord, bytes]:
    pieces: list[bytes] = []
    return wait_job(store, HOST, record, pieces.append), b"".join(pieces)


@pytest.mark.parametrize(
    ("body", "state", "exit_code"),
    [
        ("true", "done", 0),
        ("exit 3", "failed", 3),
        ("no-such-program", "failed", 127),
        ("bash -c 'kill -SEGV $$'", "failed", 139),
        ("exit 255", "failed", 255),
    ],
)
def test_the_exit_status_is_kept(store: Store, tmp_path: Path, body: str, state: str, exit_code: int) -> None:
    record = submit(store, "local", body, tmp_path)
    assert record.state == "running"
    record, _ = wait(store, record)
    assert (record.state, record.exit_code) == (state, exit_code)
    assert record == store.load(record.id)
    assert record.started is not None
    assert record.ended is not None
    assert (record.reason is None) == (state == "done")


def test_output_comes_live_and_the_result_at_the_end(store: Store, tmp_path: Path) -> None:
    go, seen = tmp_path / "go", tmp_path / "seen"
    body = (
        f"echo first; until [ -e {seen} ]; do sleep 0.02; done; printf '\\377second' >&2; "
        'echo "{\\"answer\\": 42}" > "$HPCLAUNCH_RESULT_FILE"'
    )
    record = submit(store, "local", body, tmp_path)
    got = b""

    def on_output(data: bytes) -> None:
        nonlocal got
        got += data
        if b"first" in got:
            seen.touch()

    record = wait_job(store, HOST, record, on_output)
    assert got == b"first\n\xffsecond"
    assert record.state == "done"
    assert result_of(HOST, record) == {"answer": 42}
    assert not go.exists()


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"x": NaN}', b"\xff"])
def test_a_damaged_result_is_said_and_none(store: Store, tmp_path: Path, damage: bytes) -> None:
    record, notes = new_record(store, "local", tmp_path), list[str]()
    assert result_of(HOST, record, notes.append) is None
    assert notes == []
    path = Path(record.folder) / "result.json"
    path.write_bytes(damage)
    assert result_of(HOST, record, notes.append) is None
    assert len(notes) == 1
    assert str(path) in notes[0]


def test_it_runs_in_its_folder_with_its_environment_and_no_input(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_ME", "a b")
    record = submit(store, "local", 'echo "$PWD $FROM_ME"; cat; [ -t 0 ] || echo no terminal', tmp_path)
    _, output = wait(store, record)
    assert output.decode() == f"{tmp_path} a b\nno terminal\n"


def test_a_script_that_cannot_start_is_refused_and_the_record_says_so(store: Store, tmp_path: Path) -> None:
    record = replace(new_record(store, "local", tmp_path), workdir=str(tmp_path / "gone"))
    with pytest.raises(RefusedError, match="no such folder"):
        submit_job(store, HOST, LOCAL, record, contract_script(record, "true"))
    assert store.load(record.id).state == "failed"
    assert "no such folder" in (store.load(record.id).reason or "")


def test_the_job_outlives_the_process_and_the_terminal_that_started_it(store: Store, tmp_path: Path) -> None:
    program = f"""
import os
from pathlib import Path
from hpclaunch.job.store import Store
from tests.testbed.kit import submit
record = submit(Store(Path({str(store.root)!r})), "local", "sleep 1; echo survived", Path({str(tmp_path)!r}))
print(record.id, flush=True)
os.kill(0, 1)  # a terminal that closes: SIGHUP to its whole process group
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-c", program]
    parent = subprocess.run(
        words, env=environment, capture_output=True, text=True, start_new_session=True, check=False
    )
    assert parent.returncode == -signal.SIGHUP
    record, output = wait(store, store.find(parent.stdout.strip()))
    assert (record.state, output) == ("done", b"survived\n")


@pytest.mark.mpi
@pytest.mark.parametrize("stubborn", [False, True])
def test_cancel_leaves_no_rank(store: Store, tmp_path: Path, stubborn: bool) -> None:
    rank = tmp_path / "rank.py"
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" if stubborn else ""
    rank.write_text(
        f"import os, time\nfrom mpi4py import MPI\n{ignore}\n"
        f"open(r'{tmp_path}/pid-' + str(MPI.COMM_WORLD.rank), 'w').write(str(os.getpid()))\n"
        "time.sleep(1000)\n"
    )
    record = submit(store, "local", f"{VENV_MPIEXEC} -n 3 {sys.executable} {rank}; exit 9", tmp_path)
    files = [tmp_path / f"pid-{i}" for i in range(3)]
    until(lambda: all(file.exists() and file.read_text() for file in files))
    pids = [int(file.read_text()) for file in files]
    assert all(alive(pid) for pid in pids)
    assert cancel_job(store, HOST, record).state == "cancelled"
    assert not any(alive(pid) for pid in pids)
    assert marked_processes(record) == []


def marked_processes(record: JobRecord) -> list[str]:
    mark = f"HPCLAUNCH_LOCAL_JOB={record.scheduler_id}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_cancel_finds_who_left_the_session_or_cleared_the_environment(store: Store, tmp_path: Path) -> None:
    body = (
        f"setsid bash -c 'echo $$ > {tmp_path}/own-session; exec sleep 1000' & "
        f"env -i bash -c 'echo $$ > {tmp_path}/no-mark; exec sleep 1000' & wait"
    )
    record = submit(store, "local", body, tmp_path)
    files = [tmp_path / "own-session", tmp_path / "no-mark"]
    until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    pids = [int(file.read_text()) for file in files]
    record = cancel_job(store, HOST, record)
    assert (record.state, record.exit_code) == ("cancelled", 143)
    assert not any(alive(pid) for pid in pids)
    assert cancel_job(store, HOST, record) == record


def test_cancel_ends_what_the_job_starts_when_it_is_told_to_end(store: Store, tmp_path: Path) -> None:
    body = f"trap 'setsid sleep 1000 & exit' TERM; touch {tmp_path}/ready; sleep 1000 & wait"
    record = submit(store, "local", body, tmp_path)
    until((tmp_path / "ready").exists)
    cancel_job(store, HOST, record)
    assert marked_processes(record) == []


def test_cancel_spares_a_stranger_with_the_same_pid(store: Store, tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        record = new_record(store, "local", tmp_path)
        record = store.save(replace(record, state="running", scheduler_id=f"{stranger.pid}:1"))
        record = cancel_job(store, HOST, record)
        assert record.state == "cancelled"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize(
    ("left", "state", "code"), [("0", "done", 0), ("4", "failed", 4), (None, "lost", None)]
)
def test_a_pid_used_anew_is_not_taken_for_the_job(
    store: Store, tmp_path: Path, left: str | None, state: str, code: int | None
) -> None:
    record = new_record(store, "local", tmp_path)
    record = store.save(replace(record, state="running", scheduler_id=f"{os.getpid()}:1"))
    if left is not None:
        (Path(record.folder) / "exit_status").write_text(left + "\n")
    record = refresh(store, HOST, record)
    assert (record.state, record.exit_code) == (state, code)
    assert record.ended is not None


def test_a_shell_that_is_killed_is_lost_until_its_exit_file_turns_up(store: Store, tmp_path: Path) -> None:
    record = submit(store, "local", "sleep 1000", tmp_path)
    assert record.scheduler_id is not None
    os.kill(int(record.scheduler_id.partition(":")[0]), signal.SIGKILL)
    record, _ = wait(store, record)
    assert (record.state, record.exit_code) == ("lost", None)
    assert "left no exit status" in (record.reason or "")
    subprocess.run(LOCAL.cancel_command(record.scheduler_id or ""), check=True)
    assert marked_processes(record) == []
    (Path(record.folder) / "exit_status").write_text("5\n")
    assert refresh(store, HOST, record).exit_code == 5


@pytest.mark.parametrize("damage", ["", "x\n", "-1\n", "1\n2\n", "99999999999\n"])
def test_an_exit_file_that_holds_no_status_counts_as_none(store: Store, tmp_path: Path, damage: str) -> None:
    record = new_record(store, "local", tmp_path)
    record = store.save(replace(record, state="running", scheduler_id="1:1"))
    (Path(record.folder) / "exit_status").write_text(damage)
    assert refresh(store, HOST, record).state == "lost"


def test_many_jobs_are_asked_about_without_a_process(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [submit(store, "local", "sleep 1000", tmp_path) for _ in range(3)]
    cancel_job(store, HOST, records[-1])
    with monkeypatch.context() as without:
        without.setattr(LocalHost, "run", None)
        assert [record.state for record in refresh_all(store, HOST, records[:2])] == ["running"] * 2
    os.kill(int((records[0].scheduler_id or "").partition(":")[0]), signal.SIGKILL)
    wait(store, records[0])
    assert [record.state for record in refresh_all(store, HOST, records)] == ["lost", "running", "cancelled"]
    for record in records:
        cancel_job(store, HOST, record)


def test_a_job_whose_submission_has_not_begun_says_so_and_is_never_submitted_once_cancelled(
    store: Store, tmp_path: Path
) -> None:
    record = new_record(store, "local", tmp_path)
    fresh = refresh(store, HOST, record)
    assert fresh.state == "created"
    assert "nothing was submitted" in (fresh.reason or "")
    with pytest.raises(RefusedError, match="nothing was submitted"):
        wait_job(store, HOST, record)
    ended = cancel_job(store, HOST, record)
    assert (ended.state, ended.reason) == ("cancelled", "nothing was submitted")
    with pytest.raises(RefusedError, match="cancelled before it was submitted"):
        submit_job(store, HOST, LOCAL, record, contract_script(record, f"touch {tmp_path}/ran"))
    assert not (tmp_path / "ran").exists()


def test_a_job_whose_submission_was_cut_off_cannot_be_cancelled(store: Store, tmp_path: Path) -> None:
    record = new_record(store, "local", tmp_path)
    (Path(record.folder) / "submission").mkdir()
    for action in (cancel_job, wait_job):
        with pytest.raises(RefusedError, match="has no id from local"):
            action(store, HOST, record)


def test_reading_the_log_of_an_ended_job(store: Store, tmp_path: Path) -> None:
    record, _ = wait(store, submit(store, "local", "seq 200000", tmp_path))
    pieces: list[bytes] = []
    read_log(HOST, record, pieces.append)
    assert b"".join(pieces).split()[-1] == b"200000"
    assert len(pieces) > 1


WAITER = """
import sys
from pathlib import Path
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.follow_job import wait_job
from hpclaunch.job.store import Store
store = Store(Path(sys.argv[1]))
record = store.find("last")
def out(data):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
wait_job(store, LocalHost(), record, out, interrupt_cancels=sys.argv[2] == "cancel")
"""


@pytest.mark.parametrize(
    ("number", "cancels", "stays"),
    [
        (signal.SIGINT, True, False),
        (signal.SIGINT, False, True),
        (signal.SIGTERM, True, False),
        (signal.SIGTERM, False, True),
        (signal.SIGHUP, True, True),
    ],
)
def test_ctrl_c_and_other_signals_while_waiting(
    store: Store, tmp_path: Path, number: signal.Signals, cancels: bool, stays: bool
) -> None:
    record = submit(store, "local", "echo started; sleep 1000", tmp_path)
    words = [sys.executable, "-c", WAITER, str(store.root), "cancel" if cancels else "leave"]
    waiter = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert waiter.stdout is not None
    assert waiter.stdout.readline() == b"started\n"
    waiter.send_signal(number)
    _, errors = waiter.communicate()
    assert waiter.returncode == -(number if stays else signal.SIGINT)
    record = refresh(store, HOST, store.load(record.id))
    assert record.state == ("running" if stays else "cancelled")
    assert (b"cancelling job" in errors) != stays
    cancel_job(store, HOST, record)
    assert marked_processes(record) == []


def test_setsid_is_named_where_it_is_missing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to(bash)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(RefusedError, match="setsid: no such program"):
        submit(store, "local", "true", tmp_path)
