"""Options that cannot have an effect: refused where a job would be submitted, told in a dry run."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.cli.main import program
from tests.own_process import hpclaunch

GENERIC = ("--site", "generic-slurm")
LUMI = ("--site", "lumi-g", "--account", "project_465000001")
POLARIS = ("--site", "polaris", "--account", "MyProject")
LOCAL = ("--site", "local")
REFUSED = [
    (LOCAL, ("--account", "p1"), "--account has no effect"),
    (LOCAL, ("--partition", "gpu"), "--partition has no effect"),
    (LOCAL, ("--directive", "--nice"), "--directive has no effect"),
    (LOCAL, ("--no-exclusive",), "--exclusive/--no-exclusive has no effect"),
    (LOCAL, ("--interactive",), "--interactive has no effect"),
    (LOCAL, ("--mpi", "pmix"), "--mpi has no effect"),
    (LOCAL, ("--after-any",), "--after-any has no effect without --after"),
    (LOCAL, ("--warn-before", "1m"), "--warn-before has no effect without --max-restarts"),
    (LOCAL, ("--space", "/tmp"), "--space has an effect only with --check or --preflight"),
    (LOCAL, ("--python", "python3"), "--python is for the bundled training"),
    (GENERIC, ("--binding", "strict"), "--binding strict has no effect"),
    (POLARIS, ("--mpi", "pmix"), "pals, takes no plugin"),
    (LUMI, ("--partition", "gpu"), "lumi-g has the partitions standard-g"),
    (LUMI, ("--partition", "standardg"), "did you mean standard-g?"),
]


def submit(*words: str) -> int:
    try:
        return int(program.main(["submit", *words], "hpclaunch", standalone_mode=False) or 0)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize(("site", "options", "words"), REFUSED, ids=lambda value: " ".join(value[-2:]))
def test_it_is_told_in_a_dry_run_and_refused_in_a_submission(
    site: tuple[str, ...], options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit(*site, *options, "--dry-run", "--", "true") == 0
    shown = capsys.readouterr()
    assert words in shown.err
    assert "submitting this job is refused" in shown.err
    assert shown.out.startswith("#!/bin/bash")
    assert submit(*site, *options, "--no-test-only", "--", "true") == 3
    assert words in capsys.readouterr().err


def test_a_walltime_that_nothing_enforces_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert submit(*LOCAL, "--time", "10m", "--dry-run", "--", "true") == 0
    assert "--time 10m: nothing on this machine ends a job after that time" in capsys.readouterr().err
    assert submit(*LOCAL, "--time", "10m", "--max-restarts", "1", "--dry-run", "--", "true") == 0
    assert "--time" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--time", "--account", "--partition", "--name", "--mpi", "--idle-timeout"]
)
def test_an_empty_value_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit(*GENERIC, option, "", "--dry-run", "--", "true") == 3
    assert f"{option} is empty" in capsys.readouterr().err


def test_a_job_file_may_be_tried_here_and_the_configuration_is_a_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "hpclaunch").mkdir()
    (tmp_path / "hpclaunch" / "config.yaml").write_text("account: p1\n")
    job = tmp_path / "job.yaml"
    job.write_text("site: lumi-g\nqueue: standard-g\ncommand: ['true']\n")
    assert submit("--file", str(job), *LOCAL, "--dry-run") == 0
    shown = capsys.readouterr().err
    assert (
        f"--partition has no effect: jobs on this machine start at once, without a scheduler (job file {job})"
        in shown
    )
    assert "refused" not in shown
    assert "--account" not in shown


def test_a_profile_of_ones_own_adds_a_partition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the refusal says."""
    site = tmp_path / "my.yaml"
    site.write_text("schema: 1\nname: my\npart_of: lumi-g\nqueues: {gpu: {}}\n")
    words = ("--account", "project_465000001", "--partition", "gpu", "--dry-run", "--", "true")
    assert submit("--site", str(site), *words) == 0
    shown = capsys.readouterr()
    assert "refused" not in shown.err
    assert "#SBATCH --partition=gpu  #" in shown.out


def test_an_undocumented_plugin_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert submit(*LUMI, "--mpi", "bogus", "--dry-run", "--", "true") == 0
    assert "--mpi bogus: lumi-g documents pmi2" in capsys.readouterr().err


@pytest.mark.slow
def test_the_commands_exit_code_is_that_of_the_process() -> None:
    words = ("submit", "--site", "local", "--account", "p", "--", "true")
    done = hpclaunch(*words)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("hpclaunch: --account has no effect")
