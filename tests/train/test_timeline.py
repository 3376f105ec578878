"""Timelines: closed by every write, with Horovod's names, of all ranks by one clock."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.train.timeline_writer import Timeline
from hpclaunch.train.whole_files import GrowingArray
from tests.how_much import examples
from tests.train.interrupted import killed
from tests.train.mpirun import RUNNER, environment, run_program, run_ranks, train

Event = dict[str, Any]


def read(path: Path) -> list[Event]:
    events: list[Event] = json.loads(path.read_text())
    return events


def read_killed(path: Path) -> list[Event]:
    """The events of a writer that was killed: a write that was cut may have left no end, as Chrome allows."""
    text = path.read_text()
    if not text.endswith("\n]\n"):
        text = text[: text.rindex(",\n")] + "\n]\n"
    events: list[Event] = json.loads(text)
    return events


def lanes(events: list[Event]) -> dict[str, list[Event]]:
    """The phases of each lane, by its name."""
    heads = [event for event in events if event["ph"] == "M"]
    names = {event["pid"]: event["args"]["name"] for event in heads if "name" in event["args"]}
    found = defaultdict(list)
    for event in events:
        if event["ph"] in "BE":
            found[names[event["pid"]]].append(event)
    return dict(found)


def nested(events: list[Event]) -> list[tuple[int, str]]:
    """Depth and name of each phase of a lane, in order; every one must end, and none before it begins."""
    open_: list[Event] = []
    found = []
    for event in events:
        if event["ph"] == "B":
            found.append((len(open_), event["name"]))
            open_.append(event)
        else:
            assert event["ts"] >= open_.pop()["ts"]
    assert not open_
    return found


# --- the file ------------------------------------------------------------------------------------------


ELEMENTS = st.lists(st.integers(0, 5000).map(lambda size: json.dumps("x" * size)), max_size=30)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(ELEMENTS, max_size=8))
def test_the_file_is_whole_after_each_write_and_holds_all(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("array") / "array.json"
    array, expected = GrowingArray(path, ['"first"']), ["first"]
    for batch in batches:
        array.extend(batch)
        expected += [json.loads(element) for element in batch]
        assert json.loads(path.read_bytes()) == expected
    array.close()
    assert json.loads(path.read_bytes()) == expected
    assert path.stat().st_size == len("[\n\n]\n") + sum(map(len, expected)) + 4 * len(expected) - 2
    assert list(path.parent.iterdir()) == [path]


WRITER = """
import os, sys, time
from pathlib import Path
from hpclaunch.train.timeline_writer import Timeline
for _ in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print("ended", flush=True)
        continue
    timeline = Timeline(Path(sys.argv[1]), time.perf_counter())
    lanes = [timeline.lane(f"layer {number}") for number in range(8)]
    print(os.getpid(), flush=True)
    while True:
        for lane in lanes:
            timeline.phase(lane, "ALLREDUCE", time.perf_counter(), time.perf_counter())
        timeline.flush()
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_at_any_moment_leaves_all_lines_but_the_last_whole(tmp_path: Path) -> None:
    """One that does nothing but write: every moment is in a write, or between two."""
    moments = random.Random(5)
    path = tmp_path / "timeline.json"
    most = 0
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starts_writers:
        assert starts_writers.stdin is not None
        assert starts_writers.stdout is not None
        for _ in range(15):
            print("another", file=starts_writers.stdin, flush=True)
            writer = int(starts_writers.stdout.readline())
            time.sleep(moments.uniform(0, 0.05))
            os.kill(writer, signal.SIGKILL)
            assert starts_writers.stdout.readline() == "ended\n"
            most = max(most, len(read_killed(path)))
        starts_writers.stdin.close()
    assert most > 1000


FULL_DISK = """
import resource, sys, time
from pathlib import Path
from hpclaunch.train.timeline_writer import Timeline
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
timeline = Timeline(Path(sys.argv[1]), time.perf_counter())
lane = timeline.lane("layer")
for number in range(20_000):
    timeline.phase(lane, f"PHASE_{number}", time.perf_counter(), time.perf_counter())
    timeline.flush()
timeline.close()
print("went on")
"""


