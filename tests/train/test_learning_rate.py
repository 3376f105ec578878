"""The learning rate over a run, against the formulas and in training."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from hpclaunch.train.learning_rate import DECAYS, SCALINGS, Schedule
from hpclaunch.train.option_parser import parse
from hpclaunch.train.run_errors import BadRequestError
from hpclaunch.train.run_options import Options
from tests.in_one_test import in_one_test
from tests.train.mpirun import RUNNER, run_ranks, train


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


@in_one_test(
    "decay, rates",
    [
        ("none", {4: 8, 8: 8, 9: 8}),
        ("polynomial", {4: 8, 7: 8 * 0.5**2, 9: 8 / 36}),
        ("cosine", {4: 8, 7: 4, 9: 4 * (1 + math.cos(math.pi * 5 / 6))}),
        ("step", {4: 0.8, 6.6: 0.8, 6.7: 0.08, 8.8: 0.08, 8.9: 0.008}),
        ("exponential", {4: 8, 7: 0.8, 8.5: 8 * 0.01**0.75}),
    ],
)
def test_decay_follows_the_warm_up(decay: str, rates: dict[float, float]) -> None:
    schedule = Schedule(base=1, scale=8, warmup_epochs=4, decay=decay, epochs=10)
    assert {epoch: schedule.rate(epoch) for epoch in rates} == pytest.approx(rates)
    assert schedule.rate(2) == 4.5


@in_one_test(
    "options, message",
    [
        (Options(warmup_epochs=2), "--warmup-epochs without --lr-scaling"),
        (Options(lr_scaling="linear", warmup_epochs=-1), "--warmup-epochs -1: not a number of epochs"),
        (Options(target_accuracy=99), "--target-accuracy 99: not a share of 1"),
    ],
)
def test_impossible_options_are_refused(options: Options, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        options.check()


@in_one_test("epochs, decay, scaling", product([1, 2, 3, 5, 8, 90], DECAYS, [*SCALINGS, None]))
def test_the_default_warm_up_fits_every_run(epochs: int, decay: str, scaling: str | None) -> None:
    """Also three epochs, the default: the scaled rate is reached, and the decay lowers it."""
    chosen = ("--lr-scaling", scaling) if scaling else ()
    options, _ = parse(["--epochs", str(epochs), "--decay", decay, *chosen])
    schedule = options.schedule(ranks=4)
    steps = 100
    schedule.check(steps)
    rates = [schedule.rate(step / steps) for step in range(epochs * steps)]
    assert max(rates) == pytest.approx(schedule.peak, rel=0.01)
    assert (rates[-1] < schedule.peak / 10) == (decay != "none")
    assert rates.index(max(rates)) <= epochs * steps / 3 + 1


@in_one_test(
    "options, message, hint",
    [
        (
            Options(lr=0.03, lr_scaling="linear", warmup_epochs=50),
            r"--warmup-epochs 50: a run of 3 epoch\(s\) x 10 step\(s\) ends within the warm-up: "
            r"its last step has the rate 0.03522, and no step has the scaled rate 0.12",
            "Use --epochs 51 or more, or --warmup-epochs 1.",
        ),
        (
            Options(lr_scaling="sqrt", warmup_epochs=3, decay="cosine"),
            "--warmup-epochs 3: a run of 3 epoch",
            "Use --epochs 4 or more, or --warmup-epochs 1.",
        ),
        (
            Options(lr_scaling="linear", warmup_epochs=1, decay="step"),
            "--decay step lowers the rate first after 1 of 3 epochs: no step has the scaled rate 0.12",
            "Use --epochs 4 or more, or --warmup-epochs 0.5.",
        ),
    ],
)
def test_a_schedule_that_cannot_take_place_is_refused_with_what_would_fit(
    options: Options, message: str, hint: str
) -> None:
    with pytest.raises(BadRequestError, match=message) as caught:
        options.schedule(ranks=4).check(steps_per_epoch=10)
    assert caught.value.hint == hint
    for name, value in re.findall(r"--(\S+) ([0-9.]*[0-9])", hint):
        fits = replace(options, epochs=int(value)) if name == "epochs" else None
        (fits or replace(options, warmup_epochs=float(value))).schedule(ranks=4).check(steps_per_epoch=10)


def test_a_decay_without_a_second_step_is_refused() -> None:
    with pytest.raises(BadRequestError, match="--decay cosine has no effect: a run of 1 epoch"):
        Options(epochs=1, decay="cosine").schedule(ranks=1).check(steps_per_epoch=1)
    Options(epochs=1, decay="cosine").schedule(ranks=1).check(steps_per_epoch=2)


@pytest.mark.mpi
def test_two_ranks_with_the_scaled_rate_train_as_with_twice_the_rate(digits: Path) -> None:
    common = ("--data", digits, "--epochs", "2", "--seed", "2")
    scaled = train(2, *common, "--lr", "0.01", "--lr-scaling", "linear", "--warmup-epochs", "0")
    warmed = train(2, *common, "--lr", "0.01", "--lr-scaling", "linear", "--warmup-epochs", "1")
    assert scaled["parameters_sha256"] == train(2, *common, "--lr", "0.02")["parameters_sha256"]
    assert warmed["parameters_sha256"] != scaled["parameters_sha256"]
    assert (warmed["lr_scaling"], warmed["warmup_epochs"], warmed["decay"]) == ("linear", 1, "none")


LONG_RULES = [pytest.param(*rule, marks=pytest.mark.long) for rule in (("rmsprop", 1), ("adagrad", 3))]


@pytest.mark.mpi
@pytest.mark.parametrize(("optimizer", "epochs"), [("adam", 1), ("lars", 1), *LONG_RULES])
def test_each_rule_learns_with_its_usual_rate(optimizer: str, epochs: int) -> None:
    result = train(2, "--dataset", "synthetic", "--optimizer", optimizer, "--epochs", str(epochs))
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


@pytest.mark.mpi
def test_the_result_says_what_the_schedule_did(digits: Path, tmp_path: Path) -> None:
    """Three epochs, the default, with scaling and decay; a warm-up that is too long trains nothing."""
    common = ("--data", digits, "--batch-size", "20", "--lr", "0.01", "--lr-scaling", "linear")
    result = train(2, *common, "--decay", "exponential")
    assert (result["lr"], result["lr_scaled"], result["warmup_epochs"]) == (0.01, 0.02, 1)
    assert result["decay"] == "exponential"
    done = run_ranks(2, *RUNNER, *common, "--warmup-epochs", "50", "--checkpoint-dir", tmp_path / "none")
    assert done.returncode == 3
    assert done.stderr.count("--warmup-epochs 50: a run of 3 epoch(s) x 8 step(s) ends within") == 1
    assert "step 1/8" not in done.stdout
