"""The exchange of gradients under a real MPI: fusion, overlap, accumulation, and ranks that do not fit."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.train.engine import Tensor
from hpclaunch.train.exchange import micro_batches
from hpclaunch.train.exchange.tensor_fusion import buckets
from hpclaunch.train.run_options import Options
from tests.train.interrupted import ended
from tests.train.mpirun import (
    RUNNER,
    refusals,
    run_program,
    run_ranks,
    train,
)

ODD_RANK = (sys.executable, "-m", "tests.train.ranks.odd_rank")
OVERLAP = ("--overlap", "--fusion-bytes", "65536")


def tensors_of(lengths: list[int]) -> list[Tensor]:
    ends = np.cumsum([0, *lengths]).tolist()
    return [Tensor(f"t{i}", slice(*span), (span[1] - span[0],)) for i, span in enumerate(pairwise(ends))]


# --- fusion ---------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=30), st.integers(0, 2000), st.sampled_from([2, 4, 8])
)
def test_buckets_hold_every_tensor_once_from_the_last_and_keep_to_the_limit(
    lengths: list[int], limit: int, item_bytes: int
) -> None:
    tensors = tensors_of(lengths)
    found = buckets(tensors, item_bytes, limit)
    assert [tensor for bucket in found for tensor in bucket.tensors] == tensors[::-1]
    for bucket in found:
        assert bucket.part == slice(bucket.tensors[-1].part.start, bucket.tensors[0].part.stop)
        size = (bucket.part.stop - bucket.part.start) * item_bytes
        assert size <= limit or len(bucket.tensors) == 1
    for earlier, later in pairwise(found):
        assert earlier.part.start == later.part.stop
        fused = earlier.part.stop - later.tensors[0].part.start
        assert fused * item_bytes > limit, "the next tensor would have fitted"


def test_no_limit_is_one_message_and_none_is_one_a_tensor() -> None:
    tensors = tensors_of([5, 7, 1])
    assert [bucket.part for bucket in buckets(tensors, 4, 128 << 20)] == [slice(0, 13)]
    assert len(buckets(tensors, 4, 0)) == 3


@given(st.integers(0, 50), st.integers(1, 9), st.integers(1, 5), st.integers(0, 1000))
def test_micro_batches_hold_every_image_once(images: int, size: int, accumulate: int, step: int) -> None:
    pixels, labels = np.zeros((images, 28, 28), np.uint8), np.arange(images, dtype=np.uint8)
    batches = list(micro_batches(pixels, labels, step, Options(batch_size=size, accumulate=accumulate)))
    assert np.array_equal(np.concatenate([batch.labels for batch in batches]), labels)
    assert all(len(batch.images) == len(batch.labels) <= size for batch in batches)
    assert len(batches) == max(1, -(-images // size))


def test_no_two_micro_batches_of_a_run_have_the_same_number() -> None:
    options = Options(batch_size=4, accumulate=3)
    images, labels = np.zeros((12, 28, 28), np.uint8), np.zeros(12, np.uint8)
    numbers = [batch.step for step in range(5) for batch in micro_batches(images, labels, step, options)]
    assert numbers == list(range(15))


# --- the same gradients ---------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3, pytest.param(2, marks=pytest.mark.long)])
def test_gradients_are_the_same_fused_overlapped_and_accumulated(ranks: int) -> None:
    run_program(ranks, "exchanges")


def outcome(result: dict[str, Any]) -> tuple[Any, ...]:
    return (result["parameters_sha256"], result["test_loss"], result["steps"])


@pytest.mark.mpi
def test_overlap_trains_to_the_same_bits(few: Path) -> None:
    options = ("--data", few, "--model", "cnn", "--epochs", "1", "--batch-size", "10")
    after = train(2, *options, "--fusion-bytes", "65536", "--no-overlap")
    beside = train(2, *options, "--fusion-bytes", "65536", "--overlap")
    assert outcome(beside) == outcome(after)
    assert beside["messages_per_step"] == after["messages_per_step"] == 5
    assert after["seconds"]["overlapped"] == 0
    assert beside["seconds"]["overlapped"] > 0


@pytest.mark.mpi
def test_accumulated_batches_train_as_one_of_their_size(digits: Path) -> None:
    options = ("--data", digits, "--model", "mlp", "--epochs", "2")
    whole = train(2, *options, "--batch-size", "20")
    parts = train(2, *options, "--batch-size", "5", "--accumulate", "4", *OVERLAP)
    assert parts["steps"] == whole["steps"] == 16
    assert parts["images_per_step"] == whole["images_per_step"] == 40
    assert parts["train_images_per_rank"] == whole["train_images_per_rank"]
    assert parts["history"][-1]["train_images"] == 301
    assert parts["test_loss"] == pytest.approx(whole["test_loss"], rel=1e-4)


@pytest.mark.mpi
def test_an_accumulating_run_resumes_to_the_same_bits(few: Path, tmp_path: Path) -> None:
    """From the middle of an epoch; the network with dropout, whose numbers must be the same ones again."""
    options = ("--data", few, "--model", "cnn", "--batch-size", "5", "--accumulate", "4", *OVERLAP)
    whole = train(2, *options, "--epochs", "2")
    folder = ("--checkpoint-dir", tmp_path, "--checkpoint-every", "2", "--keep", "9")
    train(2, *options, "--epochs", "1", *folder)
    max(tmp_path.glob("*.npz")).unlink()
    resumed = train(2, *options, "--epochs", "2", *folder, "--resume")
    assert resumed["resumed_from_step"] == 2
    assert outcome(resumed) == outcome(whole)


@pytest.mark.mpi
def test_a_resume_with_other_messages_says_that_the_bits_are_others(digits: Path, tmp_path: Path) -> None:
    options = ("--data", digits, "--batch-size", "20", "--checkpoint-dir", tmp_path)
    train(2, *options, "--epochs", "1")
    other = ("--batch-size", "10", "--accumulate", "2", "--fusion-bytes", "0")
    resumed = run_ranks(2, *RUNNER, *options, "--epochs", "2", "--resume", *other)
    assert resumed.returncode == 0
    assert "has batch_size 20; from here on 10" in resumed.stdout
    assert "has fusion_bytes 134217728; from here on 0" in resumed.stdout
    assert "images_per_step" not in resumed.stdout


# --- what does not fit ----------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "shape",
            "tensor 2 of rank 2 is dense2.weight float32 [128, 256], but that of rank 0 is",
        ),
        (
            "dtype",
            "tensor 0 of rank 2 is dense0.weight float64 [784, 256], but that of rank 0 is",
        ),
        ("order", "tensor 0 of rank 2 is dense4.bias float32 [10], but that of rank 0 is dense0.weight"),
        ("fewer", "tensor 5 of rank 2 is missing, but that of rank 0 is dense4.bias float32 [10]"),
        ("option", "rank 2 has --fusion-bytes 1, but rank 0 has --fusion-bytes 134217728"),
    ],
)
def test_ranks_that_disagree_stop_with_the_name_of_rank_and_tensor(
    digits: Path, fault: str, message: str
) -> None:
    done = run_ranks(3, *ODD_RANK, fault, "--data", digits, "--epochs", "1")
    assert done.returncode in (1, 3)
    assert done.stderr.count(message) == 1, done.stderr
    assert done.stderr.count("rank exit") == 3
    assert "Traceback" not in done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("overlap", [(), OVERLAP])
def test_a_gradient_that_is_not_finite_is_traced_to_its_tensor_and_rank(
    digits: Path, overlap: tuple[str, ...]
) -> None:
    done = run_ranks(3, *ODD_RANK, "inf", "--data", digits, "--epochs", "1", "--batch-size", "20", *overlap)
    assert done.returncode == 1
    assert done.stderr.count("the loss is not finite at step 3 (epoch 1)") == 1
    assert done.stderr.count("(first in dense2.weight, from rank 2)") == 1, done.stderr
    assert done.stderr.count("rank exit 1") == 3
    assert "Warning" not in done.stderr


@pytest.mark.mpi
def test_a_failure_in_the_thread_ends_all_ranks(digits: Path) -> None:
    done = run_ranks(
        3, *ODD_RANK, "message", "--data", digits, "--epochs", "1", "--batch-size", "20", *OVERLAP
    )
    assert done.returncode == 1
    assert done.stderr.count("rank 2 failed") == 1
    assert done.stderr.count("ZeroDivisionError: the network broke") == 1


@pytest.mark.mpi
def test_a_crash_beside_messages_ends_all_ranks(digits: Path) -> None:
    done = run_ranks(3, *ODD_RANK, "crash", "--data", digits, "--epochs", "1", "--batch-size", "20", *OVERLAP)
    assert done.returncode == 1
    assert done.stderr.count("rank 2 failed") == 1


@pytest.mark.mpi
def test_overlap_is_refused_where_mpi_lets_one_thread_communicate(digits: Path) -> None:
    options = ("--data", digits, "--epochs", "1")
    serialized = {"MPI4PY_RC_THREAD_LEVEL": "serialized"}
    done = run_ranks(2, *RUNNER, *options, *OVERLAP, **serialized)
    assert done.returncode == 3
    message = "--overlap: this MPI gives MPI_THREAD_SERIALIZED, and two threads need MPI_THREAD_MULTIPLE"
    assert done.stderr.count(message) == 1
    assert run_ranks(2, *RUNNER, *options, **serialized).returncode == 0


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_signal_ends_a_run_that_overlaps(digits: Path, ranks: int) -> None:
    code, errors, _ = ended(ranks, "--data", digits, "--epochs", "100000", *OVERLAP)
    assert code != 0
    assert "Traceback" not in errors


# --- options --------------------------------------------------------------------------------------------


IMPOSSIBLE = (
    (("--fusion-bytes", "-1"), "--fusion-bytes -1: too small"),
    (("--accumulate", "0"), "--accumulate 0: too small"),
)


@pytest.mark.mpi
def test_options_that_cannot_be_are_refused() -> None:
    answers = refusals(*([("--dataset", "synthetic", *options)] for options, _ in IMPOSSIBLE))
    for (_, message), done in zip(IMPOSSIBLE, answers, strict=True):
        assert done.codes == {3}
        assert message in done.stderr


@pytest.mark.mpi
def test_horovods_variables_are_defaults(digits: Path) -> None:
    variables = {"HOROVOD_FUSION_THRESHOLD": "0"}
    options = ("--data", digits, "--epochs", "1")
    taken = train(2, *options, "--overlap", **variables)
    assert taken["fusion_bytes"] == 0
    given_ = train(2, *options, "--fusion-bytes", "65536", **variables)
    assert (given_["fusion_bytes"], given_["messages_per_step"]) == (65536, 4)
    alone = train(2, *options, "--overlap")
    assert (alone["fusion_bytes"], alone["messages_per_step"]) == (256 << 10, 2)
    wrong = run_ranks(2, *RUNNER, *options, HOROVOD_FUSION_THRESHOLD="64M")
    assert wrong.returncode == 3
    assert wrong.stderr.count("HOROVOD_FUSION_THRESHOLD=64M: not a number") == 1
