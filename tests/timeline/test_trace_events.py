"""Events as a stream: any cut, any size of pieces, names that were not escaped, damaged places."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.timeline.trace_events import TraceReader, inflated
from hpclaunch.timeline.trace_repair import repaired
from tests.in_one_test import in_one_test

EVENTS: list[dict[str, Any]] = [
    {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "allreduce.\u00e9}, {"}},
    {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1, "pid": 1},
    {"ph": "X", "name": "0", "ts": 2, "pid": 1, "dur": 0},
    {"ph": "E", "ts": 3.5, "pid": 1, "args": {"list": [{"a": 1}, {"b": "]"}], "last": True}},
    {"ph": "i", "name": "CYCLE_START", "ts": 9, "s": "g"},
]
ARRAY = "[\n" + ",\n".join(json.dumps(event, ensure_ascii=False) for event in EVENTS) + "]"
OBJECT = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS, "traceName": "x.json"}, indent=2)


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    yield from (text[at : at + size] for at in range(0, len(text), size))


@given(st.integers(1, 2000))
def test_pieces_of_any_size_give_the_same_events(size: int) -> None:
    for text in (ARRAY, OBJECT, ARRAY + "\n", "\ufeff" + ARRAY):
        reader = TraceReader(pieces(text.encode(), size))
        assert list(reader) == EVENTS
        assert (reader.whole, reader.lost, reader.repaired) == (True, 0, 0)


@given(st.integers(1, len(ARRAY.encode()) - 1), st.integers(1, 300))
def test_wherever_it_is_cut_the_events_before_are_read(cut: int, size: int) -> None:
    reader = TraceReader(pieces(ARRAY.encode()[:cut], size))
    found = list(reader)
    ends = [ARRAY.index(text) + len(text) for text in (json.dumps(e, ensure_ascii=False) for e in EVENTS)]
    before = sum(len(ARRAY[:end].encode()) <= cut for end in ends)
    assert found == EVENTS[:before]
    assert not reader.whole


@in_one_test("name", ['layer "q" \\ back', '"', "a\nb", 'a", "b'])
@in_one_test("size", [7, 100_000])
def test_a_name_that_was_not_escaped_is_read(name: str, size: int) -> None:
    """As Horovod 0.28.1 writes it."""
    bad = f'{{"name": "process_name", "ph": "M", "pid": 3, "args": {{"name": "{name}"}}}}'
    text = f"[\n{bad},\n" + ",".join(json.dumps(event) for event in EVENTS) + "]"
    reader = TraceReader(pieces(text.encode(), size))
    found = list(reader)
    assert found[0]["args"]["name"] == name
    assert found[1:] == EVENTS
    assert reader.repaired == 1


def test_a_damaged_place_in_the_middle_costs_only_itself() -> None:
    lines = [json.dumps(event) for event in EVENTS]
    text = "[\n" + ",\n".join([lines[0], '{"ph": "B", "na\x00\x00\x00', *lines[1:]]) + "]"
    reader = TraceReader([text.encode()])
    assert list(reader) == EVENTS
    assert reader.lost == 1


@pytest.mark.parametrize("text", ["[%s]", '{"a": %s, "traceEvents": [%s], "b": %s}'])
def test_numbers_that_json_does_not_have_become_null_in_a_repaired_trace(text: str) -> None:
    """Perfetto refuses a file with NaN."""
    bad = '{"ph": "X", "ts": 1, "args": {"a": NaN, "b": -Infinity, "c": 1e999, "d": "NaN"}}'
    whole = text.replace("[%s]", f"[{bad}]").replace("%s", "NaN")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads("".join(repaired([whole.encode()])), parse_constant=refuse)
    event = {"ph": "X", "ts": 1, "args": {"a": None, "b": None, "c": None, "d": "NaN"}}
    assert found == ([event] if text == "[%s]" else {"a": None, "traceEvents": [event], "b": None})


def test_compressed_data_that_is_cut_ends_there() -> None:
    data = gzip.compress(ARRAY.encode())
    assert list(TraceReader(inflated(pieces(data, 50)))) == EVENTS
    assert len(list(TraceReader(inflated([data[:-60]])))) < len(EVENTS)
    twice = gzip.compress(ARRAY.encode()[:100]) + gzip.compress(ARRAY.encode()[100:])
    assert list(TraceReader(inflated(pieces(twice, 64)))) == EVENTS


@in_one_test(
    "text, said",
    [(b"", "it is empty"), (b"  \n", "it is empty"), (b"hello", "begins with"), (b"{}", "no traceEvents")],
)
def test_what_is_no_trace_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        list(TraceReader([text]))


def test_deep_nesting_is_damage_not_a_crash() -> None:
    deep = "[" * 100_000
    reader = TraceReader([f'[{{"ph": "B", "args": {deep}'.encode()])
    assert list(reader) == []
    assert reader.lost == 1
