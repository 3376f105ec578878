"""The command: folders, jobs, repair, merge, the page, messages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from hpclaunch.cli.main import program
from hpclaunch.job.record import ArrayJob, Failure
from hpclaunch.job.store import Store
from tests.testbed.kit import new_record
from tests.timeline.made_timelines import Training, always, each, horovod, kineto, runner

RECORDED = Path(__file__).parents[1] / "data" / "timelines"


def timeline(*words: str | Path) -> Result:
    return CliRunner().invoke(program, ["timeline", *map(str, words)], catch_exceptions=False)


def document(*words: str | Path) -> Any:
    answer = timeline(*words, "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder with the traces of four ranks and another file; rank 2 is slow, and the clocks differ."""
    folder = tmp_path / "traces"
    folder.mkdir()
    training = Training(slow_computing=always(2, 50.0))
    for rank, trace in enumerate(kineto(training, clock_ms=1500.0)):
        (folder / f"trace-rank{rank}.json").write_bytes(trace)
    (folder / "settings.json").write_text('{"lr": 0.1}')
    return folder


def test_text_says_the_verdict_with_evidence_and_remedy() -> None:
    answer = timeline(RECORDED / "nocache-slow-rank1.json")
    assert answer.exit_code == 0
    assert (
        "verdict: straggler: rank 1 comes last in 24 of 24 steps, 103 ms (95 % of the bootstrap: 9"
        in answer.stdout
    )
    assert re.search(r"^ *59.2 %  waiting$", answer.stdout, re.MULTILINE)


def test_a_folder_is_read_and_what_is_no_timeline_is_left_out_with_a_note(traces: Path) -> None:
    answer = timeline(traces, "--json")
    found = json.loads(answer.stdout)
    assert (len(found["files"]), found["ranks"], found["steps"]) == (4, 4, 40)
    assert (found["verdicts"][0]["rank"], found["verdicts"][0]["node"]) == (2, "n1")
    assert "left out" in answer.stderr
    assert "settings.json" in answer.stderr


