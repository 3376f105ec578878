"""Training whose gradients travel compressed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.train.mpirun import refusals, train, write_digits

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many as an epoch needs to learn them; drawn once, not by each run."""
    return write_digits(tmp_path_factory.mktemp("many"), 12_000, 500)


def share_of_plain_bytes(result: dict[str, Any]) -> float:
    """What a rank sent, of what the ring sends for two ranks: the length of the gradients a step."""
    return float(result["bytes_sent_per_rank"] / (result["steps"] * result["gradient_bytes"]))


@pytest.mark.parametrize(
    ("compression", "most_of_the_bytes"),
    [("none", 1.0), ("fp16", 0.5), ("bf16", 0.5)],
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
    result = train(2, "--data", many, "--epochs", "1", "--compression", "fp16", *messages)
    assert result["messages_per_step"] > 1
    assert result["test_accuracy"] > 0.9
    assert share_of_plain_bytes(result) <= 0.5


def test_compressions_that_cannot_be_are_refused_once() -> None:
    impossible = (
        (("--compression", "zip"), "--compression zip: not a compression"),
        (("--compression", "fp16", "--allreduce", "mpi"), "--compression fp16 with --allreduce mpi"),
    )
    answers = refusals(*([("--json", *options)] * 2 for options, _ in impossible))
    for (_, message), done in zip(impossible, answers, strict=True):
        assert done.codes == {3}
        assert done.stdout == ""
        assert done.stderr.count(message) == 1
