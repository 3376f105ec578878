"""A run that is told to stop, or killed, goes on later as if nothing had been."""

from __future__ import annotations

import functools
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.train.run_errors import BadRequestError
from hpclaunch.train.stop_signals import checkpoint_exit_code
from tests.in_one_test import in_one_test
from tests.train.interrupted import killed, signalled
from tests.train.mpirun import train

COMMON = ("--batch-size", "4", "--epochs", "14", "--seed", "5")


@functools.cache
def uninterrupted(digits: Path) -> dict[str, Any]:
    return train(2, "--data", digits, *COMMON)


def outcome(result: dict[str, Any]) -> tuple[Any, ...]:
    """What must not depend on interruptions: parameters and history but for clocks."""
    clocks = {"seconds", "images_per_s"}
    history = [{name: entry[name] for name in entry.keys() - clocks} for entry in result["history"]]
    return result["parameters_sha256"], history, result["steps"], result["test_loss"]


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("number", "extra", "code"),
    [
        (signal.SIGUSR1, {}, 85),
        (signal.SIGUSR1, {"HPCLAUNCH_CHECKPOINT_EXIT_CODE": "99"}, 99),
        (signal.SIGTERM, {"HPCLAUNCH_CHECKPOINT_EXIT_CODE": "85"}, 85),
    ],
)
def test_a_signal_to_one_rank_stops_all_behind_a_checkpoint(
    digits: Path,
    tmp_path: Path,
    number: signal.Signals,
    extra: dict[str, str],
    code: int,
) -> None:
    options = ("--data", digits, *COMMON, "--checkpoint-dir", tmp_path)
    status, text = signalled(2, number, "epoch 2/14  step", *options, **extra)
    assert status == code, text
    assert text.count("asked to stop: checkpoint written after step") == 1
    assert "Traceback" not in text
    step = int(text.split("written after step ")[1].split(";")[0])
    assert max(tmp_path.glob("*.npz")).name.endswith(f"-{step:010d}.npz")
    resumed = train(2, *options, "--resume")
    assert resumed["resumed_from_step"] == step
    assert outcome(resumed) == outcome(uninterrupted(digits))


@pytest.mark.mpi
def test_without_a_folder_the_run_says_so_and_goes_on(digits: Path) -> None:
    status, text = signalled(2, signal.SIGUSR1, "epoch 2/14  step", "--data", digits, *COMMON)
    assert status == 0, text
    assert text.count("without --checkpoint-dir nothing can be saved: going on") == 1
    assert "epoch 14/14 done" in text


@pytest.mark.mpi
def test_sigkill_at_random_moments_changes_nothing(digits: Path, tmp_path: Path) -> None:
    options = ("--data", digits, *COMMON, "--checkpoint-dir", tmp_path, "--checkpoint-every", "3", "--resume")
    moments = random.Random(1)
    for _ in range(3):
        assert killed(2, moments.uniform(0, 0.1), *options) != 0, "over before it could be killed"
    assert outcome(train(2, *options)) == outcome(uninterrupted(digits))


@in_one_test("text", ["0", "256", "-1", "soon", ""])
def test_what_is_no_exit_code_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match="HPCLAUNCH_CHECKPOINT_EXIT_CODE"):
        checkpoint_exit_code({"HPCLAUNCH_CHECKPOINT_EXIT_CODE": text})