def test_two_timelines_of_the_same_rank_are_refused(tmp_path: Path) -> None:
    shutil.copy(RECORDED / "slow-rank1-input.json", tmp_path)
    answer = timeline(RECORDED / "nocache-slow-rank1.json", tmp_path / "slow-rank1-input.json")
    assert answer.exit_code == 3
    assert "are both of rank 0" in answer.output


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", "hello", "x.json: not a trace"),
        ("x.json", "[]", "no event of a timeline"),
        ("x.json", '[{"ph": "B"}, 3, {"ts": "x", "ph": "E", "pid": []}]', "no event of a timeline"),
        (None, "", "there is no such file"),
    ],
)
def test_what_cannot_be_read_is_one_message(name: str | None, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    if name:
        path.write_text(text)
    answer = timeline(path)
    assert answer.exit_code == 3
    assert said in answer.output


@pytest.mark.parametrize("bad", ["1e999", "NaN", "-Infinity", '"x"', "null"])
def test_a_time_that_is_none_costs_only_its_event(bad: str, tmp_path: Path) -> None:
    path, text = tmp_path / "x.json", (RECORDED / "nocache-slow-rank1.json").read_text()
    path.write_text(re.sub(r'("ts": )\d+', rf"\g<1>{bad}", text, count=40))
    (verdict,) = json.loads(timeline(path, "--json").stdout)["verdicts"][:1]
    assert (verdict["kind"], verdict["rank"]) == ("straggler", 1)


def test_a_rank_that_failed_by_the_jobs_output_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Horovod over Gloo shuts down at once where a rank ends while all compute: a timeline tells nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = Store()
    record = new_record(store, "local", tmp_path)
    store.save(replace(record, state="failed", failure=Failure(rank="2")))
    Path(record.folder, "job.sh").touch()
    Path(record.folder, "t.json").write_bytes(horovod(Training(ranks=3), cache=False))
    ended = document("last")["verdicts"][0]
    assert (ended["kind"], ended["rank"]) == ("ended", 2)
    assert "the job's output says so" in ended["evidence"]
    store.save(replace(record, state="failed", failure=Failure(rank="1-2")))
    assert "ended" not in {verdict["kind"] for verdict in document("last")["verdicts"]}


def test_each_job_of_an_array_has_its_own_timelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = Store()
    record = new_record(store, "slurm", tmp_path)
    store.save(replace(record, array={1: ArrayJob(state="done"), 2: ArrayJob(state="done")}))
    Path(record.folder, "job.sh").touch()
    for index in (1, 2):
        folder = Path(record.folder, str(index))
        (folder / "places").mkdir(parents=True)
        (folder / "places" / f"n{index}").write_text("0\n1\n2\n3\n")
        (folder / "t.json").write_bytes(runner(Training(slow_computing=always(index, 50.0))))
    for index in (1, 2):
        verdict = document("last", "--index", str(index))["verdicts"][0]
        assert (verdict["kind"], verdict["rank"], verdict["node"]) == ("straggler", index, f"n{index}")
    assert f"{record.id} --index 1" in timeline("last").stderr
    assert "has no index 3" in timeline("last", "--index", "3").stderr
    assert timeline(RECORDED / "nocache-slow-rank1.json", "--index", "1").exit_code == 2


def test_a_merged_trace_has_all_ranks_by_one_clock(traces: Path, tmp_path: Path) -> None:
    """Clocks were 1.5 s apart from rank to rank; the ends of a collective are at the same time again."""
    merged = tmp_path / "merged.json"
    assert timeline(traces, "--merge", merged).exit_code == 0
    events = json.loads(merged.read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event.get("name") == "process_name"]
    assert len({event["pid"] for event in events}) == 4
    assert names == []  # these traces name no process; see the test of the runner's
    ends: dict[int, list[float]] = {}
    for event in events:
        if event["name"] == "gloo:all_reduce":
            ends.setdefault(event["pid"], []).append(event["ts"] + event["dur"])
    for moments in zip(*ends.values(), strict=True):
        assert max(moments) - min(moments) < 1
    assert min(moments) < 60e6


def test_a_merged_trace_is_not_taken_for_that_of_a_rank(traces: Path) -> None:
    """It may be in the folder of those that it was made of."""
    before = document(traces)
    assert timeline(traces, "--merge", traces / "all.json").exit_code == 0
    again = timeline(traces, "--json")
    assert json.loads(again.stdout) == before
    assert "all.json: it was written by --merge" in again.stderr
    assert timeline(traces / "all.json").exit_code == 3


def test_a_merged_trace_of_the_runner_names_its_ranks(tmp_path: Path) -> None:
    path, merged = tmp_path / "timeline.json", tmp_path / "merged.json"
    path.write_bytes(runner(Training(ranks=2, tensors=1)))
    assert timeline(path, "--merge", merged).exit_code == 0
    events = json.loads(merged.read_text())["traceEvents"]
    lanes = [(e["name"], e["pid"], e["args"]["name"]) for e in events if e.get("name") == "process_name"]
    assert lanes == [("process_name", 0, "rank 0"), ("process_name", 1, "rank 1")]
    threads = [(e["pid"], e["args"]["name"]) for e in events if e.get("name") == "thread_name"]
    assert threads == [(0, "computing"), (0, "layer0"), (1, "computing"), (1, "layer0")]


def test_a_trace_of_a_profiler_that_was_cut_is_repaired_in_its_form(tmp_path: Path) -> None:
    whole = kineto(Training(ranks=1))[0]
    broken, repaired = tmp_path / "broken.json", tmp_path / "repaired.json"
    broken.write_bytes(whole[: len(whole) * 2 // 3])
    assert timeline(broken, "--repair", repaired).exit_code == 0
    found, was = json.loads(repaired.read_text()), json.loads(whole)
    assert found["traceEvents"] == was["traceEvents"][: len(found["traceEvents"])]
    assert len(found["traceEvents"]) > len(was["traceEvents"]) / 2
    assert found["distributedInfo"] == was["distributedInfo"]


def test_a_message_names_the_file_that_is_at_fault_and_one_is_not_several(tmp_path: Path) -> None:
    recorded = RECORDED / "nocache-slow-rank1.json"
    there = tmp_path / "nowhere" / "x.json"
    assert timeline(recorded, "--repair", there).output.startswith(f"hpclaunch: {there}: cannot be written")
    (tmp_path / "short.json").write_bytes(runner(Training(ranks=1, steps=1)))
    said = timeline(tmp_path / "short.json").output
    assert "1 file (runner), 1 rank, 1 step\n" in said
    assert "verdict: none: 1 step: too few to judge" in said


def test_a_file_that_cannot_be_written_leaves_nothing_half(tmp_path: Path) -> None:
    answer = timeline(RECORDED / "nocache-slow-rank1.json", "--html", tmp_path / "missing" / "x.html")
    assert answer.exit_code == 3
    assert "cannot be written" in answer.output
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_one_file_with_the_figures_of_the_document(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    training = Training(ranks=3, slow_computing=always(1, 50.0))
    path = tmp_path / "<b>&.json"
    path.write_bytes(horovod(training, cache=False).replace(b"layer1", b"<script>x"))
    found = document(path, "--html", page)
    text = page.read_text()
    inside = re.search(r"<script type='application/json' id='document'>(.*)</script>", text)
    assert inside is not None
    assert json.loads(inside[1]) == found
    assert re.search(r"(src|href)=['\"]?(https?:)?//", text) is None
    assert "<b>&.json" not in text
    assert "<script>x" not in text
    assert f"{found['step_ms']['median']:.3g} ms</b>" in text


@pytest.mark.slow
def test_the_page_shows_which_rank_came_late_in_which_steps(tmp_path: Path) -> None:
    page, path = tmp_path / "page.html", tmp_path / "t.json"
    training = Training(ranks=70, steps=250, slow_computing=each(50, 3, 400.0))
    path.write_bytes(horovod(training, cache=False))
    found = document(path, "--html", page)
    rows = {one["rank"]: one["late_ms"] for one in found["by_rank"] if one["late_ms"]}
    assert (len(rows), {len(row) for row in rows.values()}) == (64, {84}), "of 70 ranks and 250 steps"
    assert sum(late > 300 for late in rows[3]) == 5
    text = page.read_text()
    assert "<title>rank 3, steps " in text
    assert text.count("aria-label=") == text.count("<svg ")


@pytest.mark.slow
def test_the_page_opens_in_a_browser_without_a_message_on_its_console(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = document(RECORDED / "nocache-slow-rank1.json", "--html", page)
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run(["chromium", *options, page.as_uri()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.findall(r"INFO:CONSOLE.*", done.stderr)
    assert done.stdout.count("<rect") >= len(found["by_rank"])
    assert "rank 1 comes last in 24 of 24 steps" in done.stdout


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """The peak of a process that reads 8 times as much is nearly the same."""
    peaks = []
    program_text = (
        "import re, sys; from hpclaunch.cli.main import program;"
        "program.main(['timeline', sys.argv[1], '--json'], standalone_mode=False);"
        "print(re.search('VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    for steps in (400, 3200):
        path = tmp_path / f"{steps}.json"
        path.write_bytes(horovod(Training(ranks=2, steps=steps, tensors=8), cache=False))
        done = subprocess.run([sys.executable, "-c", program_text, path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stderr.split()[-1]) / 1024)
    assert peaks[1] < peaks[0] + 25, peaks


def test_the_command_starts_without_what_only_its_work_needs() -> None:
    words = "import sys, hpclaunch.cli.timeline; print({'msgspec', 'numpy', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_rank_that_ended_before_its_first_event_is_left_out_with_a_note(tmp_path: Path) -> None:
    empty = tmp_path / "rank1.json"
    for text in ("", "[\n"):
        empty.write_text(text)
        answer = timeline(RECORDED / "nocache-slow-rank1.json", empty)
        assert answer.exit_code == 0
        assert "left out" in answer.stderr
        assert "no event of a timeline is in it" in answer.stderr
        assert timeline(empty).exit_code == 3


def test_a_rank_that_others_wait_for_at_the_end_is_named(tmp_path: Path) -> None:
    """Rank 2 of 3 is killed: rank 0 and rank 1 have asked for a tensor, and it never does."""
    events = json.loads((RECORDED / "nocache-slow-rank1.json").read_text())
    lanes = {event["pid"] for event in events if event["ph"] == "M" and "ts" not in event}
    last = max(event.get("ts", 0) for event in events)
    lane = min(pid for pid in lanes if pid)
    asked = [{"ph": "X", "name": str(rank), "ts": last + 10 + rank, "pid": lane, "dur": 0} for rank in (0, 1)]
    begun = {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": last + 5, "pid": lane}
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps([*events, begun, *asked]))
    found = json.loads(timeline(cut, "--json").stdout)
    ended = found["verdicts"][0]
    assert (ended["kind"], ended["rank"]) == ("ended", 2)
    assert "wait for rank 2 in NEGOTIATE_ALLREDUCE" in ended["evidence"]
