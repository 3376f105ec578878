"""What a run prints before its first step, and its warnings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpclaunch.train.option_parser import parse
from hpclaunch.train.run_options import Options
from hpclaunch.train.run_report import step_lines, step_warnings
from tests.in_one_test import in_one_test
from tests.train.mpirun import RUNNER, run_ranks, train, write_digits


def test_images_steps_and_rate_are_stated() -> None:
    assert step_lines(Options(lr=0.03), ranks=1, images=60_000) == [
        "64 images per step (1 rank(s) x 64 images), 938 steps per epoch",
        "learning rate 0.03, not scaled",
    ]
    options = Options(lr=0.03, lr_scaling="linear", accumulate=2, decay="cosine", epochs=9)
    assert step_lines(options, ranks=4, images=60_000) == [
        "512 images per step (4 rank(s) x 64 images x 2 batches), 118 steps per epoch",
        "learning rate 0.03 x 4 (linear in the ranks) = 0.12, reached after 3 epoch(s) of warm-up; "
        "cosine decay",
    ]


def test_few_steps_are_a_warning_with_a_batch_size_that_gives_enough() -> None:
    """4 ranks x 512 images made 6 steps per epoch and 36.9 %."""
    options = Options(batch_size=512, lr_scaling="linear")
    (warning,) = step_warnings(options, ranks=4, images=12_000)
    assert warning.startswith("only 6 step(s) per epoch")
    assert "--batch-size 60 gives 50" in warning
    assert "Goyal et al. 2017" in warning
    assert step_warnings(replace(options, batch_size=60), ranks=4, images=12_000) == []
    (warning,) = step_warnings(options, ranks=400, images=12_000)
    assert "use fewer ranks" in warning


@in_one_test(
    "ranks, options, factor",
    [
        (1, Options(), None),
        (8, Options(), 8),
        (1, Options(accumulate=3), 3),
        (8, Options(lr_scaling="linear"), None),
        (8, Options(lr_scaling="sqrt"), None),
    ],
)
def test_a_batch_that_grew_with_a_rate_that_did_not_is_a_warning(
    ranks: int, options: Options, factor: int | None
) -> None:
    warnings = step_warnings(options, ranks, images=60_000)
    assert len(warnings) == (factor is not None)
    if factor:
        assert f"a step has {factor} times the images of one batch" in warnings[0]
        assert f"Goyal et al. 2017 (arXiv:1706.02677) multiply it by {factor}" in warnings[0]


@pytest.mark.mpi
def test_a_run_prints_them_once_before_its_first_step(tmp_path: Path) -> None:
    digits = write_digits(tmp_path, 301, 50)
    done = run_ranks(2, *RUNNER, "--data", digits, "--epochs", "1")
    assert done.returncode == 0, done.stderr
    before = done.stdout[: done.stdout.index("epoch 1/1  step")]
    assert before.count("128 images per step (2 rank(s) x 64 images), 3 steps per epoch") == 1
    assert before.count("learning rate 0.03 x 1.414 (sqrt in the ranks) = 0.04243, reached after 0.333") == 1
    assert before.count("WARNING: only 3 step(s) per epoch") == 1
    assert before.count("WARNING") == 1
    result = train(2, "--data", digits, "--epochs", "1", "--lr", "0.03")
    assert (result["lr_scaling"], result["steps_per_epoch"]) == ("none", 3)
    assert [warning[:27] for warning in result["warnings"]] == [
        "only 3 step(s) per epoch, s",
        "a step has 2 times the imag",
    ]


@in_one_test("ranks", [1, 2, 4, 8, 18])
def test_the_default_options_are_no_reason_to_warn(ranks: int) -> None:
    options, _ = parse([])
    assert step_warnings(options, ranks, images=60_000) == []
    options.schedule(ranks).check(steps_per_epoch=1)  # a run of the first steps only is no error, either
    chosen, _ = parse(["--lr", "0.1"])
    assert len(step_warnings(chosen, ranks, images=60_000)) == (ranks > 1)