def test_a_file_that_cannot_grow_ends_the_timeline_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout == "went on\n", done.stderr
    assert done.stderr.count(f"--timeline {path} ends early") == 1
    phases = [event["name"] for event in read(path) if event["ph"] == "B"]
    assert len(phases) > 500
    assert phases == [f"PHASE_{number}" for number in range(len(phases))]
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("names")


@given(st.text(max_size=400))
def test_any_name_is_escaped(names: Path, name: str) -> None:
    path = names / "timeline.json"
    timeline = Timeline(path, time.perf_counter())
    assert timeline.lane(name) == timeline.lane(name) == 1
    timeline.close()
    (shown,) = [event["args"]["name"] for event in read(path) if "name" in event["args"]]
    assert name.startswith(shown)
    assert shown == name or len(shown) == 300


# --- of a training -------------------------------------------------------------------------------------


TENSORS = [f"dense{layer}.{kind}" for layer in (0, 2, 4) for kind in ("weight", "bias")]


@pytest.mark.mpi
@pytest.mark.parametrize("options", [(), ("--overlap", "--fusion-bytes", "65536"), ("--allreduce", "mpi")])
def test_a_training_shows_the_phases_of_every_tensor(
    digits: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "timeline.json"
    train(2, "--data", digits, "--epochs", "1", "--batch-size", "50", "--timeline", path, *options)
    events = read(path)
    assert list(tmp_path.iterdir()) == [path]
    assert events[0]["args"].keys() == {"start_time_since_epoch_in_micros"}
    by_lane = lanes(events)
    assert sorted(by_lane) == sorted([*TENSORS, "computing"])
    sums = "MPI_ALLREDUCE" if "mpi" in options else "RING_ALLREDUCE"
    for tensor in TENSORS:
        step = [(0, "NEGOTIATE_ALLREDUCE"), (0, "ALLREDUCE"), (1, sums)]
        assert nested(by_lane[tensor]) == [(0, "INIT_FUSION_BUFFER"), *(4 * step)]
    assert nested(by_lane["computing"]) == [
        *(4 * [(0, "INPUT"), (0, "FORWARD"), (0, "BACKWARD"), (0, "UPDATE")]),
        (0, "EVALUATION"),
    ]
    ends = [e["args"] for e in by_lane["dense0.weight"] if e["ph"] == "E" and "args" in e]
    assert ends == [{"dtype": "float32", "shape": "[784, 256]"}] * 4
    assert all(event["ts"] >= 0 for event in events if "ts" in event)


@pytest.mark.mpi
def test_overlap_is_seen_in_the_timeline(digits: Path, tmp_path: Path) -> None:
    """The first message of a step may begin before its back-propagation ends; without overlap none does."""
    common = (
        "--data",
        digits,
        "--model",
        "cnn",
        "--epochs",
        "1",
        "--batch-size",
        "50",
        "--fusion-bytes",
        "0",
    )
    early = {}
    for option in ("--overlap", "--no-overlap"):
        train(2, *common, "--fusion-bytes", "0", option, "--timeline", tmp_path / option)
        by_lane = lanes(read(tmp_path / option))
        computing = by_lane["computing"]
        ended = [
            computing[at + 1]["ts"] for at, event in enumerate(computing) if event.get("name") == "BACKWARD"
        ]
        last_layer = [e["ts"] for e in by_lane["dense9.bias"] if e.get("name") == "ALLREDUCE"]
        assert len(last_layer) == len(ended) == 4
        early[option] = [sent < done for sent, done in zip(last_layer, ended, strict=True)]
    assert early["--no-overlap"] == [False] * 4
    assert any(early["--overlap"])  # not in each step: the thread that sends needs a core


@pytest.mark.mpi
def test_horovods_variable_names_the_file(digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "horovod.json"
    train(2, "--data", digits, "--epochs", "1", HOROVOD_TIMELINE=str(path))
    assert sorted(lanes(read(path))) == sorted([*TENSORS, "computing"])
    train(1, "--data", digits, "--epochs", "1", HOROVOD_TIMELINE="DYNAMIC")


@pytest.mark.mpi
def test_a_training_that_is_killed_leaves_a_timeline_that_can_be_read(digits: Path, tmp_path: Path) -> None:
    moments = random.Random(2)
    options = ("--data", digits, "--batch-size", "4", "--epochs", "50", "--overlap", "--fusion-bytes", "0")
    for turn in range(3):
        path, folder = tmp_path / f"{turn}.json", tmp_path / f"checkpoints{turn}"
        status = killed(
            2,
            moments.uniform(0, 0.2),
            *options,
            *("--timeline", path, "--timeline-ranks", "all", "--checkpoint-dir", folder),
        )
        assert status != 0, "over before it could be killed"
        for mine, rank in ((path, 0), (path.with_name(f"{turn}.rank1.json"), 1)):
            assert f"dense0.weight (rank {rank})" in lanes(read_killed(mine))


@pytest.mark.mpi
def test_a_file_that_cannot_be_written_is_refused_before_the_training(digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "timeline.json"
    done = run_ranks(2, *RUNNER, "--data", digits, "--timeline", path)
    assert done.returncode == 3
    assert done.stderr.count(f"--timeline {path}: cannot write there") == 1


# --- of all ranks --------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_all_ranks_are_in_one_file(digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    options = ("--timeline", path, "--timeline-ranks", "all")
    train(3, "--data", digits, "--epochs", "1", "--batch-size", "50", *options)
    assert list(tmp_path.iterdir()) == [path]
    events = read(path)
    by_lane = lanes(events)
    names = [f"{name} (rank {rank})" for rank in range(3) for name in (*TENSORS, "computing")]
    assert sorted(by_lane) == sorted(names)
    for rank in range(3):
        computed = [name for _, name in nested(by_lane[f"computing (rank {rank})"])]
        assert (computed.count("UPDATE"), computed.count("EVALUATION")) == (3, 1)
        sums = [name for _, name in nested(by_lane[f"dense0.bias (rank {rank})"])]
        assert sums.count("RING_ALLREDUCE") == 3
    order = [e["args"]["sort_index"] for e in events if e.get("name") == "process_sort_index"]
    assert order == list(range(len(names) + 1))


@pytest.mark.mpi
def test_some_steps_are_recorded(digits: Path, tmp_path: Path) -> None:
    """Of 7 steps the third and the fourth; the file says that it does not begin with the run."""
    path = tmp_path / "timeline.json"
    options = ("--timeline", path, "--timeline-ranks", "all", "--timeline-steps", "2")
    train(2, "--data", digits, "--epochs", "1", "--batch-size", "25", *options, "--timeline-after", "2")
    events = read(path)
    assert events[0]["args"]["steps_before"] == 2
    for rank in range(2):
        by_lane = lanes(events)
        computed = [name for _, name in nested(by_lane[f"computing (rank {rank})"])]
        assert computed == ["INPUT", "FORWARD", "BACKWARD", "UPDATE"] * 2
        sums = [name for _, name in nested(by_lane[f"dense0.bias (rank {rank})"])]
        assert sums.count("RING_ALLREDUCE") == 2


@pytest.mark.mpi
def test_a_run_that_ends_before_the_steps_to_record_says_so(digits: Path, tmp_path: Path) -> None:
    options = ("--timeline", tmp_path / "t.json", "--timeline-after", "90")
    done = run_ranks(1, *RUNNER, "--data", digits, "--epochs", "1", "--batch-size", "100", *options)
    assert done.returncode == 0
    assert "t.json is empty: the run has 4 steps, and recording begins after 90" in done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_clocks_that_differ_in_zero_and_speed_are_aligned(tmp_path: Path, ranks: int) -> None:
    """Whoever has the ball had it after the one before, by one clock, within a part of a turn."""
    path = tmp_path / "timeline.json"
    run_program(ranks, "clocks", path)
    by_lane = lanes(read(path))
    name = 'the "ball" \\ of\n\u00e9\U0001f3c0'
    assert sorted(by_lane) == [f"{name} (rank {rank})" for rank in range(ranks)]
    turns = [
        (begin["ts"], end["ts"])
        for turn in range(6)
        for rank in range(ranks)
        for begin, end in [by_lane[f"{name} (rank {rank})"][2 * turn : 2 * turn + 2]]
    ]
    slack = 25_000  # half a turn, in microseconds
    for (_, before), (after, _) in pairwise(turns):
        assert before <= after + slack
