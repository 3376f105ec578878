"""What a run shows while it goes, and what its log of events contains."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.train.progress_display import Progress, TerminalBar, progress_file
from hpclaunch.train.run_errors import BadRequestError
from hpclaunch.train.run_report import EventLog, Reporter
from tests.in_one_test import in_one_test
from tests.train.interrupted import killed
from tests.train.live_terminal import TRAINING, check_live, run_on_terminal
from tests.train.mpirun import ROOT, RUNNER, environment, mpiexec, run_ranks, train

FACTS = {
    "epoch": 2,
    "step": 17,
    "images_per_s": 12_345.6,
    "loss": 0.5,
    "accuracy": 0.9,
    "communication_share": 0.12,
}


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_gets_plain_lines() -> None:
    stream = io.StringIO()
    report = Reporter(stream, speaks=True)
    report.advance("2/3", 0.4, 4, 1.5)
    report.step("2/3", "7/10", 0.7, FACTS)
    assert stream.getvalue() == (
        "epoch 2/3  step 7/10  12,346 images/s  loss 0.5000  accuracy 0.9000  communication 12%\n"
    )


@in_one_test("columns", [80, 100, 200])
def test_a_terminal_gets_a_bar_that_fits(columns: int) -> None:
    stream = io.StringIO()
    report = Reporter(stream, speaks=True, bar=TerminalBar(stream, columns))
    report.step("2/3", "7/10", 0.5, FACTS)
    text = stream.getvalue()
    assert text.startswith("\repoch 2/3 [#")
    assert len(text) == columns, "the return, and one column less than there are"
    assert text.endswith("]  50%  12,346 images/s  loss 0.5000  acc 0.9000  comm 12%")
    bar = text[text.index("[") + 1 : text.index("]")]
    assert bar.count("#") == round(len(bar) / 2)
    report.line("done")
    assert stream.getvalue().endswith("\r" + " " * (columns - 1) + "\rdone\n"), "the bar is wiped away"


def test_other_ranks_are_silent() -> None:
    stream = io.StringIO()
    report = Reporter(stream, speaks=False, bar=TerminalBar(stream))
    report.line("x")
    report.advance("1/1", 0.5, 1, 0.5)
    report.step("1/1", "1/1", 1.0, FACTS)
    assert stream.getvalue() == ""


@pytest.mark.mpi
def test_a_terminal_shows_the_bar_while_an_epoch_goes_on() -> None:
    check_live(run_on_terminal([sys.executable, *TRAINING], environment()))


@pytest.mark.mpi
def test_what_passes_through_a_launcher_is_plain_lines(digits: Path) -> None:
    command = [mpiexec(), "-n", "2", *RUNNER, "--data", str(digits), "--epochs", "2"]
    shown = run_on_terminal(command, environment())
    assert shown.status == 0, shown.text
    assert "\repoch" not in shown.text
    assert "epoch 2/2  step " in shown.text


@pytest.mark.mpi
def test_at_most_ten_plain_lines_per_epoch(digits: Path) -> None:
    """19 steps per epoch."""
    done = run_ranks(2, *RUNNER, "--data", digits, "--epochs", "2", "--batch-size", "8")
    assert done.returncode == 0, done.stderr
    for epoch in (1, 2):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"epoch {epoch}/2  step ")]
        assert 5 <= len(lines) <= 10
        assert lines[0].split()[3].endswith("/19")


def test_progress_goes_to_a_file_that_another_process_reads(tmp_path: Path) -> None:
    file = progress_file({"HPCLAUNCH_JOB_FOLDER": str(tmp_path)})
    report = Reporter(io.StringIO(), speaks=True, file=file)
    report.advance("2/3", 0.25, 12, 3.5)
    first = json.loads((tmp_path / "progress.json").read_text())
    assert (first["label"], first["share"], first["figures"]) == ("epoch 2/3", 0.25, "")
    assert (first["step"], first["seconds"]) == (12, 3.5)
    report.advance("2/3", 0.26, 13, 3.6)
    assert json.loads((tmp_path / "progress.json").read_text())["share"] == 0.25, "not at every step"
    report.step("2/3", "7/10", 0.5, FACTS)
    second = json.loads((tmp_path / "progress.json").read_text())
    assert second["figures"] == "12,346 images/s  loss 0.5000  acc 0.9000  comm 12%"
    assert progress_file({}) is None


def test_a_run_that_follows_one_that_was_killed_counts_its_lost_work(tmp_path: Path) -> None:
    def goes_on(step: int, seconds: float, *, killed_at_once: bool = False) -> str:
        stream = io.StringIO()
        report = Reporter(stream, speaks=True, file=progress_file({"HPCLAUNCH_JOB_FOLDER": str(tmp_path)}))
        report.goes_on_after(step, seconds)
        if not killed_at_once:
            report.advance("1/3", 0.5, 134, 13.45)
        return stream.getvalue()

    assert goes_on(0, 0.0) == "", "the first run"
    assert "lost: 14 step(s), 1.4 s of training" in goes_on(120, 12.0, killed_at_once=True)
    assert goes_on(120, 12.0) == "", "nothing is counted twice"
    assert goes_on(135, 13.5) == "", "its checkpoint is newer than its last progress"
    assert "after its start" in goes_on(0, 0.0)
    lines = [json.loads(line) for line in (tmp_path / "lost_work").read_text().splitlines()]
    assert lines == [
        {"from_step": 120, "steps": 14, "seconds": 1.45},
        {"from_step": 135, "steps": 0, "seconds": 0.0},
        {"from_step": 0, "steps": 134, "seconds": 13.45},
    ]
    (tmp_path / "progress.json").write_text('{"step": 13')
    assert goes_on(3, 0.0) == "", "a cut file tells nothing"


def test_a_progress_file_that_cannot_be_written_is_given_up(tmp_path: Path) -> None:
    file = progress_file({"HPCLAUNCH_JOB_FOLDER": str(tmp_path / "missing")})
    assert file is not None
    file.show(Progress("epoch 1/1", 0.5, ""), at_once=True)
    file.show(Progress("epoch 1/1", 0.6, ""), at_once=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.mpi
def test_events_are_those_of_the_run(digits: Path, tmp_path: Path) -> None:
    log = tmp_path / "new" / "events.jsonl"
    result = train(
        2,
        *("--data", digits, "--epochs", "2", "--batch-size", "20", "--log-json", log),
        *("--checkpoint-dir", tmp_path, "--checkpoint-every", "5"),
    )
    found = events(log)
    by_kind = {kind: [e for e in found if e["event"] == kind] for kind in ("step", "epoch", "checkpoint")}
    assert [e["step"] for e in by_kind["step"]] == list(range(1, 17)), "as few steps are reported one by one"
    assert [e["epoch"] for e in by_kind["epoch"]] == [1, 2]
    history = [{key: e[key] for key in e.keys() - {"event", "time"}} for e in by_kind["epoch"]]
    assert history == result["history"]
    assert [e["step"] for e in by_kind["checkpoint"]] == [5, 8, 10, 15, 16]
    assert Path(by_kind["checkpoint"][-1]["path"]).exists()
    last = found[-1]
    assert last["event"] == "result"
    assert {key: last[key] for key in result} == result
    assert [e["time"] for e in found] == sorted(e["time"] for e in found)


@pytest.mark.mpi
def test_events_of_a_killed_run_are_whole_and_its_resume_goes_on_below(digits: Path, tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    options = (
        *("--data", digits, "--epochs", "14", "--batch-size", "4", "--log-json", log, "--resume"),
        *("--checkpoint-dir", tmp_path / "checkpoints"),
    )
    assert killed(2, 0.05, *options) != 0
    before = events(log)
    assert before[-1]["event"] != "result"
    with log.open("ab") as file:
        file.write(b'{"event": "st')  # what a kill in the middle of a write may leave
    train(2, *options)
    after = events(log)
    assert after[: len(before)] == before
    assert after[-1]["event"] == "result"


@pytest.mark.mpi
def test_an_error_is_the_last_event(digits: Path, tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text("of another run\n")
    done = run_ranks(2, *RUNNER, "--data", digits, "--batch-size", "10", "--lr", "1e8", "--log-json", log)
    assert done.returncode == 1
    last = events(log)[-1]
    assert last["event"] == "error"
    assert "the loss is not finite at step" in last["message"]


@pytest.mark.mpi
def test_a_log_that_cannot_be_written_is_refused_before_training(digits: Path, tmp_path: Path) -> None:
    done = run_ranks(2, *RUNNER, "--data", digits, "--log-json", tmp_path)
    assert done.returncode == 3
    assert done.stderr.count(f"--log-json {tmp_path}: cannot be written") == 1
    assert "epoch" not in done.stdout


FILL = """
import resource, signal, sys
from pathlib import Path
from hpclaunch.train.run_report import EventLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
log = EventLog(Path(sys.argv[1]), goes_on=False)
remarks = [log.write("step", {"number": number}) for number in range(100)]
print(*filter(None, remarks), sep="\\n")
"""


def test_a_full_disk_ends_the_log_with_a_whole_line_and_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    command = [sys.executable, "-c", FILL, str(path)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.count(f"--log-json {path}: ") == 1
    assert said.count("the run goes on without it") == 1
    found = events(path)
    assert [event["number"] for event in found] == list(range(len(found)))
    assert 0 < len(found) < 100


def test_a_log_in_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadRequestError, match="--log-json"):
        EventLog(tmp_path / "file" / "events.jsonl", goes_on=True)
