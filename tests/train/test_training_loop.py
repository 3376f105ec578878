"""Training over ranks: the same mathematics as on one, and exact continuation."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from hpclaunch.train.checkpoint import read_checkpoint
from tests.train.interrupted import ended
from tests.train.mpirun import RUNNER, environment, mpiexec, run_program, run_ranks, train

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in (2, 4))])
def test_the_mean_gradient_of_ranks_is_that_of_the_whole_batch(ranks: int) -> None:
    run_program(ranks, "mean_gradient")


def newest_parameters(folder: Path) -> Any:
    return read_checkpoint(sorted(folder.iterdir())[-1]).arrays["parameters"]


def test_four_ranks_train_as_one_with_the_same_step(digits: Path, tmp_path: Path) -> None:
    """The same images in each step, in another order of summation."""
    common = ("--data", digits, "--lr", "0.03", "--epochs", "2", "--checkpoint-dir")
    one = train(1, *common, tmp_path / "one", "--batch-size", "40")
    four = train(4, *common, tmp_path / "four", "--batch-size", "10")
    assert one["steps"] == four["steps"] == 16
    assert four["test_loss"] == pytest.approx(one["test_loss"], rel=1e-3)
    np.testing.assert_allclose(
        newest_parameters(tmp_path / "four"), newest_parameters(tmp_path / "one"), atol=1e-5
    )


@pytest.mark.parametrize(("model", "optimizer"), [("cnn", "adadelta"), ("mlp", "sgd")])
def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(
    few: Path, tmp_path: Path, model: str, optimizer: str
) -> None:
    common = ("--data", few, "--model", model, "--optimizer", optimizer, "--batch-size", "10")
    whole = train(2, *common, "--epochs", "3")
    folder = ("--checkpoint-dir", tmp_path / "checkpoints")
    train(2, *common, "--epochs", "1", *folder)
    resumed = train(2, *common, "--epochs", "3", *folder, "--resume")
    assert resumed["resumed_from_step"] == 6
    assert whole["resumed_from_step"] is None
    assert resumed["steps"] == whole["steps"] == 18
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]
    assert facts(resumed["history"]) == facts(whole["history"])


def facts(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A history without its clock."""
    return [
        {name: value for name, value in entry.items() if name not in {"seconds", "images_per_s"}}
        for entry in history
    ]


def test_a_killed_run_resumes_in_the_middle_of_an_epoch(digits: Path, tmp_path: Path) -> None:
    """SIGKILL on every process; then the same bits as without it."""
    options = ("--data", digits, "--batch-size", "4", "--epochs", "8", "--seed", "5")
    whole = train(2, *options)
    folder = tmp_path / "checkpoints"
    interrupted = (*RUNNER, *options, "--checkpoint-dir", folder, "--checkpoint-every", "5")
    command = [mpiexec(), "-n", "2", *map(str, interrupted)]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as job:
        while job.poll() is None and len(list(folder.glob("*.npz"))) < 3:
            time.sleep(0.01)
        for process in psutil.Process(job.pid).children(recursive=True):
            process.kill()
    assert job.returncode != 0, "the run was over before it could be killed"
    resumed = train(2, *options, "--checkpoint-dir", folder, "--checkpoint-every", "5", "--resume")
    assert resumed["resumed_from_step"] % 5 == 0 or resumed["resumed_from_step"] % 38 == 0
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]
    assert resumed["test_accuracy"] == whole["test_accuracy"]


