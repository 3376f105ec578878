"""Garbage in the files of a job, and folders that take no more: other jobs and the scheduler are reached."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpclaunch.job.store import Store
from tests.own_process import hpclaunch as call
from tests.testbed.cluster import Slurm
from tests.testbed.kit import new_record, submit

GARBAGE = {
    "nul": b"\0\n",
    "text": b"garbage\n",
    "option": b"--help\n",
    "number": b"99999999999999999999\n",
    "bytes": b"\xff\xfe\x00" * 1000,
    "long": b"7" * 3_000_000,
}
FILES = ("next_id", "exit_status", "reason", "cancelled", "result.json", "out.log", "record.json")


def state_of(job: str) -> str:
    """Return the state that the list of all jobs shows; the list is shown whatever is damaged."""
    answer = call("jobs", "--json")
    assert answer.returncode == 0, answer.stderr
    assert "internal error" not in answer.stderr
    return next(str(facts["state"]) for facts in json.loads(answer.stdout) if facts["id"] == job)


@pytest.mark.slurm
def test_garbage_in_any_file_of_a_job_hides_no_other_job(on_slurm: Slurm, tmp_path: Path) -> None:
    """One good job is watched; of the damaged ones each file holds each garbage, or is a folder or a pipe."""
    store, go = Store(), tmp_path / "go"
    good = submit(store, "slurm", f"until [ -e {go} ]; do sleep 0.05; done", tmp_path)
    for name in FILES:
        for kind, data in [*GARBAGE.items(), ("folder", b""), ("pipe", b"")]:
            record = new_record(store, "slurm", tmp_path, name=f"{name} {kind}")
            store.save(replace(record, state="running", scheduler_id="4000000000"))
            path = Path(record.folder) / name
            path.unlink(missing_ok=True)
            if kind == "folder":
                path.mkdir()
            elif kind == "pipe":
                os.mkfifo(path)
            else:
                path.write_bytes(data)
    for text in ("garbage", "1\0002", "--help", "99999999999", ""):
        record = new_record(store, "slurm", tmp_path, name="scheduler_id")
        store.save(replace(record, state="running", scheduler_id=text))
    for field in (
        {"folder": "\0"},
        {"folder": "relative"},
        {"scheduler": "moab"},
        {"created": "\x1b]0;x\x07"},
    ):
        record = new_record(store, "slurm", tmp_path, name=str(field))
        (Path(record.folder) / "record.json").write_text(
            json.dumps(json.loads((Path(record.folder) / "record.json").read_text()) | field)
        )
    while state_of(good.id) == "queued":
        pass
    assert state_of(good.id) == "running"
    go.touch()
    while state_of(good.id) == "running":
        pass
    assert state_of(good.id) == "done"


@pytest.mark.slow
def test_hostile_fields_do_not_reach_the_terminal(tmp_path: Path) -> None:
    store, evil = Store(), "\x1b]0;x\x07\x9b31m\u202e"
    record = new_record(store, "local", tmp_path, name=f"name {evil}")
    record = replace(record, site=evil, reason=evil, workdir=f"/{evil}", command=(evil,), created=evil)
    store.save(replace(record, state="failed", exit_code=1))
    for words in (["status"], ["jobs"], ["wait"]):
        answer = call(*words)
        shown = answer.stdout + answer.stderr
        assert not [c for c in shown if c != "\n" and not c.isprintable()], words


def small_disk(folder: Path, size: str) -> tuple[str, ...]:
    """Return the words that run a command where a real file system of that size is mounted at the folder."""
    folder.mkdir()
    mount = 'mount -t tmpfs -o "size=$1" small "$0" && shift && exec "$@"'
    return (*_OWN_MOUNTS, "sh", "-c", mount, str(folder), size)


def read_only(folder: Path) -> tuple[str, ...]:
    """Return the words that run a command to which the folder is read-only."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    return (*_OWN_MOUNTS, "sh", "-c", mount, str(folder))


_OWN_MOUNTS = ("unshare", "--map-current-user", "--keep-caps", "--mount")


@pytest.mark.slurm
def test_a_read_only_state_folder_hides_no_job_and_stops_no_cancel(on_slurm: Slurm, tmp_path: Path) -> None:
    store, go = Store(), tmp_path / "go"
    ends, runs = (
        submit(store, "slurm", body, tmp_path)
        for body in (f"until [ -e {go} ]; do sleep 0.05; done; exit 3", "sleep 600")
    )
    there = read_only(store.root)
    while json.loads(call("status", runs.id, "--json", before=there).stdout)["state"] != "running":
        pass
    answer = call("jobs", before=there)
    assert (answer.returncode, answer.stdout.count(" running ")) == (0, 2)
    assert "Read-only file system; the state shown is right, and is not saved" in answer.stderr
    go.touch()
    answer = call("wait", ends.id, before=there)
    assert (answer.returncode, answer.stdout) == (1, "failed\n")
    assert answer.stderr.count("Read-only") == 1
    assert call("cancel", runs.id, before=there).returncode == 0
    assert call("wait", runs.id, before=there).stdout == "cancelled\n"
    assert store.load(runs.id).state == "queued"


@pytest.mark.slow
def test_a_full_state_folder_stops_no_cancel_of_a_job_on_this_machine(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    script = """
cat /dev/zero > "$XDG_STATE_HOME/filler" 2> /dev/null
hpclaunch="$0 -m hpclaunch"
job=$($hpclaunch submit --site local --no-wait -- sleep 600 2>&1) && exit 1
case $job in *"No space left on device"*) ;; *) echo "$job"; exit 2;; esac
rm "$XDG_STATE_HOME/filler"
job=$($hpclaunch submit --site local --no-wait -- sleep 600) || exit 3
cat /dev/zero > "$XDG_STATE_HOME/filler" 2> /dev/null
$hpclaunch status; $hpclaunch jobs; $hpclaunch cancel "$job"
"""
    answer = subprocess.run(
        [*small_disk(disk, "1m"), "sh", "-c", script, sys.executable],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(disk)},
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "state    running" in answer.stdout
    assert answer.stdout.splitlines()[-1].endswith(" cancelled")


@pytest.mark.slurm
def test_a_submission_that_was_accepted_shows_its_id_though_no_record_can_be_written(
    on_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk becomes full while sbatch runs; its answer has room, the record has not."""
    disk, programs = tmp_path / "disk", tmp_path / "bin"
    programs.mkdir()
    (programs / "sbatch").write_text(
        f'#!/bin/sh\nanswer=$({shutil.which("sbatch")} "$@") || exit\n'
        'cat /dev/zero > "$XDG_STATE_HOME/filler" 2> /dev/null\necho "$answer"\n'
    )
    (programs / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(disk))
    script = '"$0" -m hpclaunch submit "$@" -- true && "$0" -m hpclaunch status --json'
    words = ("--site", "generic-slurm", "--name", "kept", "--mpi", "none", "--no-test-only", "--time", "5m")
    answer = subprocess.run(
        [*small_disk(disk, "1m"), "sh", "-c", script, sys.executable, *words], capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    number = on_slurm.run("squeue", "-h", "-a", "-t", "all", "-n", "kept", "-o", "%A").stdout.strip()
    assert f"Slurm has job {number}; " in answer.stderr
    assert f"(slurm {number})" in answer.stderr
    facts = json.loads(answer.stdout.splitlines()[-1])
    assert (facts["scheduler_id"], facts["state"] != "created") == (number, True)
