"""The learning rate over a run, against the formulas and in training."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hpclaunch.train.learning_rate import Schedule
from hpclaunch.train.run_errors import BadRequestError
from hpclaunch.train.run_options import Options
from tests.train.mpirun import train, write_digits


def test_without_options_the_rate_is_constant() -> None:
    schedule = Options(lr=0.3, epochs=7).schedule(ranks=16)
    assert {schedule.rate(epoch / 3) for epoch in range(21)} == {0.3}


@pytest.mark.parametrize(("scaling", "factor"), [("linear", 16), ("sqrt", 4)])
def test_warm_up_goes_evenly_from_the_base_to_the_scaled_rate(scaling: str, factor: int) -> None:
    """Three epochs unless told otherwise."""
    schedule = Options(lr=0.5, epochs=10, lr_scaling=scaling).schedule(ranks=16)
    assert schedule.rate(0) == 0.5
    assert schedule.rate(1.5) == pytest.approx(0.5 * (1 + factor) / 2)
    assert [schedule.rate(epoch) for epoch in (3, 9.9)] == [0.5 * factor] * 2
    at_once = Options(lr=0.5, lr_scaling=scaling, warmup_epochs=0).schedule(ranks=16)
    assert at_once.rate(0) == 0.5 * factor


@pytest.mark.parametrize(
    ("decay", "rates"),
    [
        ("none", {4: 8, 8: 8, 9: 8}),
        ("polynomial", {4: 8, 7: 8 * 0.5**2, 9: 8 / 36}),
        ("cosine", {4: 8, 7: 4, 9: 4 * (1 + math.cos(math.pi * 5 / 6))}),
        ("step", {4: 0.8, 6.6: 0.8, 6.7: 0.08, 8.8: 0.08, 8.9: 0.008}),
    ],
)
def test_decay_follows_the_warm_up(decay: str, rates: dict[float, float]) -> None:
    schedule = Schedule(base=1, scale=8, warmup_epochs=4, decay=decay, epochs=10)
    assert {epoch: schedule.rate(epoch) for epoch in rates} == pytest.approx(rates)
    assert schedule.rate(2) == 4.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(warmup_epochs=2), "--warmup-epochs without --lr-scaling"),
        (Options(lr_scaling="linear", warmup_epochs=-1), "--warmup-epochs -1: not a number of epochs"),
        (Options(target_accuracy=99), "--target-accuracy 99: not a share of 1"),
    ],
)
def test_impossible_wishes_are_refused(options: Options, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        options.check()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("digits"), 301, 50)


@pytest.mark.mpi
def test_two_ranks_with_the_scaled_rate_train_as_with_twice_the_rate(digits: Path) -> None:
    common = ("--data", digits, "--epochs", "2", "--seed", "2")
    scaled = train(2, *common, "--lr", "0.01", "--lr-scaling", "linear", "--warmup-epochs", "0")
    warmed = train(2, *common, "--lr", "0.01", "--lr-scaling", "linear", "--warmup-epochs", "1")
    assert scaled["parameters_sha256"] == train(2, *common, "--lr", "0.02")["parameters_sha256"]
    assert warmed["parameters_sha256"] != scaled["parameters_sha256"]
    assert (warmed["lr_scaling"], warmed["warmup_epochs"], warmed["decay"]) == ("linear", 1, "none")


@pytest.mark.mpi
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop", "adagrad", "lars"])
def test_each_rule_learns_with_its_usual_rate(optimizer: str) -> None:
    result = train(2, "--dataset", "synthetic", "--optimizer", optimizer, "--epochs", "3")
    assert result["test_accuracy"] > 0.9


@pytest.mark.mpi
def test_a_run_stops_at_its_target_and_says_when(digits: Path, tmp_path: Path) -> None:
    common = ("--data", digits, "--epochs", "300", "--checkpoint-dir", tmp_path)
    result = train(2, *common, "--target-accuracy", "0.5")
    before, last = [0.0, *(entry["test_accuracy"] for entry in result["history"])][-2:]
    assert before < 0.5 <= last == result["test_accuracy"]
    assert len(result["history"]) < 300
    assert result["seconds_to_target_accuracy"] > result["seconds"]["training"] > 0
    assert 0 <= result["seconds"]["waiting"] <= result["seconds"]["communication"]
    again = train(2, *common, "--target-accuracy", "0.5", "--resume")
    assert again["seconds_to_target_accuracy"] == result["seconds_to_target_accuracy"]
    assert again["parameters_sha256"] == result["parameters_sha256"]
