"""--profile: what the script gets, and for which commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from hpclaunch.plan.startup_plan import STARTUP_CALL
from tests.in_one_test import in_one_test
from tests.scripts import rank_shell

SITE = ("--site", "generic-slurm", "--dry-run")


IN_PODMAN = ("--container", "docker://a.example/b:1", "--container-runtime", "podman-hpc")
"""Whose images would lose their own PYTHONPATH."""


def dry_run(*words: str) -> str:
    answer = CliRunner().invoke(program, ["submit", *SITE, *words], catch_exceptions=False)
    return answer.output


def test_the_script_records_steps_and_says_why() -> None:
    script = dry_run("--profile", "20", "--profile-after", "5", "--", "python", "train.py")
    assert "# --profile: steps 6 to 25 of each rank are recorded, by the steps of a torch optimizer" in script
    assert "export HPCLAUNCH_PROFILE=5:20" in script
    assert f"{STARTUP_CALL}  # by a start-up file of Python; an existing one still runs" in script
    assert "HPCLAUNCH_PROFILE" not in dry_run("--", "python", "train.py")


def test_a_variable_of_the_request_does_not_hide_the_start_up_file() -> None:
    words = ("--profile", "3", "--env", "PYTHONPATH=/mine", "--", "python", "train.py")
    script = dry_run(*words)
    assert script.index("export PYTHONPATH=/mine") < script.index(STARTUP_CALL)


@in_one_test(
    "command",
    [("python", "-WError", "-u", "x.py"), ("python", "-m", "ES", "-I"), ("python", "-X", "I", "x.py")],
)
def test_other_options_of_python_and_those_of_the_program_do_no_harm(command: tuple[str, ...]) -> None:
    assert "HPCLAUNCH_PROFILE=" in dry_run("--profile", "3", "--", *command)


@in_one_test(
    "words",
    [
        ("python", "-I", "train.py"),
        ("torchrun", "--nproc-per-node", "2", "--no-python", "python", "-E", "train.py"),
        ("./solver",),
    ],
)
def test_a_job_in_which_no_step_can_be_recorded_has_no_lines_for_it(words: tuple[str, ...]) -> None:
    """Without its cache Horovod would be slower, and programs below would record steps of their own."""
    script = dry_run("--profile", "3", "--framework", "horovod", "--", *words)
    assert "--profile has no effect" in script
    assert not re.search(f"HPCLAUNCH_PROFILE|HOROVOD_CACHE_CAPACITY|places|{re.escape(STARTUP_CALL)}", script)


@in_one_test(
    "words, expected",
    [
        (("--", "python", "train.py"), True),
        (("mnist",), True),
        (("--no-stacks", "--", "python", "train.py"), False),
        (("--no-stacks", "--idle-timeout", "5m", "--", "python", "train.py"), False),
        (("--no-stacks", "--profile", "3", "--", "python", "train.py"), True),
        (("--plain", "--", "python", "train.py"), False),
        (("--", "./solver"), False),
        (("--", "python", "-I", "train.py"), False),
        ((*IN_PODMAN, "--", "python", "train.py"), False),
    ],
)
def test_python_tells_where_it_stands_unless_that_is_declined(words: tuple[str, ...], expected: bool) -> None:
    assert (STARTUP_CALL in dry_run(*words)) == expected


@pytest.mark.parametrize(
    ("words", "python", "signal"),
    [
        (("--", "/opt/py/bin/python3.12", "train.py"), "/opt/py/bin/python3.12", "50"),
        (("--", "./train.py"), "python3", "50"),
        (("--no-stacks", "--profile", "3", "--", "python", "train.py"), "python", ""),
    ],
)
def test_the_files_know_the_programs_python(
    words: tuple[str, ...], python: str, signal: str, tmp_path: Path
) -> None:
    dry_run(f"--save={tmp_path / 'job'}", *words)
    files = tmp_path / "job" / "files"
    plan = (files / "plan.sh").read_text()
    assert f"hpclaunch_python={python}\nhpclaunch_stacks={signal}\n" in plan
    assert "hpclaunch_job_files=(startup.sh)" in plan
    assert (files / "startup" / "sitecustomize.py").exists()


@pytest.mark.slow
def test_each_rank_leaves_its_node_where_no_binding_is_reported() -> None:
    place = '>> "$HPCLAUNCH_JOB_FOLDER/places/$(< /proc/sys/kernel/hostname)"'
    assert place in dry_run("--profile", "3", "--", "python", "train.py")
    assert place in dry_run("mnist", "--", "--timeline=mine.json")
    assert place not in dry_run("mnist")
    shell = rank_shell("--site", "polaris", "--account", "abc", "--profile", "3", "--", "python", "x.py")
    assert "hpclaunch-binding rank=" in shell
    assert "FOLDER/places" not in shell


def test_jobs_of_an_array_share_the_start_up_file() -> None:
    script = dry_run("--profile", "3", "--array", "0-3", "--", "python", "train.py")
    assert STARTUP_CALL in script
    assert re.search(r"FILES=\$HPCLAUNCH_JOB_FOLDER/files\n.*\nHPCLAUNCH_JOB_FOLDER=", script, re.DOTALL)


def test_a_job_of_an_array_that_hangs_is_looked_at_alone(tmp_path: Path) -> None:
    """LSF gives all jobs of an array one number; they may share a node."""
    words = ["submit", "--site", "generic-lsf", "--array", "1-3", "--idle-timeout", "10m", "--dry-run"]
    job = tmp_path / "job"
    CliRunner().invoke(program, [*words, f"--save={job}", "--", "./solver"], catch_exceptions=False)
    look = '"$hpclaunch_stands" HPCLAUNCH_JOB_FOLDER "$HPCLAUNCH_JOB_FOLDER" 50'
    assert look in (job / "files" / "plan.sh").read_text()
    assert "hpclaunch_stands=$(cat " in (job / "files" / "supervise.sh").read_text()


@pytest.mark.slow
def test_the_bundled_training_records_itself() -> None:
    script = dry_run("--profile", "3", "mnist").replace(" \\\n ", "")
    steps = "--timeline-ranks all --timeline-steps 3 --timeline-after 10"
    assert f"--timeline timeline.json {steps}" in script
    assert "HPCLAUNCH_PROFILE=" not in script
    given = dry_run("--profile", "3", "mnist", "--", "--timeline", "mine.json").replace(" \\\n ", "")
    assert f"--timeline mine.json {steps}" in given


@in_one_test(
    "words, said",
    [
        (("--profile", "3", "--", "./solver"), "--profile has no effect: the command does not start Python"),
        (("--profile-after", "3", "--", "python", "x.py"), "--profile-after has no effect without --profile"),
        (("--profile", "3", "--", "python", "-uI", "x.py"), "with -I Python reads no start-up file"),
        (
            ("--profile", "3", "--", "python3", "-W", "error", "-E", "x.py"),
            "with -E Python reads no start-up",
        ),
        (("--stacks", "--", "python", "-WError", "-S", "-m", "x"), "with -S Python reads no start-up file"),
        ((*IN_PODMAN, "--stacks", "--", "python", "x.py"), "PYTHONPATH takes the place of the image's"),
    ],
)
def test_a_command_that_cannot_be_recorded_is_refused(words: tuple[str, ...], said: str) -> None:
    answer = CliRunner().invoke(program, ["submit", "--site", "generic-slurm", "--json", *words])
    assert answer.exit_code == 3
    assert said in json.loads(answer.stdout)["error"]["message"]


@pytest.mark.slow
def test_a_profile_of_horovod_switches_its_response_cache_off() -> None:
    words = ("--profile", "20", "--", "python", "train.py")
    line = 'export HOROVOD_CACHE_CAPACITY="${HOROVOD_CACHE_CAPACITY:-0}"'
    script = dry_run("--framework", "horovod", *words)
    assert line in script
    assert "does not say when each rank asks" in script
    assert line not in dry_run("--framework", "torch", *words)
    assert line not in dry_run("--framework", "horovod", "--", "python", "train.py")
