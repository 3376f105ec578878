"""``hpclaunch scale`` on this machine: sizes in the command, continuing, adding, comparing, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.mpi

# Prints what a program with this serial part would take, from rank 0.
PROGRAM = """\
import os, sys
ranks, batch = int(sys.argv[1]), int(sys.argv[2])
if int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0"))) == 0:
    with open("runs", "a") as file:
        print(ranks, batch, file=file)
    print(f"warm-up: 99 s\\nwarm-up: {1 + 8 / ranks} s")
"""
METRIC = ("--metric", r"warm-up: (\S+)", "--metric-is", "seconds")


@pytest.fixture(autouse=True)
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)


def scale(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "hpclaunch", "scale", *words]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def study(*options: str, sizes: str = "1,2") -> dict[str, Any]:
    command = ("--", sys.executable, "program.py", "{ranks}", "{batch}")
    size = ("--site", "local", "--ranks", sizes, "--batch", "64", "--repeats", "1", "--json")
    found: dict[str, Any] = json.loads(scale(*size, *METRIC, *options, *command).stdout)
    return found


def runs() -> list[str]:
    return Path("runs").read_text().splitlines()


def test_a_study_is_measured_once_and_grows() -> None:
    """The same call measures nothing again; more sizes are added; the first figure of several is left out."""
    first = study("--strong", "--name", "mine")
    assert [point["step_s"]["median"] for point in first["points"]] == [9, 5]
    assert first["points"][1]["throughput"] == pytest.approx(64 / 5)
    assert runs() == ["1 64", "2 32"]
    assert study("--strong", "--name", "mine") == first
    assert study("--strong", "--name", "mine", sizes="1,2,4")["points"][2]["step_s"]["median"] == 3
    assert runs() == ["1 64", "2 32", "4 16"]
    added = scale("add", "mine", "--sizes", "3", "--repeats", "1", "--json", code=3)
    assert "not divisible by 3 ranks" in added.stderr
    refused = scale("show", "mine", "--html", "nosuch/a.html", code=3)
    assert "nosuch/a.html: cannot be written: No such file or directory" in refused.stderr
    shown = json.loads(scale("show", "mine", "--json").stdout)
    assert [point["ranks"] for point in shown["points"]] == [1, 2, 4]
    study("--weak", "--name", "other")
    assert runs()[-2:] == ["1 64", "2 64"]
    compared = scale("compare", "mine", "other", "--json")
    assert "mine is strong, other is weak: beyond the smallest size" in compared.stderr
    rows = json.loads(compared.stdout)
    assert [row["relative"][1] for row in rows] == [1, 1, None]
    refused = scale(
        "--site", "local", "--ranks", "1", "--weak", "--name", "mine", *METRIC, "--", "true", code=3
    )
    assert "the study mine exists with other settings: batch, kind, settings" in refused.stderr


def test_a_study_ends_below_an_efficiency() -> None:
    """Of 0.9 with two ranks; what was measured is shown."""
    command = ("--", sys.executable, "program.py", "{ranks}", "{batch}")
    size = ("--ranks", "1,2,4", "--batch", "64", "--repeats", "1", "--strong", *METRIC)
    done = scale("--site", "local", *size, "--stop-below", "0.95", "--json", *command)
    assert "stopped: the efficiency with 2 ranks was 0.90, below 0.95" in done.stderr
    assert [point["ranks"] for point in json.loads(done.stdout)["points"]] == [1, 2]
    assert runs() == ["1 64", "2 32"]


def test_nothing_runs_in_a_dry_run_and_the_plan_names_the_jobs() -> None:
    command = ("--", sys.executable, "program.py", "{ranks}", "{batch}")
    options = ("--site", "generic-slurm", "--nodes", "1,2", "--weak", "--batch", "8", "--time", "10m")
    done = scale(*options, "--dry-run", *command)
    assert done.stdout.count("#SBATCH --nodes=") == 2
    assert " 2 8" in done.stdout
    assert "6 jobs left" in done.stderr
    assert not (Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "studies").exists()


def test_a_program_that_prints_no_figure_ends_the_study() -> None:
    command = ("--", sys.executable, "program.py", "{ranks}", "{batch}")
    size = ("--site", "local", "--ranks", "1,2", "--batch", "64", "--repeats", "1", "--strong")
    done = scale(*size, "--metric", r"images/s: (\S+)", *command, code=3)
    assert "stopped: all jobs with 1 rank failed" in done.stderr
    assert "no number above 0 was found in the job's output" in done.stderr
    assert len(runs()) == 1


def test_a_job_without_its_timeline_measures_nothing() -> None:
    """Its elapsed time would not be comparable with the steps of other sizes."""
    size = ("--site", "local", "--ranks", "1", "--repeats", "1", "--weak", "--timeline", "timeline.json")
    program = ("--", sys.executable, "-c", "print('no Horovod')")
    refused = scale(*size, "--no-wait", *program, code=3)
    assert "with --no-wait all jobs of the study write this file" in refused.stderr
    done = scale(*size, *program, code=3)
    assert "left no timeline in" in done.stderr
    assert "without --profile and --timeline its elapsed time is measured" in done.stderr


def test_the_bundled_training_measures_its_steps_without_the_first_epoch() -> None:
    options = ("--site", "local", "--ranks", "1", "--weak", "--repeats", "1", "--batch", "64")
    training = ("--dataset", "synthetic", "--epochs", "2", "--batch-size", "{batch}")
    done = scale(*options, "--json", "mnist", "--", *training)
    (point,) = json.loads(done.stdout)["points"]
    assert point["throughput"] == pytest.approx(64 / point["step_s"]["median"])
    assert "by steps of the training" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ranks", "1", "--", "true"), "--strong (the same work) or --weak"),
        (("--strong", "--", "true"), "give the sizes"),
        (("--strong", "--ranks", "1"), "name a file (train.py) or mnist, or put a command after --"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], message: str) -> None:
    assert message in scale("--site", "local", *words, code=2).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ranks", "1,x"), "'x' is not a whole number above 0"),
        (("--ranks", "2,1,2"), "2 stands there twice; --repeats says how often a size runs"),
        (("--metric", "("), "'(' is not a regular expression"),
        (("--metric", "images"), "'images' has 0 groups; put the figure into"),
    ],
)
def test_a_wrong_value_is_bad_input(words: tuple[str, ...], message: str) -> None:
    assert message in scale("--site", "local", "--strong", *words, "--", "true", code=3).stderr


def test_elapsed_time_is_a_last_resort_and_says_so() -> None:
    """Each point names its jobs, whose records have the proof of binding, and what makes it comparable."""
    size = ("--site", "local", "--ranks", "1", "--repeats", "1", "--weak", "--json")
    sleep = "import time; time.sleep(2.5)"
    document = json.loads(scale(*size, "--", sys.executable, "-c", sleep).stdout)
    (point,) = document["points"]
    assert 2 <= point["step_s"]["median"] < 60
    assert "measured by the elapsed time of the job, start-up included" in point["remarks"]
    facts = document["facts"]["1"]
    assert (len(facts["jobs"]), facts["binding"]) == (1, True)
    assert set(facts["fingerprint"]) == {"profile", "versions", "code", "environment"}


def test_a_study_whose_jobs_fail_has_failed() -> None:
    size = ("--site", "local", "--ranks", "1", "--repeats", "1", "--weak")
    assert "ended with exit status 1" in scale(*size, "--", "false", code=1).stderr


def test_a_size_without_a_figure_is_in_every_form_of_the_report() -> None:
    """The sizes that were measured stay; an answer without the failed one looks like a study of one size."""
    two_fail = "import os; print('images/s: 7', flush=True); os.environ['WORLD_SIZE'] == '1' or os.abort()"
    size = ("--site", "local", "--ranks", "1,2", "--repeats", "1", "--weak", "--name", "half")
    line = (*size, "--metric", r"images/s: (\S+)", "--", sys.executable, "-c", two_fail)
    done = scale(*line, code=1)
    assert "2 ranks: 1 of 1 job measured nothing: job " in done.stdout
    assert "2 ranks: 1 of 1 job measured nothing: job " in scale("show", "half", "--markdown").stdout
    (failed,) = json.loads(scale("show", "half", "--json").stdout)["failed"]
    assert failed.startswith("2 ranks: 1 of 1 job measured nothing: job ")
    assert scale(*line, code=1).stdout == done.stdout  # nothing runs again, and it has failed still
    assert "failed" not in study("--strong", "--name", "whole")


def test_a_strong_study_whose_command_has_no_batch_says_that_its_work_is_not_known() -> None:
    """Once before the jobs, whatever their number; weak ones do not."""
    said = "no word of the command has {batch}: whether all ranks together do the same work"
    size = ("--site", "local", "--ranks", "1,2", "--repeats", "2", "--batch", "64")
    command = ("--", sys.executable, "program.py", "{ranks}", "64")
    assert scale(*size, "--strong", "--dry-run", *command).stderr.count(said) == 1
    assert said not in scale(*size, "--weak", "--dry-run", *command).stderr
    assert said not in scale(*size, "--strong", "--dry-run", *command[:-1], "{batch}").stderr


def test_what_is_refused_leaves_no_study_and_submits_no_smaller_size(tmp_path: Path) -> None:
    """Once its cause is mended, the same name is free; a dry run says it, too."""
    Path("train.py").write_text("import horovod.torch\n")
    size = ("--site", "jupiter", "--account", "a1b", "--nodes", "1,2", "--weak", "--name", "mended")
    said = "nothing brings horovod into the job"
    assert said in scale(*size, "train.py", code=3).stderr
    assert not (Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "studies" / "mended").exists()
    shown = scale(*size, "--dry-run", "train.py")
    assert f"submitting these jobs is refused: {said}" in shown.stderr


def test_an_unknown_study_is_refused() -> None:
    assert "no study is named 'nosuch'" in scale("show", "nosuch", code=3).stderr
