"""The efficiencies that the ALCF workshop states come out of its times."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.scaling.test_scale_import import document, lines

ALCF = json.loads((Path(os.environ["HPCLAUNCH_TEST_CAPTURES"]) / "scaling" / "alcf.json").read_text())
STATED = [name for name, facts in ALCF.items() if "expected_efficiency_percent" in facts]


@pytest.mark.parametrize("name", STATED)
def test_the_stated_efficiencies(name: str, tmp_path: Path) -> None:
    times = {int(p): seconds for p, seconds in ALCF[name]["seconds"].items()}
    study = document(tmp_path, lines(times), "--kind", "strong", "--gpus-per-node", "8")
    found = {str(point["ranks"]): 100 * point["efficiency"] for point in study["points"]}
    stated = ALCF[name]["expected_efficiency_percent"]
    assert {p: found[p] for p in stated} == {p: pytest.approx(value, abs=0.51) for p, value in stated.items()}


def test_what_is_odd_there_is_named(tmp_path: Path) -> None:
    times = {int(p): seconds for p, seconds in ALCF["thetagpu-horovod-mnist"]["seconds"].items()}
    study = document(tmp_path, lines(times), "--kind", "strong", "--gpus-per-node", "8")
    remarks = {point["ranks"]: " ".join(point["remarks"]) for point in study["points"]}
    assert [p for p, text in remarks.items() if text.startswith("super-linear")] == [4, 8]
    assert remarks[16].startswith("collapse")
    assert "crosses the node of 8" in remarks[16]
    assert study["recommended"]["gpus"] == 8
