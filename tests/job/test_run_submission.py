"""Submitting exactly once: a scheduler that is slow, and Ctrl-C in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import hpclaunch.job.submission
from hpclaunch.host.host_interface import NoAnswerError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.store import Store
from hpclaunch.job.submission import recover, submit_once
from hpclaunch.scheduler.registry import get_scheduler
from tests.testbed.kit import new_record, submit

pytestmark = pytest.mark.slow

FAKE_PBS = Path(__file__).parents[1] / "fakes" / "fake_pbs"


@pytest.fixture
def slow_qsub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a qsub on PATH that notes that it was asked, takes a while and prints an id; return its notes."""
    (tmp_path / "bin").mkdir()
    program, asked = tmp_path / "bin" / "qsub", tmp_path / "asked"
    program.write_text(f"#!/bin/bash\necho asked >> {asked}\nsleep 1\necho 7.server\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return asked


def test_no_answer_is_neither_tried_again_nor_called_a_failure(
    slow_qsub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hpclaunch.job.submission, "TIMEOUT_S", 0.3)
    store = Store(tmp_path / "state")
    with pytest.raises(NoAnswerError):
        submit(store, "pbs", "true", tmp_path)
    record = store.find("last")
    assert (record.state, record.scheduler_id) == ("created", None)
    assert "it may have been submitted or not" in (record.reason or "")
    assert slow_qsub.read_text() == "asked\n"


def test_ctrl_c_while_submitting_still_keeps_the_id(slow_qsub: Path, tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from hpclaunch.job.store import Store
from tests.testbed.kit import submit
submit(Store(Path({str(tmp_path / "state")!r})), "pbs", "true", Path({str(tmp_path)!r}))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.DEVNULL)
    while not slow_qsub.exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT
    record = Store(tmp_path / "state").find("last")
    assert (record.state, record.scheduler_id) == ("queued", "7.server")
    assert (Path(record.folder) / "job.sh").read_text().startswith("#!/bin/bash\n")


def test_two_who_submit_the_same_at_once_make_one_job(slow_qsub: Path, tmp_path: Path) -> None:
    record = new_record(Store(tmp_path / "state"), "pbs", tmp_path)
    ask = partial(submit_once, LocalHost(), get_scheduler("pbs"), "job.sh", record.folder, record.workdir)
    with ThreadPoolExecutor() as pool:
        ids = [future.result() for future in [pool.submit(ask) for _ in range(3)]]
    assert ids == ["7.server"] * 3
    assert slow_qsub.read_text() == "asked\n"


def test_a_slow_answer_is_found_by_asking_for_the_status(
    slow_qsub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, pbs = Store(tmp_path / "state"), get_scheduler("pbs")
    with monkeypatch.context() as patch:
        patch.setattr(hpclaunch.job.submission, "TIMEOUT_S", 0.2)
        with pytest.raises(NoAnswerError):
            submit(store, "pbs", "true", tmp_path)
    record = store.find("last")
    while not (Path(record.folder) / "submission" / "exit_code").exists():
        time.sleep(0.02)
    script = f"{record.folder}/job.sh"
    assert recover(LocalHost(), pbs, script, record.folder) == "7.server"
    assert slow_qsub.read_text() == "asked\n"


def test_a_job_whose_qsub_was_killed_is_found_by_its_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fake pbs").mkdir()
    (tmp_path / "fake pbs" / "stopped").touch()
    monkeypatch.setenv("FAKE_PBS_HOME", str(tmp_path / "fake pbs"))
    monkeypatch.setenv("PATH", f"{FAKE_PBS}:{os.environ['PATH']}")
    store, pbs, host = Store(tmp_path / "state"), get_scheduler("pbs"), LocalHost()
    records = [submit(store, "pbs", "true", tmp_path) for _ in range(2)]
    for record in records:
        for name in ("exit_code", "stdout"):
            (Path(record.folder) / "submission" / name).unlink()
        found = recover(host, pbs, f"{record.folder}/job.sh", record.folder)
        assert found == record.scheduler_id
    unknown = tmp_path / "unknown"
    (unknown / "submission").mkdir(parents=True)
    with pytest.raises(NoAnswerError, match="qsub was cut off on this machine before it had answered"):
        recover(host, pbs, f"{unknown}/job.sh", str(unknown))
    (tmp_path / "fake pbs" / "down").touch()
    with pytest.raises(NoAnswerError, match="then: qstat gives no answer"):
        recover(host, pbs, f"{records[0].folder}/job.sh", records[0].folder)


def test_what_was_never_begun_is_told_from_what_was_cut_off(tmp_path: Path) -> None:
    for kind in ("pbs", "slurm", "local"):
        assert recover(LocalHost(), get_scheduler(kind), f"{tmp_path}/job.sh", str(tmp_path)) is None
    (tmp_path / "submission").mkdir()
    with pytest.raises(NoAnswerError, match="setsid was cut off"):
        recover(LocalHost(), get_scheduler("local"), f"{tmp_path}/job.sh", str(tmp_path))
