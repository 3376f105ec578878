"""``hpclaunch report --bundle``: a record for papers, the same bytes each time, without secrets."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from hpclaunch.api import JobHandle
from hpclaunch.cli.main import program
from hpclaunch.errors import BadInputError
from hpclaunch.job.record import BindingVerdict, JobRecord, RankReport, judge
from hpclaunch.job.store import Store
from hpclaunch.study.job_bundle import without_secrets, write_bundle
from hpclaunch.study.study_file import StudyFile, StudyPoint, save_study
from hpclaunch.usage.report_documents import ReportDocument
from tests.in_one_test import in_one_test
from tests.testbed.kit import new_record

RANK = RankReport(rank=0, host="n1", local_rank=0, cpus="0-3", planned="0-3", bus="", verdict="ok")


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobRecord:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    store = Store()
    ok, finding = judge((RANK,), 1)
    found = replace(
        new_record(store, "local", tmp_path),
        state="done",
        exit_code=0,
        machine=None,
        started="2026-11-25T10:00:00+00:00",
        ended="2026-11-25T10:05:00+00:00",
        command=("train", "--api-key", "abc123"),
        request={"env": {"LR": "0.1"}},
        plan={"nodes": 1},
        versions={"hpclaunch": "0.2.0", "commit": "abcdef123456"},
        git_commit="fedcba654321-dirty",
        binding=BindingVerdict(ok=ok, finding=finding, ranks=(RANK,)),
    )
    store.save(found)
    folder = Path(found.folder)
    (folder / "files").mkdir()
    (folder / "files" / "plan.sh").write_text("tasks=1\n")
    (folder / "job.sh").write_text("#!/bin/bash\nexport WANDB_API_KEY=abc123\n./train --lr 0.1\n")
    (folder / "result.json").write_text('{"loss": 0.5}\n')
    return found


def report(*words: str) -> Result:
    return CliRunner().invoke(program, ["report", *words], catch_exceptions=False)


def read(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        assert {(member.uid, member.gid, member.mode, member.isreg()) for member in members} == {
            (0, 0, 0o644, True)
        }
        return {member.name: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]


def test_it_has_what_a_reviewer_needs_and_the_sums_of_its_files(record: JobRecord, tmp_path: Path) -> None:
    done = report("last", "--bundle", "job.tar.gz")
    assert done.exit_code == 0, done.output
    assert f"record of job {record.id} in job.tar.gz" in done.stderr
    files = {
        name.removeprefix(f"hpclaunch-{record.id}/"): data
        for name, data in read(tmp_path / "job.tar.gz").items()
    }
    assert set(files) == {
        *("job.sh", "plan.sh", "plan.json", "versions.json", "binding.json", "result.json"),
        *("report.json", "report.txt", "report.html", "SHA256SUMS"),
    }
    about = json.loads(files["versions.json"])
    assert (about["git_commit"], about["versions"]["commit"]) == ("fedcba654321-dirty", "abcdef123456")
    assert json.loads(files["plan.json"]) == {"request": {"env": {"LR": "0.1"}}, "plan": {"nodes": 1}}
    assert json.loads(files["binding.json"])["ranks"][0]["cpus"] == "0-3"
    assert json.loads(files["report.json"])["times"]["wall_s"] == 300
    assert files["report.txt"].decode().strip() == done.stdout.strip()
    assert files["plan.sh"] == b"tasks=1\n"
    for line in files["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == digest


def test_the_same_job_gives_the_same_bytes(record: JobRecord, tmp_path: Path) -> None:
    for name in ("one.tar.gz", "two.tar.gz"):
        assert report(record.id, "--bundle", name).exit_code == 0
        os.utime(Path(record.folder) / "job.sh")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_a_study_of_the_job_is_in_it_and_no_other(record: JobRecord, tmp_path: Path) -> None:
    point = StudyPoint(size=1, repeat=1, job=record.id, state="measured", nodes=1, ranks=1, seconds=2.0)
    facts = {
        "token": "t",
        "kind": "strong",
        "by": "nodes",
        "settings": {},
        "is_program": False,
        "workdir": "/",
    }
    for name, job in (("mine", record.id), ("other", "20260101-000000-aaaaaa")):
        save_study(StudyFile(name=name, points=(replace(point, job=job),), **facts))  # type: ignore[arg-type]
    (tmp_path / "state" / "hpclaunch" / "studies" / "damaged").mkdir()
    (tmp_path / "state" / "hpclaunch" / "studies" / "damaged" / "study.json").write_text("{")
    assert report(record.id, "--bundle", "job.tar.gz").exit_code == 0
    names = {name.partition("/")[2] for name in read(tmp_path / "job.tar.gz")}
    assert {name for name in names if "study" in name} == {"study-mine.json", "study-mine.csv"}


def test_no_file_is_replaced_and_no_link_followed(record: JobRecord, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("target", "link", "dangling"):
        done = report(record.id, "--bundle", name)
        assert done.exit_code == 3
        assert f"--bundle {name}: it is there already" in done.stderr
    assert (tmp_path / "target").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_job_that_runs_has_no_record_yet(record: JobRecord, tmp_path: Path) -> None:
    handle = JobHandle(replace(record, state="running", ended=None))
    with pytest.raises(BadInputError, match=f"job {record.id} has not ended"):
        write_bundle(handle, cast(ReportDocument, None), tmp_path / "job.tar.gz")
    assert not (tmp_path / "job.tar.gz").exists()


def test_what_looks_secret_stays_out_of_every_file(record: JobRecord, tmp_path: Path) -> None:
    done = report(record.id, "--bundle", "job.tar.gz")
    assert "in job.tar.gz, without 2 values that may be secret" in done.stderr
    files = read(tmp_path / "job.tar.gz")
    assert not [name for name, data in files.items() if b"abc123" in data]
    assert b"export WANDB_API_KEY=LEFT-OUT\n./train --lr 0.1\n" in files[f"hpclaunch-{record.id}/job.sh"]


@in_one_test(
    "text, expected",
    [
        ("export HF_TOKEN='a b'; run", "export HF_TOKEN='LEFT-OUT'; run"),
        ("--env HF_TOKEN=s3 --lr 1", "--env HF_TOKEN=LEFT-OUT --lr 1"),
        ("train --api-key s3 --epochs 2", "train --api-key LEFT-OUT --epochs 2"),
        ("train --api-key=s3", "train --api-key=LEFT-OUT"),
        ('{"db_password": "s3", "n": 1}', '{"db_password": "LEFT-OUT", "n": 1}'),
        ('["--token",\n    "s3",\n    "--lr"]', '["--token",\n    "LEFT-OUT",\n    "--lr"]'),
        ("train --token \\\n  s3 --lr 1", "train --token \\\n  LEFT-OUT --lr 1"),
        ("train '--db-password' 's 3' -x", "train '--db-password' 'LEFT-OUT' -x"),
        ('["train", "--token", "s3", "--lr", "1"]', '["train", "--token", "LEFT-OUT", "--lr", "1"]'),
        ("git clone https://me:s3@host/x", "git clone https://LEFT-OUT@host/x"),
        ("MAX_TOKENS=5 TOKENIZERS_PARALLELISM=false", "MAX_TOKENS=5 TOKENIZERS_PARALLELISM=false"),
        ("ssh://git@host:22/x --lr=0.1", "ssh://git@host:22/x --lr=0.1"),
        ("ACCESS_KEY=", "ACCESS_KEY="),
    ],
)
def test_secrets_are_known_by_their_names(text: str, expected: str) -> None:
    assert without_secrets(text)[0] == expected
    assert without_secrets(text)[1] == (text != expected)
