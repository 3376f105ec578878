"""Predictions compared with published measurements: ABCI's logs and the paper's Table VIII."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.scaling.learned_range import StepRange
from hpclaunch.scaling.prediction import rank
from tests.in_one_test import in_one_test
from tests.scaling.test_predict import document

FOLDER = Path(os.environ["HPCLAUNCH_TEST_CAPTURES"]) / "scaling"
ABCI = json.loads((FOLDER / "abci.json").read_text())
TABLE = json.loads((FOLDER / "paradl-table8.json").read_text())["rows"]


def measured(strategy: str, network: str) -> dict[int, float]:
    times = ABCI["s_per_iteration"][strategy][network]
    return {int(gpus): facts["min_s"] for gpus, facts in times.items()}


def predicted(folder: Path, strategy: str, model: str, sizes: list[int]) -> dict[str, Any]:
    """Predict sizes from the measured ones of 8 and 16 GPUs."""
    network = model.rstrip("0123456789")
    times = measured(strategy, network)
    (folder / "small.csv").write_text(f"gpus,seconds_per_step\n8,{times[8]}\n16,{times[16]}\n")
    return document(
        *("--site", "abci", "--model", model, "--strategy", strategy),
        *("--batch-per-worker", ABCI["images_per_worker"][network], "--gpus-per-worker", 4),
        *("--gpus", ",".join(map(str, sizes)), "--calibrate", folder / "small.csv"),
    )


@pytest.mark.parametrize(
    ("strategy", "model", "sizes"),
    [("data", "vgg16", [32, 64, 128, 256, 512]), ("data+spatial", "resnet50", [32, 64])],
)
def test_two_small_sizes_predict_the_large_ones(
    strategy: str, model: str, sizes: list[int], tmp_path: Path
) -> None:
    times = measured(strategy, model.rstrip("0123456789"))
    points = predicted(tmp_path, strategy, model, sizes)["points"]
    errors = [abs(point["step_s"]["value"] / times[point["gpus"]] - 1) for point in points]
    carried = (times[8] + times[16]) / 2
    carrying = [abs(carried / times[gpus] - 1) for gpus in sizes]
    assert sum(errors) / len(errors) <= 0.05
    assert max(errors) <= 0.13
    alone = [abs(point["mixture"]["model"] / times[point["gpus"]] - 1) for point in points]
    assert sum(alone) <= sum(carrying) / 2
    ranges = [point["step_s"] for point in points]
    inside = [one["low"] <= times[p] <= one["high"] for one, p in zip(ranges, sizes, strict=True)]
    assert inside.count(False) <= 1
    assert max(one["high"] / one["low"] for one in ranges) <= 1.45


@in_one_test("model, gpus", [(model, gpus) for model in TABLE for gpus in TABLE[model]])
def test_the_papers_rankings_come_out_of_its_projected_totals(model: str, gpus: str) -> None:
    """Filter and channel share a projection: they cannot be told apart; the rest is in the measured order."""
    rows = TABLE[model][gpus]
    exact: Any = {name: StepRange(value=row[5], low=row[5], high=row[5]) for name, row in rows.items()}
    order, ties = rank(exact)
    by_measurement = sorted(rows, key=lambda name: rows[name][2])
    shared = {"filter": "filter or channel", "channel": "filter or channel"}
    assert [shared.get(name, name) for name in order] == [shared.get(name, name) for name in by_measurement]
    assert set(ties) <= {("filter", "channel")}
    assert bool(ties) == ("filter" in rows)
