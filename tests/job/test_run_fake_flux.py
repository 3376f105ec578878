"""Jobs on a fake Flux, which really runs the scripts: their exit codes, logs and binding reports.

test_real_flux.py runs those without a ``server`` on a real one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.errors import RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.refresh import refresh
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from tests.own_process import hpclaunch
from tests.testbed.kit import fake_on_path, submit

pytestmark = pytest.mark.slow

HOST, FLUX = LocalHost(), get_scheduler("flux")


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the fake Flux on PATH and return its home folder."""
    return fake_on_path("flux", tmp_path, monkeypatch)


def run(*words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    answer = hpclaunch("submit", "--site", "generic-flux", "--time", "5m", "--wait", "--json", *words)
    return answer, json.loads(answer.stdout) if answer.stdout else {}


def test_from_submission_to_result_log_and_binding_report(server: Path) -> None:
    assert hpclaunch("sites", "new", "here", "--extends", "generic-flux").returncode == 0
    program = 'echo "rank $RANK of $WORLD_SIZE, port $MASTER_PORT"; echo "{}" > "$HPCLAUNCH_RESULT_FILE"'
    usual = ("--site", "here", "--tasks-per-node", "2", "--time", "5m", "--preflight")
    answer = hpclaunch("submit", *usual, "--wait", "--json", "--", "bash", "-c", program)
    document = json.loads(answer.stdout)
    assert answer.returncode == 0, answer.stderr
    assert (document["state"], document["exit_code"], document["result"]) == ("done", 0, {})
    log = hpclaunch("logs", "last").stdout
    ranks = sorted(line.partition(", port ") for line in log.splitlines() if line.startswith("rank "))
    assert [rank[0] for rank in ranks] == ["rank 0 of 2", "rank 1 of 2"]
    assert {10000 <= int(rank[2]) < 20000 for rank in ranks} == {True}
    verified = json.loads(hpclaunch("verify", "last", "--json").stdout)
    assert verified["ok"]
    assert [rank["verdict"] for rank in verified["ranks"]] == ["ok", "ok"]
    assert "cpu-affinity=off gpu-affinity=off" in (server / "flux-run.log").read_text().splitlines()[-1]


def test_a_failed_job_and_a_refused_one() -> None:
    answer, document = run("--tasks-per-node", "2", "--", "bash", "-c", 'exit "$((RANK * 3))"')
    assert (answer.returncode, document["state"], document["exit_code"]) == (1, "failed", 3)
    assert "the script ended with exit status 3; first failure reported: rank 1 on " in answer.stderr
    answer, _ = run("--queue", "nosuch", "--", "true")
    assert answer.returncode == 4
    assert "'nosuch' is not a valid queue" in answer.stderr


def test_the_last_words_of_a_failing_rank_arrive_and_the_others_are_ended() -> None:
    """Flux ends a job at the failure of the first rank that ends, and drops what it has not passed on."""
    error = "ModuleNotFoundError: No module named 'foo'"
    fails = f'[ "$RANK" != 1 ] || {{ echo "{error}" >&2; exit 7; }}; exec sleep 100'
    for first in ("", '[ "$RANK" != 0 ] || exit 0; sleep 1; '):  # a rank that is done is not the job's end
        ranks = str(
            min(3, max(2, len(os.sched_getaffinity(0))))
        )  # a real Flux refuses more than it has cores
        answer, document = run("--tasks-per-node", ranks, "--", "bash", "-c", first + fails)
        assert (answer.returncode, document["state"]) == (1, "failed")
        failure = document["failure"]
        assert (failure["rank"], failure["exit_code"]) == ("1", 7)
        assert failure["lines"] == [error]


def test_each_rank_has_its_own_cores() -> None:
    answer, _ = run("--tasks-per-node", "2", "--", "grep", "Cpus_allowed_list", "/proc/self/status")
    assert answer.returncode == 0, answer.stderr
    lines = [line for line in hpclaunch("logs", "last").stdout.splitlines() if line.startswith("Cpus_")]
    assert len(set(lines)) == 2, lines


def test_a_job_over_its_walltime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FLUX_SPEED", "200")
    answer, document = run("--", "sleep", "60")
    assert (answer.returncode, document["state"]) == (1, "failed")
    assert "it reached its walltime" in answer.stderr


def test_a_job_after_another() -> None:
    first = hpclaunch("submit", "--site", "generic-flux", "--time", "5m", "--json", "--", "sleep", "1")
    before = json.loads(first.stdout)["id"]
    answer, document = run("--after", before, "--", "true")
    assert (answer.returncode, document["state"]) == (0, "done"), answer.stderr
    assert json.loads(hpclaunch("status", before, "--json").stdout)["state"] == "done"


def test_a_job_is_followed_and_cancelled(tmp_path: Path, server: Path) -> None:
    store = Store(tmp_path / "state")
    record = submit(store, "flux", "trap 'exit 129' HUP; echo started; sleep 1000 & wait", tmp_path)
    assert (record.state, (record.scheduler_id or "")[:1]) == ("queued", "f")
    until = time.monotonic() + 60
    while record.state != "running" and time.monotonic() < until:
        record = refresh(store, HOST, record)
    assert record.state == "running"
    assert record.started is not None
    (server / "down").touch()
    with pytest.raises(RefusedError, match="Unable to connect to Flux"):
        refresh(store, HOST, record)
    (server / "down").unlink()
    while not (Path(record.folder) / "out.log").read_text():
        time.sleep(0.02)
    FLUX.parse_cancel(HOST.run(FLUX.cancel_command(record.scheduler_id or "")))
    while record.state == "running" and time.monotonic() < until:
        record = refresh(store, HOST, record)
    assert (record.state, record.exit_code) == ("cancelled", 143)
    status = Path(record.folder) / "exit_status"
    while not status.exists() and time.monotonic() < until:  # the script writes it when Flux has signalled it
        time.sleep(0.02)
    assert status.read_text() in ("129\n", "143\n")
    FLUX.parse_cancel(HOST.run(FLUX.cancel_command(record.scheduler_id or "")))  # it has ended already


def test_a_flux_that_forgets_leaves_it_to_the_exit_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FLUX_HISTORY", "0")
    store = Store(tmp_path / "state")
    records = [submit(store, "flux", f"exit {code}", tmp_path) for code in (5, 6)]
    until = time.monotonic() + 60
    for record, code in zip(records, (5, 6), strict=True):
        now = record
        while now.state in ("queued", "running") and time.monotonic() < until:
            now = refresh(store, HOST, now)
        assert (now.state, now.exit_code) == ("failed", code)


def test_a_missing_flux_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    answer = hpclaunch("submit", "--site", "generic-flux", "--", "true")
    assert (answer.returncode, answer.stdout) == (4, "")
    assert "flux: no such program" in answer.stderr


def test_a_job_comes_back_after_a_checkpoint_and_writes_on_in_its_log() -> None:
    program = 'echo "run $HPCLAUNCH_RESTART of rank $RANK"; [ "$HPCLAUNCH_RESTART" = 2 ] || exit 85'
    answer, document = run("--max-restarts", "3", "--tasks-per-node", "2", "--", "bash", "-c", program)
    assert (answer.returncode, document["state"], document["restarts"]) == (0, "done", 2), answer.stderr
    log = [line for line in hpclaunch("logs", "last").stdout.splitlines() if line.startswith("run ")]
    assert sorted(log) == [f"run {again} of rank {rank}" for again in range(3) for rank in range(2)]


def test_a_running_job_is_looked_into() -> None:
    words = (
        "--time",
        "5m",
        "--tasks-per-node",
        "2",
        "--",
        "python3",
        "-c",
        "import time; time.sleep(100)",
    )
    job = json.loads(hpclaunch("submit", "--site", "generic-flux", "--json", *words).stdout)
    until = time.monotonic() + 60
    while "2 of 2 in sleep()" not in (stacks := hpclaunch("stacks", job["id"])).stdout:
        assert time.monotonic() < until, stacks
        time.sleep(0.5)
    attach = ("verify", "--site", "generic-flux", "--json", "--attach")
    for name in (job["scheduler_id"], job["id"], "last"):
        looked = json.loads(hpclaunch(*attach, name).stdout)
        assert [rank["verdict"] for rank in looked["ranks"]] == ["ok", "ok"]
    assert "is not an id of Flux" in hpclaunch(*attach, "no such").stderr
    assert hpclaunch("verify", "--attach", job["id"]).returncode == 0  # of its own site
    assert hpclaunch("cancel", job["id"]).returncode == 0
    assert hpclaunch("wait", job["id"]).returncode == 1
    assert "is CANCELED, so it has no ranks" in hpclaunch(*attach, job["id"]).stderr


def test_an_array_is_a_job_for_each_index() -> None:
    program = 'echo "job $HPCLAUNCH_ARRAY_INDEX of rank $RANK"; exit "$((HPCLAUNCH_ARRAY_INDEX == 3))"'
    answer, document = run("--array", "1-5:2,8", "--", "bash", "-c", program)
    assert (answer.returncode, document["state"]) == (1, "failed"), answer.stderr
    states = {index: job["state"] for index, job in document["array"].items()}
    assert states == {"1": "done", "3": "failed", "5": "done", "8": "done"}
    assert "job 5 of rank 0" in hpclaunch("logs", "last").stdout


def test_an_array_is_cancelled() -> None:
    words = ("--site", "generic-flux", "--time", "5m", "--array", "0-2", "--json", "--", "sleep", "100")
    job = json.loads(hpclaunch("submit", *words).stdout)["id"]
    assert hpclaunch("cancel", job).returncode == 0
    assert hpclaunch("wait", job).returncode == 1
    states = json.loads(hpclaunch("status", job, "--json").stdout)["array"]
    assert [one["state"] for one in states.values()] == ["cancelled"] * 3


@pytest.mark.parametrize("whole", [False, True])
def test_an_array_whose_submission_is_killed_is_there_as_a_whole_or_not_at_all(whole: bool) -> None:
    """The answers of flux batch are lost at the kill: before all jobs are there, and after."""
    words = ("submit", "--site", "generic-flux", "--time", "5m", "--array", "0-5", "--", "sleep", "100")
    flux = ["flux", "jobs", "-n", "-o", "{id.f58plain}"]
    before = len(subprocess.run([*flux, "--filter=pending"], capture_output=True, text=True).stdout.split())
    with subprocess.Popen([sys.executable, "-m", "hpclaunch", *words], start_new_session=True) as submitting:
        store, until = Store(), time.monotonic() + 60
        while not (tokens := list(store.jobs.glob("*/submission/array" + ".new" * (not whole)))):
            assert time.monotonic() < until
            time.sleep(0.01)
        job = tokens[0].parents[1]
        listing = ["ps", "-e", "-o", "pid=", "-o", "args="]
        for line in subprocess.run(listing, capture_output=True, text=True).stdout.splitlines():
            if f"submit {job}/job.sh" in line:
                os.kill(int(line.split()[0]), signal.SIGKILL)
        os.killpg(submitting.pid, signal.SIGKILL)
    status = json.loads(hpclaunch("status", job.name, "--json").stdout)
    jobs = [one["state"] for one in status["array"].values()]
    if status["state"] == "failed":
        assert "none has run" in status["reason"]
        pending = subprocess.run([*flux, "--filter=pending"], capture_output=True, text=True).stdout.split()
        while len(pending) > before and time.monotonic() < until:
            pending = subprocess.run(
                [*flux, "--filter=pending"], capture_output=True, text=True
            ).stdout.split()
        assert len(pending) == before
    else:
        assert set(jobs) <= {"queued", "running"}
        assert len(status["scheduler_id"].split(".")) == 6
    hpclaunch("cancel", job.name)
