"""Training whose gradients travel compressed, or by an algorithm that is measured."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpclaunch.train.checkpoint import read_checkpoint
from tests.train.mpirun import refusals, train, write_digits

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many as an epoch needs to learn them; drawn once, not by each run."""
    return write_digits(tmp_path_factory.mktemp("many"), 12_000, 500)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("few"), 301, 50)


def share_of_plain_bytes(result: dict[str, Any]) -> float:
    """What a rank sent, of what the ring sends for two ranks: the length of the gradients a step."""
    return float(result["bytes_sent_per_rank"] / (result["steps"] * result["gradient_bytes"]))


@pytest.mark.parametrize(
    ("compression", "most_of_the_bytes"),
    [("none", 1.0), ("fp16", 0.5), ("bf16", 0.5), ("topk", 0.05), ("topk:0.1", 0.5)],
)
def test_compressed_gradients_train_with_less_bytes(
    many: Path, compression: str, most_of_the_bytes: float
) -> None:
    result = train(2, "--data", many, "--epochs", "1", "--compression", compression)
    assert result["compression"] == compression
    assert result["allreduce"] == "ring"
    assert result["test_accuracy"] > 0.9
    assert 0 < share_of_plain_bytes(result) <= most_of_the_bytes
    assert len(set(result["parameters_sha256"])) == 1


def test_compressed_gradients_train_in_several_messages_beside_computing(many: Path) -> None:
    messages = ("--overlap", "--fusion-bytes", "100000")
    result = train(2, "--data", many, "--epochs", "1", "--compression", "topk:0.05", *messages)
    assert result["messages_per_step"] > 1
    assert result["test_accuracy"] > 0.9
    assert share_of_plain_bytes(result) < 0.3


def test_auto_trains_and_tells_what_it_chose(many: Path) -> None:
    result = train(2, "--data", many, "--epochs", "1", "--allreduce", "auto")
    assert result["allreduce"] == "auto"
    assert result["test_accuracy"] > 0.9
    ((kind, name),) = result["allreduce_choices"].items()
    assert kind == "float32 below 1 MiB in shared memory"
    assert name in ("shared", "mpi", "ring", "halving-doubling")


def test_auto_does_not_measure_where_bits_must_not_depend_on_time(few: Path) -> None:
    options = ("--data", few, "--epochs", "1", "--batch-size", "20", "--allreduce", "auto", "--deterministic")
    first, second = (train(3, *options) for _ in range(2))
    assert first["allreduce_choices"] == {"float32 below 1 MiB in shared memory": "shared"}
    assert first["parameters_sha256"] == second["parameters_sha256"]


@pytest.mark.parametrize("ranks", [2, pytest.param(1, marks=pytest.mark.long)])
def test_a_resumed_run_knows_what_topk_held_back(few: Path, tmp_path: Path, ranks: int) -> None:
    options = ("--data", few, "--batch-size", "20", "--compression", "topk")
    whole = train(ranks, *options, "--epochs", "2")
    train(ranks, *options, "--epochs", "1", "--checkpoint-dir", tmp_path)
    resumed = train(ranks, *options, "--epochs", "2", "--checkpoint-dir", tmp_path, "--resume")
    assert resumed["resumed_from_step"] == whole["steps"] // 2
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]


def test_other_ranks_send_what_topk_held_back(few: Path, tmp_path: Path) -> None:
    """A step that gives everything away has it in its gradient, and differs by just that from one without."""
    options = ("--data", few, "--lr", "0.03")
    more = (*options, "--epochs", "2", "--resume", "--batch-size", "101", "--checkpoint-dir")
    first = (*options, "--epochs", "1", "--batch-size", "20", "--compression", "topk")
    train(2, *first, "--checkpoint-dir", tmp_path / "topk:1")
    shutil.copytree(tmp_path / "topk:1", tmp_path / "none")
    (before,) = (tmp_path / "none").glob("*.npz")
    held_back = read_checkpoint(before).arrays["held_back"]
    assert held_back.shape[0] == 2
    parameters = {}
    for compression in ("topk:1", "none"):
        folder = tmp_path / compression
        result = train(3, *more, folder, "--compression", compression)
        assert result["steps"] == result["resumed_from_step"] + 1
        parameters[compression] = read_checkpoint(max(folder.glob("*.npz"))).arrays["parameters"]
    expected = 0.03 * held_back.sum(axis=0) / 301
    assert np.abs(expected).max() > 1e-5
    np.testing.assert_allclose(parameters["none"] - parameters["topk:1"], expected, atol=1e-6)


def test_compressions_that_cannot_be_are_refused_once() -> None:
    impossible = (
        (("--compression", "zip"), "--compression zip: not a compression"),
        (("--compression", "topk", "--allreduce", "mpi"), "--compression topk with --allreduce mpi"),
    )
    answers = refusals(*([("--json", *options)] * 2 for options, _ in impossible))
    for (_, message), done in zip(impossible, answers, strict=True):
        assert done.codes == {3}
        assert done.stdout == ""
        assert done.stderr.count(message) == 1