def test_resume_with_no_checkpoint_starts_afresh_and_says_so(digits: Path, tmp_path: Path) -> None:
    done = run_ranks(
        2, *RUNNER, "--data", digits, "--epochs", "1", "--checkpoint-dir", tmp_path, "--resume", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert f"no checkpoint in {tmp_path}: starting from scratch" in done.stderr
    assert json.loads(done.stdout)["resumed_from_step"] is None


def test_resume_on_other_ranks_goes_on_and_says_what_changes(digits: Path, tmp_path: Path) -> None:
    common = ("--data", digits, "--batch-size", "25", "--checkpoint-dir", tmp_path)
    train(2, *common, "--epochs", "1", "--checkpoint-every", "3")
    resumed = train(1, *common, "--epochs", "2", "--resume")
    assert resumed["resumed_from_step"] == 7
    assert resumed["steps"] == 7 + 13
    for step in (7, 20):
        next(tmp_path.glob(f"*{step:010d}.npz")).unlink()
    done = run_ranks(1, *RUNNER, *common, "--epochs", "1", "--resume", "--json")
    assert "has ranks 2; from here on 1" in done.stderr
    assert "has images_per_step 50; from here on 25" in done.stderr
    middle = json.loads(done.stdout)
    assert middle["resumed_from_step"] == 6
    assert middle["steps"] == 7, "one image is left"
    assert middle["history"][0]["train_images"] == 301


def test_the_best_checkpoint_stays(digits: Path, tmp_path: Path) -> None:
    """The rate is so high that later epochs are worse; the newest one checkpoint alone is kept otherwise."""
    common = ("--data", digits, "--batch-size", "20", "--checkpoint-dir", tmp_path, "--keep", "1")
    options = (*common, "--lr", "0.2", "--seed", "3", "--keep-best")
    result = train(2, *options, "--epochs", "6")
    accuracies = [entry["test_accuracy"] for entry in result["history"]]
    best = accuracies.index(max(accuracies))
    assert best < 5, "choose another seed"
    assert (result["best_epoch"], result["best_test_accuracy"]) == (best + 1, accuracies[best])
    assert result["best_checkpoint"] == str(tmp_path / "best.npz")
    assert len(list(tmp_path.glob("*.npz"))) == 2
    kept = read_checkpoint(tmp_path / "best.npz")
    assert kept.meta["epoch"] == best + 1
    assert kept.meta["history"] == result["history"][: best + 1]
    again = train(2, *options, "--epochs", "7", "--resume")
    if again["history"][-1]["test_accuracy"] <= accuracies[best]:
        assert read_checkpoint(tmp_path / "best.npz").meta["epoch"] == best + 1


def test_the_checkpoint_before_a_damaged_one_is_used(digits: Path, tmp_path: Path) -> None:
    common = ("--data", digits, "--batch-size", "25", "--epochs", "2", "--checkpoint-dir", tmp_path)
    whole = train(2, *common)
    newest = max(tmp_path.glob("*.npz"))
    newest.write_bytes(newest.read_bytes()[:1000])
    resumed = run_ranks(2, *RUNNER, *common, "--resume", "--json")
    assert f"{newest}: damaged checkpoint" in resumed.stderr
    result = json.loads(resumed.stdout)
    assert result["resumed_from_step"] == 7
    assert result["parameters_sha256"] == whole["parameters_sha256"]


def test_a_damaged_checkpoint_is_refused_by_name(digits: Path, tmp_path: Path) -> None:
    common = ("--data", digits, "--checkpoint-dir", tmp_path)
    train(2, *common, "--epochs", "1")
    (path,) = tmp_path.glob("*.npz")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    refused = run_ranks(2, *RUNNER, *common, "--epochs", "2", "--resume")
    assert refused.returncode == 3
    assert refused.stderr.count(f"{path}: damaged checkpoint") == 1
    assert "Traceback" not in refused.stderr
    assert path.read_bytes() == bytes(content)


# A file system of its own that is too small for two checkpoints, for these commands alone.
ON_A_SMALL_DISK = """
set -e
mount -t tmpfs -o size=3m none "$1"
"${@:4}" --epochs 1
status=0
"${@:4}" --epochs 3 --resume || status=$?
test -z "$(find "$1" -name '*.part')"
cp "$1"/*.npz "$2"
umount "$1"
exit $status
"""


def test_a_full_disk_ends_the_run_with_one_message_and_nothing_is_lost(digits: Path, tmp_path: Path) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    kept.mkdir()
    common = ("--data", digits, "--batch-size", "25")
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    train_there = [mpiexec(), "-n", "2", *RUNNER, *map(str, common), "--checkpoint-dir", str(disk)]
    full = subprocess.run(
        [*alone, "bash", "-c", ON_A_SMALL_DISK, "small disk", str(disk), str(kept), "--", *train_there],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert full.returncode == 1, full.stderr
    assert full.stderr.count("checkpoint not written (No space left on device)") == 1
    assert "Earlier checkpoints are whole" in full.stderr
    assert "Traceback" not in full.stderr
    resumed = train(2, *common, "--epochs", "3", "--resume", "--checkpoint-dir", kept)
    assert resumed["resumed_from_step"] == 7
    assert resumed["parameters_sha256"] == train(2, *common, "--epochs", "3")["parameters_sha256"]


@functools.cache
def a_checkpoint(digits: Path) -> Path:
    folder = digits / "checkpoints"
    train(1, "--data", digits, "--epochs", "1", "--checkpoint-dir", folder)
    return folder


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--model", "cnn"), "a checkpoint of model mlp, but this run has model cnn"),
        (("--optimizer", "adadelta"), "a checkpoint of optimizer sgd, but this run has optimizer adadelta"),
        (("--seed", "1"), "a checkpoint of seed 0, but this run has seed 1"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(digits: Path, option: tuple[str, str], message: str) -> None:
    common = ("--data", digits, "--checkpoint-dir", a_checkpoint(digits))
    refused = run_ranks(1, *RUNNER, *common, "--epochs", "2", "--resume", *option)
    assert refused.returncode == 3
    assert message in refused.stderr


ODD_RANK = (sys.executable, "-m", "tests.train.ranks.odd_rank")


def test_a_nan_on_one_rank_stops_all_in_the_same_step(digits: Path) -> None:
    done = run_ranks(3, *ODD_RANK, "nan", "--data", digits, "--epochs", "1", "--batch-size", "20")
    assert done.returncode == 1
    assert done.stderr.count("the loss is not finite at step 3 (epoch 1)") == 1
    assert done.stderr.count("rank exit 1") == 3
    assert "Traceback" not in done.stderr


def test_other_parameters_on_one_rank_are_found_before_the_first_step(digits: Path) -> None:
    done = run_ranks(3, *ODD_RANK, "parameters", "--data", digits, "--epochs", "1")
    assert done.returncode == 1
    assert done.stderr.count("the parameters of rank 2 differ from those of rank 0") == 1
    assert "epoch 1/1" not in done.stdout


def test_a_refusal_by_one_rank_names_it_and_ends_all(digits: Path) -> None:
    done = run_ranks(3, *ODD_RANK, "refusal", "--data", digits)
    assert done.returncode == 3
    assert done.stderr.count("rank 2: this rank alone refuses") == 1
    assert done.stderr.count("rank exit 3") == 3


def test_a_crash_of_one_rank_ends_the_others(digits: Path) -> None:
    done = run_ranks(3, *ODD_RANK, "crash", "--data", digits, "--epochs", "1", "--batch-size", "20")
    assert done.returncode == 1
    assert done.stderr.count("rank 2 failed") == 1
    assert done.stderr.count("Traceback") == 1


def test_a_signal_ends_every_rank_with_one_line(digits: Path) -> None:
    code, errors, ranks = ended(2, "--data", digits, "--epochs", "100000")
    assert code != 0
    assert "Traceback" not in errors
    psutil.wait_procs(ranks)
    assert not [process for process in ranks if process.is_running()]
