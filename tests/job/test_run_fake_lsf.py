"""Jobs on a fake LSF, which really runs the scripts: from submission to exit code, log and binding report."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.refresh import refresh
from hpclaunch.job.store import Store
from hpclaunch.job.submission import recover
from hpclaunch.scheduler.registry import get_scheduler
from tests.own_process import hpclaunch
from tests.testbed.kit import contract_script, fake_on_path, new_record, submit

pytestmark = pytest.mark.slow

VENV = Path(sys.executable).parent
HOST, LSF = LocalHost(), get_scheduler("lsf")


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the fake LSF on PATH, with the MPI of the tests, and return its home folder."""
    return fake_on_path("lsf", tmp_path, monkeypatch, VENV)


def run(*words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    answer = hpclaunch("submit", "--site", "generic-lsf", "--time", "5m", "--wait", "--json", *words)
    return answer, json.loads(answer.stdout) if answer.stdout else {}


@pytest.mark.mpi
def test_from_submission_to_result_log_and_binding_report(tmp_path: Path) -> None:
    assert hpclaunch("sites", "new", "here", "--extends", "generic-lsf").returncode == 0
    program = 'echo "rank $RANK of $WORLD_SIZE"; echo "{\\"ok\\": true}" > "$HPCLAUNCH_RESULT_FILE"'
    usual = ("--site", "here", "--tasks-per-node", "2", "--time", "5m")
    answer = hpclaunch("submit", *usual, "--wait", "--json", "--", "bash", "-c", program)
    document = json.loads(answer.stdout)
    assert answer.returncode == 0, answer.stderr
    assert (document["state"], document["exit_code"], document["result"]) == ("done", 0, {"ok": True})
    log = hpclaunch("logs", "last").stdout
    assert {"rank 0 of 2", "rank 1 of 2"} <= set(log.splitlines())
    assert "Successfully completed" not in log  # LSF's own report has its own file
    verified = json.loads(hpclaunch("verify", "last", "--json").stdout)
    assert verified["ok"]
    assert [rank["verdict"] for rank in verified["ranks"]] == ["ok", "ok"]


@pytest.mark.mpi
def test_a_failed_job_a_refused_one_and_one_over_its_walltime(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, document = run("--", "bash", "-c", "exit 3")
    assert (answer.returncode, document["state"], document["exit_code"]) == (1, "failed", 3)
    assert "the script ended with exit status 3" in answer.stderr
    answer, _ = run("--queue", "nosuch", "--", "true")
    assert answer.returncode == 4
    assert "nosuch: No such queue. Job not submitted." in answer.stderr
    monkeypatch.setenv("FAKE_LSF_MINUTE_S", "0.2")
    answer, document = run("--", "sleep", "60")
    assert (answer.returncode, document["state"]) == (1, "failed")
    assert "it reached its walltime" in answer.stderr


@pytest.mark.mpi
def test_an_array_after_another_job() -> None:
    show = 'echo "index $HPCLAUNCH_ARRAY_INDEX"; exit $((HPCLAUNCH_ARRAY_INDEX - 1))'
    first = hpclaunch("submit", "--site", "generic-lsf", "--time", "5m", "--json", "--", "sleep", "1")
    before = json.loads(first.stdout)["id"]
    answer, document = run("--array", "1-2", "--after", before, "--", "bash", "-c", show)
    assert (answer.returncode, document["state"]) == (1, "failed")
    assert {"index 1", "index 2"} <= {line.partition("] ")[2] or line for line in answer.stderr.splitlines()}
    assert json.loads(hpclaunch("status", before, "--json").stdout)["state"] == "done"


def test_a_job_is_followed_and_cancelled(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    record = submit(store, "lsf", "echo started; sleep 1000", tmp_path)
    assert (record.state, record.scheduler_id) == ("queued", "1")
    until = time.monotonic() + 60
    while record.state != "running" and time.monotonic() < until:
        record = refresh(store, HOST, record)
    assert record.state == "running"
    LSF.parse_cancel(HOST.run(LSF.cancel_command("1")))
    while record.state == "running" and time.monotonic() < until:
        record = refresh(store, HOST, record)
    assert (record.state, record.exit_code) == ("cancelled", 130)
    LSF.parse_cancel(HOST.run(LSF.cancel_command("1")))  # it has ended already
    assert "TERM_OWNER" in (Path(record.folder) / "lsf.log").read_text()


def test_an_lsf_without_reasons_and_one_that_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Path
) -> None:
    store = Store(tmp_path / "state")
    for variable, value in (("FAKE_LSF_OLD", "1"), ("FAKE_LSF_HISTORY", "0")):
        monkeypatch.setenv(variable, value)
        record = submit(store, "lsf", "exit 5", tmp_path)
        until = time.monotonic() + 60
        while record.state in ("queued", "running") and time.monotonic() < until:
            record = refresh(store, HOST, record)
        assert (record.state, record.exit_code) == ("failed", 5)


def test_a_submission_that_was_cut_off_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    records = [submit(store, "lsf", "true", tmp_path) for _ in range(2)]
    for record in records:
        for name in ("exit_code", "stdout"):
            (Path(record.folder) / "submission" / name).unlink()
        assert recover(HOST, LSF, f"{record.folder}/job.sh", record.folder) == record.scheduler_id


def test_the_script_s_name_is_given_where_nodes_are_requested(tmp_path: Path) -> None:
    """As on Summit: there bsub does not take the script from stdin."""
    record = new_record(Store(tmp_path / "state"), "lsf", tmp_path)
    script = tmp_path / "job.sh"
    script.write_text(contract_script(record, "true", ["#BSUB -nnodes 2", "#BSUB -W 0:05"]))
    assert LSF.parse_submit(HOST.run(LSF.submit_command(str(script)), cwd=str(tmp_path))) == "1"


def test_a_missing_bsub_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    answer = hpclaunch("submit", "--site", "generic-lsf", "--", "true")
    assert (answer.returncode, answer.stdout) == (4, "")
    assert "bsub: no such program" in answer.stderr
