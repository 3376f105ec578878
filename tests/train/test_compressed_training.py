"""Training whose gradients travel compressed, or by an algorithm that is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.train.mpirun import RUNNER, run_ranks, train

pytestmark = pytest.mark.mpi
SYNTHETIC = ("--dataset", "synthetic", "--epochs", "1")


def share_of_plain_bytes(result: dict[str, Any]) -> float:
    """What a rank sent, of what the ring sends for two ranks: the length of the gradients a step."""
    return float(result["bytes_sent_per_rank"] / (result["steps"] * result["gradient_bytes"]))


@pytest.mark.parametrize(
    ("compression", "most_of_the_bytes"),
    [("none", 1.0), ("fp16", 0.5), ("bf16", 0.5), ("topk", 0.05), ("topk:0.1", 0.5)],
)
def test_compressed_gradients_train_with_less_bytes(compression: str, most_of_the_bytes: float) -> None:
    result = train(2, *SYNTHETIC, "--compression", compression)
    assert result["compression"] == compression
    assert result["allreduce"] == "ring"
    assert result["test_accuracy"] > 0.9
    assert 0 < share_of_plain_bytes(result) <= most_of_the_bytes
    assert len(set(result["parameters_sha256"])) == 1


def test_compressed_gradients_train_in_several_messages_beside_computing() -> None:
    many = ("--overlap", "--fusion-bytes", "100000")
    result = train(2, *SYNTHETIC, "--compression", "topk:0.05", *many)
    assert result["messages_per_step"] > 1
    assert result["test_accuracy"] > 0.9
    assert share_of_plain_bytes(result) < 0.3


def test_auto_trains_and_tells_what_it_chose() -> None:
    result = train(2, *SYNTHETIC, "--allreduce", "auto")
    assert result["allreduce"] == "auto"
    assert result["test_accuracy"] > 0.9
    ((kind, name),) = result["allreduce_choices"].items()
    assert kind == "float32 below 1 MiB in shared memory"
    assert name in ("shared", "mpi", "ring", "halving-doubling")


def test_auto_does_not_measure_where_bits_must_not_depend_on_time() -> None:
    first, second = (train(3, *SYNTHETIC, "--allreduce", "auto", "--deterministic") for _ in range(2))
    assert first["allreduce_choices"] == {"float32 below 1 MiB in shared memory": "shared"}
    assert first["parameters_sha256"] == second["parameters_sha256"]


def test_a_resumed_run_says_that_topk_forgot(tmp_path: Path) -> None:
    options = (*SYNTHETIC[:2], "--compression", "topk", "--checkpoint-dir", tmp_path)
    train(2, *options, "--epochs", "1")
    done = run_ranks(2, *RUNNER, *options, "--epochs", "2", "--resume")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("what --compression topk held back is lost") == 1


def test_compressions_that_cannot_be_are_refused_once() -> None:
    for options, message in (
        (("--compression", "zip"), "--compression zip: not a compression"),
        (("--compression", "topk", "--allreduce", "mpi"), "--compression topk with --allreduce mpi"),
    ):
        done = run_ranks(2, *RUNNER, "--json", *options)
        assert done.returncode == 3
        assert done.stdout == ""
        assert done.stderr.count(message) == 1
