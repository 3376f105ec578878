"""Submitting exactly once: a scheduler that is slow, and Ctrl-C in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hpclaunch.job.submission
from hpclaunch.host.base import NoAnswerError
from hpclaunch.job.store import Store
from tests.testbed.kit import submit


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
