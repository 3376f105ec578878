"""The timelines of real jobs of the bundled training: a fault put in is named, and no rank without one."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from hpclaunch.job.store import Store
from tests.testbed.cluster import Slurm
from tests.timeline.faults import FAULTS, Fault, diagnosis, mistake

RUNNER = [fault for fault in FAULTS if fault.program == "runner"]


def summary(*words: str | Path) -> Any:
    answer = CliRunner().invoke(program, ["timeline", *map(str, words), "--json"], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


@pytest.mark.slurm
@pytest.mark.parametrize("fault", RUNNER, ids=lambda fault: fault.name)
def test_a_fault_on_two_nodes(fault: Fault, slurm: Slurm, tmp_path: Path) -> None:
    found = diagnosis(fault, tmp_path, {**os.environ, "SLURM_CONF": str(slurm.conf)})
    assert mistake(fault, found) == ""
    assert (found["ranks"], found["steps"]) == (4, fault.steps)
    assert "start" not in [verdict["kind"] for verdict in found["verdicts"]]


@pytest.mark.mpi
def test_a_jobs_timeline_is_found_and_its_ranks_have_their_node(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["submit", "--site", "local", "--tasks", "2", "--wait", "mnist", "--", "--timeline", "t.json"]
    words += ["--timeline-ranks", "all", "--dataset", "synthetic", "--epochs", "1"]
    assert CliRunner().invoke(program, words).exit_code == 0
    found = summary("last", "--html", "page.html")
    assert (found["ranks"], Path(found["files"][0]["file"]).name) == (2, "t.json")
    assert {rank["node"] for rank in found["by_rank"]} == {socket.gethostname()}
    assert found["job"] in (tmp_path / "page.html").read_text()


@pytest.mark.mpi
def test_a_program_without_a_hook_runs_as_it_is_and_the_summary_says_why_there_is_none(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('trained')\n")
    words = ["submit", "--site", "local", "--profile", "3", "--wait", "--", sys.executable, "train.py"]
    trained = CliRunner().invoke(program, words)
    assert (trained.exit_code, "trained" in trained.output) == (0, True), trained.output
    answer = CliRunner().invoke(program, ["timeline", "last"])
    assert answer.exit_code == 3
    assert "--profile has recorded nothing" in answer.output
    assert "the program gives no hook" in answer.output


def test_of_a_job_that_runs_it_is_said_that_no_step_is_there_yet(tmp_path: Path, monkeypatch: Any) -> None:
    """Without a file, and with the file that Horovod has only opened."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import time\ntime.sleep(60)\n")
    words = ["submit", "--site", "local", "--profile", "3", "--no-wait", "--", sys.executable, "train.py"]
    assert CliRunner().invoke(program, words).exit_code == 0
    try:
        (record,) = Store().list()[0]
        for written in (None, "[\n"):
            if written:
                (Path(record.folder) / "timeline.json").write_text(written)
            answer = CliRunner().invoke(program, ["timeline", "last"])
            assert (answer.exit_code, "no step of it is in a timeline so far" in answer.output) == (3, True)
            assert "gives no hook" not in answer.output
    finally:
        CliRunner().invoke(program, ["cancel", "last"])
    answer = CliRunner().invoke(program, ["timeline", "last"])
    assert "no event of a timeline is in it" in answer.output


@pytest.mark.mpi
def test_a_job_without_a_timeline_is_told_how_to_get_one(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(program, ["submit", "--site", "local", "--wait", "--", "true"]).exit_code == 0
    answer = CliRunner().invoke(program, ["timeline", "last"])
    assert answer.exit_code == 3
    assert "no timeline is in" in answer.output
