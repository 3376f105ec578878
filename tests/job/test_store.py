"""The job store: many processes, kills at any moment, damaged files."""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.job.record import JobRecord
from hpclaunch.job.store import Store, new_job_id
from tests.in_process import hpclaunch_here
from tests.testbed.kit import new_record
from tests.testbed.second_user import SecondUser

WRITER = """
import sys
from pathlib import Path
from msgspec.structs import replace
from hpclaunch.job.store import Store
from tests.testbed.kit import new_record
store = Store(Path(sys.argv[1]))
print("ready", flush=True)
for i in range(int(sys.argv[2])):
    record = new_record(store, "local", Path("/"), name=f"{sys.argv[3]}-{i}")
    for state in ("queued", "running", "done"):
        store.save(replace(record, state=state))
"""


def writer(store: Store, count: int, name: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-c", WRITER, str(store.root), str(count), name]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE)


def test_ids_sort_by_age_and_do_not_collide() -> None:
    now = dt.datetime(2026, 11, 21, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert re.fullmatch(r"20261120-230203-[0-9a-z]{6}", new_job_id(now))
    later = (0, 1, 2, 31, 32, 500, 999, 1000, 60_000)
    ids = [new_job_id(now + dt.timedelta(milliseconds=ms)) for ms in later]
    assert ids == sorted(ids)
    assert len({new_job_id(now) for _ in range(100)}) > 90


def test_the_root_follows_the_xdg_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/some/state")
    assert Store().root == Path("/some/state/hpclaunch")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert Store().root == Path("/home/me/.local/state/hpclaunch")


def test_a_record_comes_back_as_it_was_saved(store: Store, tmp_path: Path) -> None:
    record = new_record(store, "slurm", tmp_path, name="ünïcode 'n\"ame\n")
    changed = replace(record, state="running", scheduler_id="7", command=("a b", "$x", "\x00"))
    store.save(changed)
    assert Store(store.root).load(record.id) == changed


def test_what_is_final_stays_final(store: Store, tmp_path: Path) -> None:
    record = new_record(store, "local", tmp_path)
    done = store.save(replace(record, state="done", exit_code=0))
    assert store.save(replace(record, state="running")) == done
    assert store.load(record.id) == done


def test_a_slow_process_does_not_undo_the_end_of_a_job(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read that the job runs, and writes so after another process has written that it is done."""
    record = new_record(store, "local", tmp_path)
    read, load = threading.Event(), store.load

    def slow(job_id: str) -> JobRecord:
        stored = load(job_id)
        read.set()
        time.sleep(0.3)
        return stored

    monkeypatch.setattr(store, "load", slow)
    runs = threading.Thread(target=store.save, args=(replace(record, state="running"),))
    runs.start()
    read.wait()
    Store(store.root).save(replace(record, state="done"))
    runs.join()
    assert load(record.id).state == "done"


def test_a_record_is_saved_where_another_process_keeps_the_lock(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpclaunch.job.store._LOCK_WAIT_S", 0.1)
    record = new_record(store, "local", tmp_path)
    held = os.open(store.folder(record.id), os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    store.save(replace(record, state="running"))
    os.close(held)
    assert store.load(record.id).state == "running"


def test_records_are_for_their_owner_only(store: Store, tmp_path: Path) -> None:
    record = new_record(store, "local", tmp_path)
    folder = store.folder(record.id)
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "record.json")] == [0o700, 0o600]
    store.save(replace(record, state="done"))
    assert (folder / "record.json").stat().st_mode & 0o777 == 0o600


def test_no_job_replaces_another(store: Store, tmp_path: Path) -> None:
    record = new_record(store, "local", tmp_path, name="first")
    with pytest.raises(BadInputError, match="a job with that id exists already"):
        store.create(replace(record, name="second"))
    assert store.load(record.id).name == "first"
    assert os.listdir(store.jobs) == [record.id]


def test_finding(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no job yet"):
        store.find("last")
    records = [new_record(store, "slurm", tmp_path) for _ in range(3)]
    store.save(replace(records[0], scheduler_id="4711"))
    newest = store.ids()[-1]
    assert store.find("last").id == newest
    assert store.find(records[1].id).id == records[1].id
    assert store.find(records[1].id[:-1]).id == records[1].id
    assert store.find("4711").id == records[0].id
    with pytest.raises(BadInputError, match="fits 3 jobs"):
        store.find("2")
    for nothing in ("9999", "", "../" + records[0].id, "."):
        with pytest.raises(BadInputError, match="no job"):
            store.find(nothing)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema": 2}', b"null"])
def test_a_damaged_record_is_named_and_the_other_records_are_listed(
    store: Store, tmp_path: Path, damage: bytes
) -> None:
    good, bad = new_record(store, "local", tmp_path), new_record(store, "local", tmp_path)
    path = store.folder(bad.id) / "record.json"
    path.write_bytes(damage)
    records, sentences = store.list()
    assert [record.id for record in records] == [good.id]
    assert len(sentences) == 1
    assert str(path) in sentences[0]
    with pytest.raises(BadInputError, match="damaged job record") as caught:
        store.find(bad.id)
    assert caught.value.exit_code == 3


def test_a_job_that_another_user_put_there_is_not_ours(
    store: Store, tmp_path: Path, second_user: SecondUser
) -> None:
    """In a state folder that others can write to: its command would run as us."""
    own, foreign = (store.save(new_record(store, "local", tmp_path, name)) for name in ("mine", "theirs"))
    second_user.owns(store.folder(foreign.id))
    records, notes = store.list()
    assert [record.name for record in records] == ["mine"]
    assert notes == [f"{store.folder(foreign.id)}/record.json: a job of user {second_user.name}, not yours"]
    environment = {"XDG_STATE_HOME": str(store.root.parent)}
    store.root.rename(store.root.parent / "hpclaunch")
    for words in (
        ("resubmit", foreign.id),
        ("cancel", foreign.id),
        ("status", foreign.id),
        ("forget", foreign.id),
    ):
        done = hpclaunch_here(*words, environment=environment)
        assert (done.returncode, "a job of user nobody, not yours" in done.stderr) == (3, True), words
    listed = hpclaunch_here("jobs", "--json", environment=environment)
    assert [job["id"] for job in json.loads(listed.stdout)] == [own.id]
    assert "a job of user nobody, not yours" in listed.stderr


def test_half_made_folders_are_reported_and_never_a_crash(store: Store, tmp_path: Path) -> None:
    record = new_record(store, "local", tmp_path)
    (store.jobs / "20200101-000000-half").mkdir()
    (store.jobs / ".20200101-000000-temp.1").mkdir()
    (store.jobs / "a file").write_text("x")
    records, sentences = store.list()
    assert [r.id for r in records] == [record.id]
    assert len(sentences) == 2
    assert store.find("last") == record


def test_an_unwritable_state_folder_is_bad_input_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, not a folder")
    with pytest.raises(BadInputError, match="jobs cannot be stored here") as caught:
        new_record(Store(tmp_path / "state"), "local", tmp_path)
    assert caught.value.exit_code == 3
    assert str(tmp_path / "state") in str(caught.value)
    assert "XDG_STATE_HOME" in str(caught.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_file_system_of_the_jobs_is_not_called_unwritable(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("hpclaunch.job.store.write_new_file", full)
    with pytest.raises(BadInputError, match="jobs cannot be stored here") as caught:
        new_record(store, "local", tmp_path)
    assert "make room there (hpclaunch forget removes jobs)" in str(caught.value)
    assert "writable" not in str(caught.value)


@pytest.mark.slow
def test_several_processes_at_once(store: Store) -> None:
    writers = [writer(store, 25, str(i)) for i in range(4)]
    while any(process.poll() is None for process in writers):
        assert store.list()[1] == []
    assert [process.returncode for process in writers] == [0] * 4
    records, damaged = store.list()
    assert damaged == []
    assert len(records) == 100
    assert {record.state for record in records} == {"done"}


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_every_job_whole(store: Store) -> None:
    for i in range(8):
        process = writer(store, 10_000, str(i))
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.02 * i)
        process.send_signal(signal.SIGKILL)
        process.wait()
        records, damaged = store.list()
        assert damaged == []
    assert records


STOPS = """
import os, signal, sys, time
import hpclaunch.job.store
def stop(*_):
    print("half made", flush=True)
    time.sleep(1000)
hpclaunch.job.store.write_new_file = stop
sys.argv[2:] = ["1", "stopped"]
"""


def half_made(store: Store, age_s: float) -> subprocess.Popen[bytes]:
    """A process that is in the midst of making a job's folder, for so long as it seems."""
    words = [sys.executable, "-c", STOPS + WRITER, str(store.root)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    while process.stdout.readline() != b"half made\n":
        pass
    (folder,) = store.jobs.glob(".*")
    os.utime(folder, (time.time() - age_s,) * 2)
    return process


def test_what_a_dead_process_left_half_made_is_removed_by_the_next_submission(
    store: Store, tmp_path: Path
) -> None:
    with half_made(store, age_s=20) as process:
        process.kill()
    new_record(store, "local", tmp_path)
    assert list(store.jobs.glob(".*")) == []


@pytest.mark.parametrize(("age_s", "left"), [(600, 1), (4000, 0)])
def test_what_another_process_makes_is_left_alone_for_an_hour(
    age_s: float, left: int, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpclaunch.job.store._LOCK_WAIT_S", 0.1)
    with half_made(store, age_s) as process:
        new_record(store, "local", tmp_path)
        assert len(list(store.jobs.glob(".*"))) == left
        process.kill()


def test_a_file_system_without_locks_leaves_it_alone_for_an_hour(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    with half_made(store, age_s=600) as process:
        process.kill()
    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", no_locks)
        new_record(store, "local", tmp_path)
        assert len(list(store.jobs.glob(".*"))) == 1
    new_record(store, "local", tmp_path)
    assert list(store.jobs.glob(".*")) == []


def test_a_folder_that_a_submission_removes_as_well_is_forgotten(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = new_record(store, "local", tmp_path)
    remove = shutil.rmtree

    def removed_meanwhile(folder: Path) -> None:
        remove(folder)
        remove(folder)

    monkeypatch.setattr("shutil.rmtree", removed_meanwhile)
    store.forget(record.id)
    assert os.listdir(store.jobs) == []


def test_last_is_the_job_that_was_submitted_last_whatever_the_clock_was(store: Store, tmp_path: Path) -> None:
    """The clock of one login node is ten years ahead, that of another a day behind."""
    now = dt.datetime.now(dt.timezone.utc)
    days = (0, 3653, -1, 0)
    ids = [new_job_id(now + dt.timedelta(days=shift)) for shift in days]
    pattern = new_record(store, "local", tmp_path)
    for job_id in ids:
        store.create(replace(pattern, id=job_id, folder=str(store.folder(job_id))))
        assert store.find("last").id == job_id
    assert store.ids() == [pattern.id, *ids]
    assert [record.id for record in store.list(newest=2)[0]] == ids[-2:]
    # A job of an older version is in no order; a line may be cut, where the machine went down.
    old = new_job_id(now + dt.timedelta(days=3653))
    shutil.copytree(store.folder(ids[0]), store.folder(old))
    order = store.root / "order"
    order.write_bytes(order.read_bytes() + b"\n2026")
    with pytest.raises(BadInputError, match="exists already"):
        store.create(replace(pattern, id=ids[0]))
    newest = new_record(store, "local", tmp_path).id
    assert store.ids() == [old, pattern.id, *ids, newest]


def test_a_whole_id_of_the_scheduler_comes_before_the_start_of_one_of_ours(
    store: Store, tmp_path: Path
) -> None:
    first, second = new_record(store, "slurm", tmp_path), new_record(store, "slurm", tmp_path)
    day = first.id.partition("-")[0]
    store.save(replace(first, scheduler_id="555"))
    store.save(replace(second, scheduler_id=day))
    assert store.find(day).id == second.id
    assert store.find(f"{first.id[:-3]}").id == first.id
    store.save(replace(first, scheduler_id=f"{day};east"))
    with pytest.raises(BadInputError, match=f"'{day}' fits 2 jobs"):
        store.find(day)
