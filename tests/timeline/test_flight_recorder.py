"""Dumps of the flight recorder: JSON and pickle, of which only plain data is ever loaded."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from hpclaunch.errors import BadInputError
from hpclaunch.timeline.job_timeline import combined
from hpclaunch.timeline.read_timeline import TimelineFile, read_timeline
from hpclaunch.timeline.timeline_summary import summarised
from tests.in_one_test import in_one_test
from tests.timeline.made_timelines import Training, horovod


def dump(names: list[str], *, first: int = 1, step_ms: float = 100.0) -> dict[str, Any]:
    """A dump with the keys that torch 2.13 writes for gloo."""
    entries = [
        {
            "collective_seq_id": number,
            "input_dtypes": ["Float"],
            "input_sizes": [[1000]],
            "is_p2p": False,
            "process_group": ["0", "default_pg"],
            "profiling_name": f"gloo:{name}",
            "state": "scheduled",
            "time_created_ns": 1_795_000_000_000_000_000 + int(number * step_ms * 1e6),
            "time_discovered_completed_ns": 0,
        }
        for number, name in enumerate(names, first)
    ]
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
    return {"version": "2.10", "entries": entries, "pg_config": config}


def read(rank: int, dumped: dict[str, Any], *, as_pickle: bool = False) -> TimelineFile:
    data = pickle.dumps(dumped) if as_pickle else json.dumps(dumped).encode()
    return read_timeline(f"nccl_trace_rank_{rank}", [data])


@pytest.mark.parametrize("as_pickle", [False, True])
def test_steps_are_the_period_of_the_collectives(as_pickle: bool) -> None:
    # Of ten steps the last has no end in the dump.
    names = ["broadcast", *(["all_reduce", "all_reduce", "all_gather"] * 10)]
    document = summarised(combined([read(rank, dump(names), as_pickle=as_pickle) for rank in range(3)]))
    assert (document.ranks, document.steps) == (3, 9)
    assert document.step_ms["median"] == pytest.approx(300)
    counts = {one.name: (one.count, one.bytes) for one in document.collectives}
    assert counts == {"allreduce": (20, 80_000), "allgather": (10, 40_000), "broadcast": (1, 4000)}


def test_a_pickle_that_names_anything_is_refused_and_nothing_of_it_runs(tmp_path: Path) -> None:
    trace = tmp_path / "ran"

    class Harmful:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (trace,))

    with pytest.raises(BadInputError, match="plain data only"):
        read_timeline("x", [pickle.dumps({"entries": [Harmful()]})])
    assert not trace.exists()


@in_one_test("data", [b"\x80", b"\x80\x04.", pickle.dumps([1]), b'{"entries": 3}', b'{"entries": [1'])
def test_a_damaged_dump_is_refused(data: bytes) -> None:
    with pytest.raises(BadInputError):
        read_timeline("x", [data])


def test_a_rank_in_another_collective_is_named() -> None:
    usual = ["all_reduce"] * 17
    wrong = [*usual[:16], "all_gather"]
    files = [read(0, dump(usual)), read(1, dump(usual)), read(2, dump(wrong))]
    notes = summarised(combined(files)).notes
    assert any("rank 2 in all_gather [[1000]] #17, other ranks in all_reduce" in note for note in notes)
    for few in (files, [read(0, dump(usual[:2])), read(1, dump(wrong[-2:]))]):
        verdict = summarised(combined(few)).verdicts[0]
        assert verdict.kind == "mismatch"
        assert "collectives do not match in process group" in verdict.evidence
        assert "hangs" in verdict.remedy


def test_dumps_without_a_fault_say_what_they_cannot_tell(tmp_path: Path) -> None:
    files = [read(rank, dump(["all_reduce"] * 17)) for rank in range(3)]
    (verdict,) = summarised(combined(files)).verdicts
    assert "do not tell how long each rank waits" in verdict.evidence
    (verdict,) = summarised(combined(files[:2], 3)).verdicts
    assert "the traces of all ranks are needed" in verdict.evidence
    path = tmp_path / "dump_rank_0"
    path.write_text(json.dumps(dump(["all_reduce"] * 17)))
    answer = CliRunner().invoke(program, ["timeline", str(path), "--merge", str(tmp_path / "all.json")])
    assert (answer.exit_code, "has no events that Perfetto shows" in answer.output) == (3, True)
    assert not (tmp_path / "all.json").exists()


def test_what_rank_0_cannot_tell_of_itself_is_a_whole_sentence() -> None:
    training = Training(ranks=2)
    (verdict,) = summarised(combined([read_timeline("t", [horovod(training, cache=True)])])).verdicts
    assert "is hidden by Horovod's response cache (noise of the waiting 0 ms); nothing" in verdict.evidence


def test_a_rank_that_left_out_a_collective_is_named() -> None:
    files = [read(0, dump(["all_reduce"] * 17)), read(1, dump(["all_reduce"] * 16))]
    notes = summarised(combined(files)).notes
    assert any("rank 1 (#16) ended before all_reduce [[1000]] #17" in note for note in notes)
    assert not summarised(combined(files[:1])).notes[1:]
