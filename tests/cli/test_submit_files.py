"""``submit train.py``: what people type first, and what stands before and behind their programs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

import hpclaunch
from tests.in_process import hpclaunch_here

LUMI = ("--site", "lumi-g", "--account", "project_465000001", "--nodes", "2")
LOCAL = ("--site", "local", "--tasks", "2")
TRAIN = "import os, sys\nprint('GOT', os.environ['RANK'], sys.argv[1:])\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs as people have them."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "train.py": TRAIN,
        "torched.py": "import torch\n",
        "run.sh": 'set -e\nexec python3 train.py "$@"\n',
        "launch.sh": "#!/bin/bash\nif true; then\n  exec accelerate launch --multi_gpu torched.py\nfi\n",
        "data": "1 2\n",
        "batch.sh": "#!/bin/bash\n#SBATCH --nodes=2\npython torched.py\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def submit(*words: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("submit", *words)


def started(*words: str) -> str:
    """Return the words that each rank runs, of a dry run that nothing refuses."""
    done = submit("--site", "generic-slurm", "--dry-run", *words)
    assert done.returncode == 0, done.stderr
    assert "refused" not in done.stderr
    return done.stdout.splitlines()[-1].strip()


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (("train.py",), "python3 train.py"),
        (("train.py", "--lr", "0.1", "-x"), "python3 train.py --lr 0.1 -x"),
        (("./train.py", "mnist"), "python3 ./train.py mnist"),
        (("run.sh", "a b"), "bash run.sh 'a b'"),
        (("train.py", "--", "--nodes", "3"), "python3 train.py --nodes 3"),
        (("train.py", "--lr", "1", "--", "--", "--nodes"), "python3 train.py --lr 1 -- --nodes"),
        (("--", "train.py", "--nodes", "3"), "python3 train.py --nodes 3"),
        (("--", "./run.sh"), "bash ./run.sh"),
        (("--python", "/opt/py", "train.py"), "/opt/py train.py"),
        (("--", "env", "A=b", "./train.py"), "env A=b python3 ./train.py"),
        (("--name", "x.py", "train.py"), "python3 train.py"),
    ],
)
def test_a_file_is_started_by_its_interpreter(here: Path, words: tuple[str, ...], program: str) -> None:
    assert started(*words) == program


@pytest.mark.slow
def test_the_job_file_and_python_mean_the_same(here: Path) -> None:
    (here / "job.yaml").write_text("site: generic-slurm\ncommand: [train.py, --nodes, '3']\n")
    assert submit("--file", "job.yaml", "--dry-run").stdout.endswith("  python3 train.py --nodes 3\n")
    job = hpclaunch.Job(site="generic-slurm", command=["train.py", "--nodes", "3"])
    assert job.plan().argv == ("python3", "train.py", "--nodes", "3")
    sizes = ("--site", "generic-slurm", "--nodes", "1,2", "--strong", "--dry-run")
    study = hpclaunch_here("scale", "run", *sizes, "train.py", "{nodes}")
    assert study.returncode == 0, study.stderr
    assert "  python3 train.py 2\n" in study.stdout
    (here / "train.py").write_text("#!/usr/bin/python3\n")
    (here / "train.py").chmod(0o755)
    words = ("--site", "local", "--python-from", "path", "--no-check", "--job-file", "new.yaml")
    done = hpclaunch_here("init", *words, "./train.py", "--lr", "1")
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((here / "new.yaml").read_text())["command"] == [
        "python3",
        "./train.py",
        "--lr",
        "1",
    ]


@pytest.mark.parametrize(
    ("words", "ours", "theirs"),
    [
        (
            ("train.py", "--lr", "1", "--nodes", "2"),
            "hpclaunch submit --site local --nodes 2 train.py --lr 1",
            "hpclaunch submit --site local -- python train.py --lr 1 --nodes 2",
        ),
        (
            ("run.sh", "--dry-run", "a b", "--time=2h"),
            "hpclaunch submit --site local --dry-run --time=2h run.sh 'a b'",
            "hpclaunch submit --site local -- bash run.sh --dry-run 'a b' --time=2h",
        ),
        (
            ("train.py", "-N", "2"),
            "hpclaunch submit --site local -N 2 train.py",
            "hpclaunch submit --site local -- python train.py -N 2",
        ),
    ],
)
def test_options_of_ours_after_the_file_are_refused_with_both_spellings(
    here: Path, words: tuple[str, ...], ours: str, theirs: str
) -> None:
    done = submit("--site", "local", *words)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert f"for hpclaunch: {ours}" in lines
    assert f"for the program: {theirs}" in lines
    assert submit("--site", "local", "--bogus", "train.py").returncode == 2


def test_what_was_put_in_front_is_said_everywhere(here: Path) -> None:
    note = "train.py has no execute bit: the job starts it as python3 train.py"
    done = submit(*LUMI, "--dry-run", "--json", "--", "train.py")
    assert f"hpclaunch: {note}\n" in done.stderr
    document = json.loads(done.stdout)
    assert note in document["warnings"]
    table = submit(*LUMI, "--explain", "--", "train.py").stdout
    (row,) = [line for line in table.splitlines() if line.startswith("command")]
    assert row.split(None, 3)[1:] == ["python3", "train.py", f"command line; {note}"]
    typed = submit(*LUMI, "--dry-run", "train.py")
    assert "execute bit" not in typed.stderr
    assert "#SBATCH --job-name=train  #" in typed.stdout


@pytest.mark.parametrize(
    ("words", "message", "right"),
    [
        (("--", "./data"), "./data has no execute bit, and neither a #! line nor", "chmod +x ./data"),
        (("--", "./nosuch.sh"), "./nosuch.sh: there is no such file in", "from there"),
        (("nosuch.py",), "nosuch.py: there is no such file in", "from there"),
        (("nosuch.sh",), "nosuch.sh: there is no such file in", "from there"),
        (("--", "bash", "nosuch.sh"), "nosuch.sh: there is no such file in", "from there"),
        (("--", "uv", "run", "nosuch.py"), "nosuch.py: there is no such file in", "from there"),
        (
            ("launch.sh",),
            "launch.sh, line 3: accelerate launch would start its processes 16 times",
            "-- python torched.py",
        ),
        (("--", "./launch.sh"), "./launch.sh, line 3: accelerate launch would start", "-- python torched.py"),
        (("--", "nohup", "sh", "-c", "srun ./a"), "the text after -c, line 1: srun would start", "-- ./a"),
        (
            ("--check-imports", "--", "uv", "run", "torched.py"),
            "--check-imports: uv run brings its environment",
            "leave it out",
        ),
    ],
)
def test_what_would_fail_is_refused_before_the_queue(
    here: Path, words: tuple[str, ...], message: str, right: str
) -> None:
    done = submit(*LUMI, "--no-test-only", *words)
    assert done.returncode == 3, done.stderr
    assert message in done.stderr
    assert right in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("batch.sh",), "its #SBATCH lines are comments there; hpclaunch port"),
        (("batch.sh",), "framework torch (batch.sh, line 3: torched.py, line 1: imports torch)"),
        (("--", "uv", "run", "torched.py"), "framework torch (torched.py, line 1: imports torch)"),
        (("--", "uv", "run", "torched.py"), "uv run brings its environment, whose content is not known"),
        (("--", "nohup", "python", "train.py"), "nohup is of no use in a job"),
        (("--", "conda", "run", "-n", "a", "python", "train.py"), "add --no-capture-output"),
        (("--", "conda", "run", "-n", "a", "python", "train.py"), "conda run does not hand SIGTERM on"),
    ],
)
def test_notes_about_scripts_and_wrappers(here: Path, words: tuple[str, ...], said: str) -> None:
    done = submit(*LUMI, "--dry-run", *words)
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    assert "refused" not in done.stderr
    if words[1:2] == ("uv",):
        assert "singularity" not in done.stdout


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--", "uv", "run", "train.py"), "train"),
        (("run.sh",), "run"),
        (("--", "nohup", "bash", "run.sh"), "run"),
        (("--", "timeout", "1h", "./a.out"), "a.out"),
    ],
)
def test_the_job_is_named_after_the_program(here: Path, words: tuple[str, ...], name: str) -> None:
    assert f"#SBATCH --job-name={name}  #" in submit(*LUMI, "--dry-run", *words).stdout


@pytest.mark.mpi
@pytest.mark.parametrize(
    "words",
    [
        ("train.py", "a b", "--lr"),
        ("run.sh", "a b", "--lr"),
        ("--", "nice", "./train.py", "a b", "--lr"),
    ],
)
def test_what_people_type_runs(here: Path, words: tuple[str, ...]) -> None:
    done = submit(*LOCAL, *words)
    assert done.returncode == 0, done.stderr
    log = hpclaunch_here("logs", "last").stdout
    assert {f"GOT {rank} ['a b', '--lr']" for rank in (0, 1)} <= set(log.splitlines())
