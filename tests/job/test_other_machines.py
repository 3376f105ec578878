"""Jobs without a queue, seen from another machine or container with the same home: never taken for ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.errors import RefusedError
from hpclaunch.host.this_machine import LocalHost, MachineIdentity, machine_identity
from hpclaunch.job.follow_job import cancel_job, wait_job
from hpclaunch.job.refresh import refresh
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from tests.own_process import hpclaunch as call
from tests.testbed.kit import new_record, submit

HOST, LOCAL = LocalHost(), get_scheduler("local")
HERE = machine_identity()
# A process namespace of its own, as a container has: the host's name and boot id are the same.
CONTAINER = ("unshare", "--map-root-user", "--pid", "--fork", "--mount-proc")


def stored(store: Store, job: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((store.folder(job) / "record.json").read_text())
    return document


@pytest.mark.slow
def test_a_running_job_seen_from_a_container_runs_as_last_known(tmp_path: Path) -> None:
    store, go = Store(), tmp_path / "go"
    job = submit(store, "local", f"until [ -e {go} ]; do sleep 0.05; done", tmp_path).id
    facts = json.loads(call("status", job, "--json", before=CONTAINER).stdout)
    assert facts["state"] == "running"
    assert facts["reason"].startswith(f"as last known on {HERE.host}; ")
    assert f"running, as last known on {HERE.host}" in call("jobs", before=CONTAINER).stdout
    refused = call("cancel", job, before=CONTAINER)
    assert refused.returncode == 4
    assert f"on {HERE.host}: hpclaunch cancel {job}" in refused.stderr
    assert stored(store, job)["state"] == "running"
    facts = json.loads(call("status", job, "--json").stdout)
    assert (facts["state"], facts["reason"]) == ("running", None)
    go.touch()
    assert call("wait", job, before=CONTAINER).stdout == "done\n"


@pytest.mark.slow
def test_waiting_for_a_job_that_runs_elsewhere_says_so_and_ends_with_it(tmp_path: Path) -> None:
    store, go = Store(), tmp_path / "go"
    job = submit(store, "local", f"until [ -e {go} ]; do sleep 0.05; done; exit 3", tmp_path).id
    words = [*CONTAINER, sys.executable, "-m", "hpclaunch", "wait", job]
    waiter = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert waiter.stderr is not None
    line = waiter.stderr.readline()
    assert f"runs, as last known on {HERE.host}; " in line
    assert "waiting for its exit status" in line
    go.touch()
    assert waiter.communicate()[0] == "failed\n"


@pytest.mark.parametrize(
    "machine",
    [
        replace(HERE, host="another-login-node", boot_id="7d2b"),
        replace(HERE, boot_id="7d2b"),
        replace(HERE, pid_namespace="pid:[1]"),
        replace(HERE, host="renamed"),
        replace(HERE, boot_id=""),
        None,
    ],
)
def test_nothing_is_concluded_where_the_machine_is_not_certainly_this_one(
    tmp_path: Path, machine: MachineIdentity | None
) -> None:
    store = Store(tmp_path / "state")
    record = new_record(store, "local", tmp_path)
    record = store.save(replace(record, state="running", scheduler_id="1:1", machine=machine))
    seen = refresh(store, HOST, record)
    assert seen.state == "running"
    assert "as last known on " in (seen.reason or "")
    assert store.load(record.id) == record
    with pytest.raises(RefusedError, match="cannot be cancelled from here"):
        cancel_job(store, HOST, record)
    (Path(record.folder) / "exit_status").write_text("3\n")
    ended = wait_job(store, HOST, record)
    assert (ended.state, ended.exit_code) == ("failed", 3)


def test_what_cannot_be_read_is_equal_to_nothing() -> None:
    unknown = replace(HERE, pid_namespace="")
    assert not unknown.sees_processes_of(unknown)
    assert HERE.sees_processes_of(machine_identity())


@pytest.mark.slow
def test_a_job_that_is_over_elsewhere_can_be_forgotten(tmp_path: Path) -> None:
    store = Store()
    record = new_record(store, "local", tmp_path)
    store.save(replace(record, state="running", scheduler_id="1:1", machine=replace(HERE, host="gone")))
    refused = call("forget", record.id)
    assert (refused.returncode, store.ids()) == (3, [record.id])
    assert "is running" in refused.stderr
    assert call("forget", "--force", record.id).stdout == f"{record.id} forgotten\n"
    assert store.ids() == []
    assert os.listdir(store.jobs) == []
