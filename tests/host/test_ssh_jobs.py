"""Jobs over ssh: submitted once whatever fails, followed, cancelled; a real Slurm behind a real sshd."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import hpclaunch.job.submission
from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import NoAnswerError
from hpclaunch.host.ssh import SshHost, connect
from hpclaunch.job.follow_job import cancel_job, read_log, wait_job
from hpclaunch.job.record import PREFIX, JobRecord
from hpclaunch.job.refresh import refresh, refresh_all
from hpclaunch.job.start_job import submit_job
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from tests.testbed.cluster import Slurm, Sshd
from tests.testbed.kit import contract_script, new_record, output_directives

SLURM, LOCAL = get_scheduler("slurm"), get_scheduler("local")
FAST = (0.1, 0.5)

# An sbatch that breaks the connection it is asked through, before or after it submits; FILE counts its calls.
CUTTING_SBATCH = """\
#!/bin/bash
echo called >> {calls}
cut() {{  # kill the server of this connection and, for "all", what is between it and us
  local p=$PPID between=()
  while [ "$(cat /proc/$p/comm)" != sshd ]; do
    between+=($p); p=$(awk '/^PPid/ {{print $2}}' /proc/$p/status)
  done
  kill -9 "$p"
  if [ "$1" = all ]; then kill -9 "${{between[@]}}"; fi
}}
submit() {{ {sbatch} "$@"; }}
{body}
"""
BODIES = {
    "before": 'cut; submit "$@"',
    "long before": 'cut; sleep 2; submit "$@"',
    "after": 'answer=$(submit "$@"); cut; echo "$answer"',
    "after, with all that waited": 'answer=$(submit "$@"); cut all; echo "$answer"',
}


def record_there(store: Store, tmp_path: Path, scheduler: str, workdir: Path | None = None) -> JobRecord:
    """A new record whose folder is on the host: next to the store, not in it."""
    record = new_record(store, scheduler, workdir or tmp_path)
    record = replace(record, folder=f"{tmp_path}/there/{record.id}")
    return store.save(record)


def script_of(record: JobRecord, body: str, *directives: str) -> str:
    return contract_script(record, body, [*output_directives(record), *directives])


@pytest.fixture
def host(sshd: Sshd, tmp_path: Path) -> Iterator[SshHost]:
    (tmp_path / "config").write_text(sshd.host_block("login"))
    with connect("login", config=tmp_path / "config") as host:
        yield host


@pytest.fixture
def cutting(
    slurm: Slurm, start_sshd: Callable[..., Sshd], tmp_path: Path
) -> Callable[[str], tuple[Sshd, SshHost]]:
    """Start a server whose sbatch breaks connections."""

    def start(body: str) -> tuple[Sshd, SshHost]:
        programs = tmp_path / "bin"
        programs.mkdir()
        text = CUTTING_SBATCH.format(calls=tmp_path / "calls", sbatch=shutil.which("sbatch"), body=body)
        (programs / "sbatch").write_text(text)
        (programs / "sbatch").chmod(0o755)
        server = start_sshd(slurm, variables={"PATH": f"{programs}:{os.environ['PATH']}"})
        (tmp_path / "config").write_text(server.host_block("login"))
        return server, SshHost("login", config=tmp_path / "config")

    return start


def jobs_named(slurm: Slurm, name: str) -> list[str]:
    return slurm.run("squeue", "-h", "-a", "-t", "all", "-n", name, "-o", "%i").stdout.split()


@pytest.mark.slurm
@pytest.mark.parametrize("moment", BODIES)
def test_a_connection_killed_between_submission_and_answer_makes_exactly_one_job(
    cutting: Callable[[str], tuple[Sshd, SshHost]],
    slurm: Slurm,
    store: Store,
    tmp_path: Path,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hpclaunch.job.submission, "WAIT_S", 3)
    server, host = cutting(BODIES[moment])
    record = record_there(store, tmp_path, "slurm")
    script = script_of(record, "echo ran", f"#SBATCH --job-name={record.id}")
    record = submit_job(store, host, SLURM, record, script)
    assert jobs_named(slurm, record.id) == [record.scheduler_id]
    assert (tmp_path / "calls").read_text() == "called\n"
    assert (server.folder / "sshd.log").read_text().count("Accepted publickey") == 2
    pieces: list[bytes] = []
    record = wait_job(store, host, record, pieces.append, poll_s=FAST)
    assert (record.state, b"".join(pieces)) == ("done", b"ran\n")
    host.close()


@pytest.mark.slurm
def test_a_host_that_goes_away_in_the_middle_leaves_it_open_until_it_is_back(
    cutting: Callable[[str], tuple[Sshd, SshHost]], slurm: Slurm, store: Store, tmp_path: Path
) -> None:
    server, host = cutting('answer=$(submit "$@"); kill -9 $(cat {0}); cut; echo "$answer"')
    path = tmp_path / "bin" / "sbatch"
    path.write_text(path.read_text().replace("{0}", f"{server.folder}/sshd.pid"))
    record = record_there(store, tmp_path, "slurm")
    script = script_of(record, "true", f"#SBATCH --job-name={record.id}", "#SBATCH --begin=now+1hour")
    with pytest.raises(NoAnswerError) as caught:
        submit_job(store, host, SLURM, record, script)
    assert caught.value.exit_code == 4
    record = store.load(record.id)
    assert (record.state, record.scheduler_id) == ("created", None)
    assert "it may have been submitted or not" in (record.reason or "")
    with pytest.raises(RefusedError, match="login cannot be reached"):
        refresh(store, host, record)
    assert store.load(record.id) == record
    (server.folder / "sshd.pid").unlink()
    server.start()
    record = refresh(store, host, record)
    assert (record.state, [record.scheduler_id]) == ("queued", jobs_named(slurm, record.id))
    cancel_job(store, host, record)
    host.close()


@pytest.mark.slurm
def test_what_sbatch_refuses_is_reported_each_time(host: SshHost, store: Store, tmp_path: Path) -> None:
    record = record_there(store, tmp_path, "slurm")
    script = script_of(record, "true", "#SBATCH --partition=nosuch")
    for _ in range(2):  # the second time by the cached answer
        with pytest.raises(RefusedError, match="invalid partition specified: nosuch"):
            submit_job(store, host, SLURM, record, script)
    assert store.load(record.id).state == "failed"


@pytest.mark.slurm
def test_logs_are_followed_over_a_connection_that_breaks(
    host: SshHost, sshd: Sshd, store: Store, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    record = record_there(store, tmp_path, "slurm")
    body = f"echo first; until [ -e {seen} ]; do sleep 0.05; done; echo second"
    record, got = submit_job(store, host, SLURM, record, script_of(record, body)), b""

    def on_output(data: bytes) -> None:
        nonlocal got
        got += data
        sshd.break_connections()
        seen.touch()

    record = wait_job(store, host, record, on_output, poll_s=FAST)
    assert (record.state, got) == ("done", b"first\nsecond\n")
    again: list[bytes] = []
    read_log(host, record, again.append)
    assert b"".join(again) == got


@pytest.mark.slurm
def test_cancel(host: SshHost, store: Store, tmp_path: Path) -> None:
    record = record_there(store, tmp_path, "slurm")
    record = submit_job(store, host, SLURM, record, script_of(record, "sleep 1000"))
    while record.state != "running":
        record = refresh(store, host, record)
    cancel_job(store, host, record)
    assert wait_job(store, host, record, poll_s=FAST).state == "cancelled"


@pytest.mark.slurm
def test_names_paths_and_arguments_arrive_unchanged(host: SshHost, store: Store, tmp_path: Path) -> None:
    hostile = 'it\'s a "$(touch x)" `id` \\ ü\nline'
    workdir = tmp_path / hostile
    workdir.mkdir()
    record = record_there(store, tmp_path, "slurm", workdir)
    (tmp_path / "there").mkdir()
    name = f"{hostile} job".replace("\n", " ")
    host.write_file(f"{tmp_path}/there/name", name.encode())
    body = f'printf "%s|%s" "$PWD" "$SLURM_JOB_NAME"; [ "$SLURM_JOB_NAME" = "$(cat {tmp_path}/there/name)" ]'
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    record = submit_job(store, host, SLURM, record, script_of(record, body, f'#SBATCH --job-name="{quoted}"'))
    pieces: list[bytes] = []
    record = wait_job(store, host, record, pieces.append, poll_s=FAST)
    assert b"".join(pieces).decode() == f"{workdir}|{name}"
    assert record.state == "done"


@pytest.mark.slurm
def test_status_of_many_jobs_is_one_round_trip_to_each_source(
    host: SshHost, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = record_there(store, tmp_path, "slurm")
    first = submit_job(store, host, SLURM, first, script_of(first, "true", "#SBATCH --begin=now+1hour"))
    waiting = [replace(first, id=f"{first.id}-{i}", folder=f"{first.folder}-{i}") for i in range(100)]
    forgotten = [
        replace(record, id=f"{record.id}-f", scheduler_id=f"9999999{i:02}")
        for i, record in enumerate(waiting)
    ]
    report = PREFIX + "rank=0 host=n{} local_rank=0 cpus=0 planned=0 verdict=ok\n"
    for i, record in enumerate(forgotten):
        os.makedirs(record.folder)
        (Path(record.folder) / "exit_status").write_text("0\n" if i % 2 else "3\n")
        (Path(record.folder) / "out.log").write_text(report.format(i) + "srun: error: n1: task 0: Killed\n")
        forgotten[i] = replace(record, plan={"binding": {"ranks": []}})
    for record in (*waiting, *forgotten):
        store.create(record)
    trips: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        method = getattr(SshHost, name)

        def count(self: SshHost, *arguments: Any, **options: Any) -> Any:
            trips.append(arguments[0].argv[0] if name == "_run_once" else name)
            return method(self, *arguments, **options)

        return count

    monkeypatch.setattr(SshHost, "_run_once", counted("_run_once"))  # every command and every use of a file
    assert {record.state for record in refresh_all(store, host, waiting)} == {"queued"}
    assert trips == ["squeue"]
    trips.clear()
    ended = refresh_all(store, host, forgotten)
    # What the sources do not know is read from the folders of all jobs at once, and then their logs; and once
    # more those of failed jobs.
    # The cluster is asked for its name before a job that it does not know counts as ended.
    assert trips == ["squeue", "sacct", *["scontrol"] * 5, "tar", "xargs", "xargs"]
    assert [record.state for record in ended] == ["failed", "done"] * 50
    assert all(record.ended for record in ended)
    assert [r.binding.ranks[0].host for r in ended if r.binding] == [f"n{i}" for i in range(100)]
    assert {record.reason for record in ended} == {
        None,
        "the script ended with exit status 3; first failure reported: rank 0 on n1: Killed",
    }
    monkeypatch.undo()
    cancel_job(store, host, first)


@pytest.mark.sshd
def test_a_connection_killed_during_the_upload_of_a_script_makes_exactly_one_job(
    plain_sshd: Sshd, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(plain_sshd.host_block("login"))
    record = record_there(store, tmp_path, "local")
    script = script_of(record, f"echo ran >> {tmp_path}/runs", "# " + "x" * (30 << 20))
    cuts: list[bool] = []

    def cut() -> None:
        while not any(p.stat().st_size > 1 << 20 for p in Path(record.folder).glob(".job.sh.*")):
            time.sleep(0.001)
        cuts.append((Path(record.folder) / "job.sh").exists())
        plain_sshd.break_connections()

    thread = threading.Thread(target=cut)
    thread.start()
    with connect("login", config=tmp_path / "config") as host:
        ended = wait_job(store, host, submit_job(store, host, LOCAL, record, script))
    thread.join()
    assert cuts == [False]
    assert ended.state == "done"
    assert (tmp_path / "runs").read_text() == "ran\n"
    assert not list(Path(record.folder).glob(".job.sh.*"))
