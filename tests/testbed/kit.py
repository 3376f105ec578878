"""Jobs for the tests: a record, and a script that keeps the contract with hpclaunch.job.follow_job."""

from __future__ import annotations

import datetime as dt
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.host.this_machine import LocalHost, machine_identity
from hpclaunch.job.record import JobRecord
from hpclaunch.job.start_job import submit_job
from hpclaunch.job.store import Store, new_job_id
from hpclaunch.scheduler.registry import get_scheduler


def fake_on_path(scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *more: Path) -> Path:
    """Put a fake scheduler on PATH, and more folders behind it; return the home folder of the fake."""
    home = tmp_path / f"fake {scheduler}"
    home.mkdir()
    monkeypatch.setenv(f"FAKE_{scheduler.upper()}_HOME", str(home))
    fake = Path(__file__).parents[1] / "fakes" / f"fake_{scheduler}"
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (fake, *more, os.environ["PATH"]))))
    return home


def new_record(store: Store, scheduler: str, workdir: Path, name: str = "try") -> JobRecord:
    """Return the record of a job that is about to be submitted, kept in the store."""
    now = dt.datetime.now(dt.timezone.utc)
    job_id = new_job_id(now)
    record = JobRecord(
        id=job_id,
        name=name,
        site=f"generic-{scheduler}",
        scheduler=scheduler,
        machine=machine_identity() if get_scheduler(scheduler).starts_at_once else None,
        folder=str(store.folder(job_id)),
        workdir=str(workdir),
        created=now.isoformat(timespec="seconds"),
        command=("true",),
        nodes=1,
        tasks=1,
        request={},
        plan={},
        profile_digest="",
        versions={},
    )
    store.create(record)
    return record


def contract_script(record: JobRecord, body: str, directives: Sequence[str] = ()) -> str:
    """Return a script that leaves its exit status in the job's folder however it ends."""
    folder = shlex.quote(record.folder)
    return "\n".join(
        [
            "#!/bin/bash",
            *directives,
            f"export HPCLAUNCH_JOB_FOLDER={folder} HPCLAUNCH_RESULT_FILE={folder}/result.json",
            "end() {",
            "  status=$?; trap - EXIT",
            '  echo "$status" > "$HPCLAUNCH_JOB_FOLDER/exit_status.new"',
            '  mv "$HPCLAUNCH_JOB_FOLDER/exit_status.new" "$HPCLAUNCH_JOB_FOLDER/exit_status"',
            '  exit "$status"',
            "}",
            "trap end EXIT",
            "trap 'exit 143' TERM",
            body,
            "",
        ]
    )


def output_directives(record: JobRecord) -> list[str]:
    """Return the directives that send the output to ``out.log`` of the job's folder."""
    log = f"{record.folder}/out.log"
    return {
        "local": [],
        "slurm": [f"#SBATCH --output={log}"],
        "pbs": ["#PBS -j oe", "#PBS -k doe", f"#PBS -o {log}"],
        "flux": ["#flux: --nodes=1", f"#flux: --output={shlex.quote(log)}"],
        "lsf": [f"#BSUB -o {record.folder}/lsf.log", f"exec > {shlex.quote(log)} 2>&1"],
    }[record.scheduler]


def submit(store: Store, scheduler: str, body: str, workdir: Path, *directives: str) -> JobRecord:
    """Submit a script with this body and return the record."""
    record = new_record(store, scheduler, workdir)
    script = contract_script(record, body, [*output_directives(record), *directives])
    return submit_job(store, LocalHost(), get_scheduler(scheduler), record, script)


def alive(pid: int) -> bool:
    """Whether a process runs: one that ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def record_of(job: str) -> dict[str, Any]:
    """Return what the record of a job of ours holds, as it is on disk."""
    path = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job / "record.json"
    document: dict[str, Any] = json.loads(path.read_text())
    return document
