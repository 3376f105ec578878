"""Real trainings with a fault put in: each is named, and the same training without it names no rank."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from tests.train.mpirun import run_ranks

pytestmark = pytest.mark.mpi
OPTIONS = ("--dataset", "synthetic", "--epochs", "1", "--batch-size", "200", "--no-prefetch")


def summary(*words: str | Path) -> Any:
    answer = CliRunner().invoke(program, ["timeline", *map(str, words), "--json"], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def first_of(folder: Path, kind: str, slow: str, seconds: float) -> Any:
    """The first verdict on a run of our runner on three ranks."""
    path = folder / "timeline.json"
    fault = (sys.executable, "-m", "tests.timeline.ranks.late", kind, slow, str(seconds))
    done = run_ranks(3, *fault, *OPTIONS, "--timeline", path, "--timeline-ranks", "all")
    assert done.returncode == 0, done.stdout + done.stderr
    return summary(path)["verdicts"][0]


def test_the_runner_without_a_fault_names_no_rank(tmp_path: Path) -> None:
    assert first_of(tmp_path, "computing", "0", 0.0)["kind"] != "straggler"


@pytest.mark.parametrize("kind", ["computing", "input"])
def test_a_rank_of_the_runner_that_sleeps_is_named_with_what_takes_its_time(
    kind: str, tmp_path: Path
) -> None:
    found = first_of(tmp_path, kind, "2", 0.05)
    assert (found["kind"], found["rank"]) == ("straggler", 2)
    assert ("input" if kind == "input" else "computing") in found["evidence"].rpartition(";")[2]
    assert 40 < found["late_ms"] < 90


def test_slow_input_on_all_ranks_of_the_runner_is_input(tmp_path: Path) -> None:
    assert first_of(tmp_path, "input", "all", 0.05)["kind"] == "input"


def test_a_jobs_timeline_is_found_and_its_ranks_have_their_node(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["submit", "--site", "local", "--tasks", "2", "--wait", "mnist", "--", "--timeline", "t.json"]
    words += ["--timeline-ranks", "all", "--dataset", "synthetic", "--epochs", "1"]
    assert CliRunner().invoke(program, words).exit_code == 0
    found = summary("last", "--html", "page.html")
    assert (found["ranks"], Path(found["files"][0]["file"]).name) == (2, "t.json")
    assert {rank["node"] for rank in found["by_rank"]} == {socket.gethostname()}
    assert found["job"] in (tmp_path / "page.html").read_text()


def test_a_job_without_a_timeline_is_told_how_to_get_one(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(program, ["submit", "--site", "local", "--wait", "--", "true"]).exit_code == 0
    answer = CliRunner().invoke(program, ["timeline", "last"])
    assert answer.exit_code == 3
    assert "no timeline is in" in answer.output
