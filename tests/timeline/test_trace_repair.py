"""The clocks and the numbers of a merged trace, and the ends of a repaired one, on events written by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpclaunch.timeline.job_timeline import Place, combined
from hpclaunch.timeline.rank_trace import RankTrace
from hpclaunch.timeline.read_timeline import read_timeline
from hpclaunch.timeline.trace_repair import Clock, aligned, merged, repaired


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ('{"a": 1, "traceEvents": [{"ts": 1}], "b": [2]}', {"a": 1, "traceEvents": [{"ts": 1}], "b": [2]}),
        ('{"traceEvents": [{"ts": 1}]}', {"traceEvents": [{"ts": 1}]}),
        ('{"traceEvents": [{"ts": 1}], "b": [2', {"traceEvents": [{"ts": 1}]}),
        ('{"a": 1, "traceEvents": []}', {"a": 1, "traceEvents": []}),
        ('[{"ts": 1}, {"ts": 2}, {"t', [{"ts": 1}, {"ts": 2}]),
    ],
)
def test_what_stands_around_the_events_is_kept_where_it_is_whole(given: str, wanted: Any) -> None:
    assert json.loads("".join(repaired([given.encode()]))) == wanted


def profile(rank: int, ends_us: list[float], epoch_us: float) -> bytes:
    """A profile of torch whose steps each have an allreduce of 10 us that ends at these times."""
    events: list[dict[str, Any]] = []
    for number, end in enumerate(ends_us):
        mark = {"ph": "X", "cat": "user_annotation", "pid": 7}
        events.append({**mark, "name": f"ProfilerStep#{number}", "ts": end - 90.0, "dur": 99.0, "tid": 1})
        events.append({**mark, "name": "gloo:all_reduce", "ts": end - 10.0, "dur": 10.0, "tid": 2})
        events.append({"ph": "s", "id": number, "name": "ac2g", "pid": 7, "tid": 1, "ts": end - 10.0})
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2}}
    head |= {"baseTimeNanoseconds": int(epoch_us * 1e3), "host_name": f"n{rank}"}
    named = {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "python"}}
    return json.dumps({**head, "traceEvents": [named, *events]}).encode()


ENDS = [1100.0, 1200.0, 1300.0, 1400.0]
LATER = [50.0 + end for end in ENDS[:3]] + [5050.0]
"""Of a rank whose clock is 50 us ahead; it ended the last one late."""


def test_clocks_are_those_at_which_collectives_end_together() -> None:
    """The clock of rank 1 began 1,000 us later and is 50 us ahead; the merged trace begins at 0."""
    files = {"0": profile(0, ENDS, 2e6), "1": profile(1, [end - 1000 for end in LATER], 2e6 + 1000)}
    job = combined([read_timeline(name, [data], int(name)) for name, data in files.items()])
    clocks = aligned(job)
    assert [clock.shift_us for clock in clocks.values()] == pytest.approx([0.0, -50.0])
    assert clocks[0].zero_us == pytest.approx(-1090.0), "the first event of rank 0"
    assert clocks[1].zero_us == pytest.approx(-140.0)
    text = "".join(merged(job, lambda name: [files[name]], {1: Place("gpu07", "3")}))
    events = json.loads(text)["traceEvents"]
    ends = [round(one["ts"] + one["dur"], 3) for one in events if one["name"] == "gloo:all_reduce"]
    assert ends == [10.0, 110.0, 210.0, 310.0, 10.0, 110.0, 210.0, 3910.0]
    names = {one["pid"]: one["args"]["name"] for one in events if one["name"] == "process_name"}
    assert names == {0: "rank 0 (n0): python", 1_000_000: "rank 1 (gpu07, GPU 3): python"}
    arrows = [one["id"] for one in events if one["ph"] == "s"]
    assert arrows == [f"{rank}:{number}" for rank in (0, 1) for number in range(4)]


def test_ranks_without_a_common_collective_keep_their_clocks() -> None:
    files = [profile(0, ENDS, 2e6), profile(1, [], 2e6 + 300)]
    job = combined([read_timeline(str(rank), [data], rank) for rank, data in enumerate(files)])
    clocks = aligned(job)
    assert clocks[1] == Clock(clocks[0].zero_us + 300, 0.0)


def test_tensors_of_horovod_are_threads_of_the_rank_that_writes() -> None:
    def lane(number: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}}

    events: list[dict[str, Any]] = [lane(1, "grad.a"), lane(2, "grad.b (rank 1)"), lane(3, "note (rank x)")]
    for number in (1, 2, 3):
        events.append({"ph": "B", "name": "ALLREDUCE", "ts": 10 * number, "pid": number, "id": 5})
        events.append({"ph": "E", "ts": 10 * number + 5, "pid": number})
    data = json.dumps(events).encode()
    file = read_timeline("t", [data])
    file.traces[:] = [RankTrace(0, file.form, file.traces[0].steps)]
    text = "".join(merged(combined([file]), lambda _: [data]))
    found = json.loads(text)["traceEvents"]
    threads = {
        (one["pid"], one["tid"]): one["args"]["name"] for one in found if one.get("name") == "thread_name"
    }
    assert threads == {(0, 1): "grad.a", (1, 2): "grad.b", (0, 3): "note"}
    begun = [(one["pid"], one["tid"], one["id"]) for one in found if one["ph"] == "B"]
    assert begun == [(0, 1, 5), (1, 2, 5), (0, 3, 5)], "only arrows have numbers that several ranks use"
    assert [one["pid"] for one in found if one.get("name") == "process_sort_index"] == [0, 1]
