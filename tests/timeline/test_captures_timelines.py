"""Recorded timelines with a known fault, and broken ones: each gets its verdict, none ends the command."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from tests.in_one_test import in_one_test

CAPTURES = Path(os.environ["HPCLAUNCH_TEST_CAPTURES"])
EXPECTED: dict[str, Any] = json.loads((CAPTURES / "timelines" / "expected.json").read_text())
KNOWN = [name for name in EXPECTED if not name.startswith("_")]
RECORDED = sorted((CAPTURES / "horovod" / "timelines").iterdir())
BALANCED = [path for path in RECORDED if "slowrank" not in path.name]


def summary(path: Path) -> Any:
    answer = CliRunner().invoke(program, ["timeline", str(path), "--json"], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


@in_one_test("name", KNOWN)
def test_each_known_fault_gets_its_verdict(name: str) -> None:
    want = EXPECTED[name]
    found = summary(CAPTURES / "timelines" / name)
    verdict = found["verdicts"][0]
    assert found["ranks"] == want["ranks"]
    assert verdict["kind"] == want.get("kind", verdict["kind"])
    assert verdict["kind"] not in want.get("kind_not", [])
    if "rank" in want:
        assert verdict["rank"] in want.get("rank_may_be", [want["rank"]])
    if "late_ms" in want:
        assert want["late_ms"][0] <= verdict["late_ms"] <= want["late_ms"][1]
    assert (verdict["share_of_steps"] or 0) >= want.get("share_of_steps_at_least", 0)
    assert want.get("among", verdict["kind"]) in [each["kind"] for each in found["verdicts"]]
    assert found["tensors_per_step"] == want.get("tensors", found["tensors_per_step"])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_every_recorded_timeline_is_summarised_and_repaired(path: Path, tmp_path: Path) -> None:
    found = summary(path)
    late = [verdict for verdict in found["verdicts"] if verdict["kind"] == "straggler"]
    assert late == [] or path not in BALANCED
    assert late or path in BALANCED
    whole = tmp_path / "whole.json"
    answer = CliRunner().invoke(program, ["timeline", str(path), "--repair", str(whole)])
    assert answer.exit_code == 0, answer.output
    assert len(json.loads(whole.read_text())) == found["files"][0]["events"]
    again = summary(whole)
    assert again["verdicts"] == found["verdicts"]
    assert all(file["whole"] and not file["repaired"] for file in again["files"])
