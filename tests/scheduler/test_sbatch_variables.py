"""What sbatch takes from the environment instead of from the script: the table, and a real sbatch."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from hpclaunch.scheduler.slurm.slurm_directives import DIRECTIVES, VARIABLES
from tests.in_one_test import in_one_test
from tests.testbed.cluster import Slurm

NAMES = {name for names in VARIABLES.values() for name in names.split()}
SINCE = {
    "SBATCH_CONTAINER_ID": "23.02",
    "SBATCH_TRES_PER_TASK": "23.02",
    "SBATCH_TRES_BIND": "23.11",
    "SBATCH_SEGMENT_SIZE": "25.05",
    "SBATCH_CONSOLIDATE_SEGMENTS": "25.11",
    "SBATCH_SPREAD_SEGMENTS": "25.11",
}
"""Variable -> the first version that reads it, where that is not 22.05 or older."""


@in_one_test(
    "option, variable",
    [
        ("-C gpu", "SBATCH_CONSTRAINT"),
        ("-Cgpu", "SBATCH_CONSTRAINT"),
        ("--constraint=gpu", "SBATCH_CONSTRAINT"),
        ("--constr gpu", "SBATCH_CONSTRAINT"),
        ("-N 2 -C gpu", "SBATCH_CONSTRAINT"),
        ("--reservation=course", "SBATCH_RESERVATION"),
        ("-S 8", "SBATCH_CORE_SPEC"),
        ("--thread-spec=8", "SBATCH_CORE_SPEC"),
        ("-m block:cyclic", "SBATCH_DISTRIBUTION"),
        ("-M east", "SLURM_CLUSTERS"),
        ("-M east", "SBATCH_CLUSTERS"),
        ("--hint=nomultithread", "SLURM_HINT"),
        ("--gres=gpu:4", "SBATCH_GPUS_PER_NODE"),
        ("--cpus-per-task=4", "SBATCH_TRES_PER_TASK"),
        ("--output=x", "SBATCH_ERROR"),
        ("--requeue", "SBATCH_NO_REQUEUE"),
        ("-N 2", "SBATCH_WAIT"),
    ],
)
def test_an_option_of_the_script_stands_above_its_variable(option: str, variable: str) -> None:
    assert variable in SLURM.overriding(f"#!/bin/bash\n# why\n#SBATCH {option}\n\ntrue\n")


def test_a_variable_is_kept_where_the_script_says_nothing() -> None:
    assert SLURM.overriding("#!/bin/bash\n#SBATCH -N 2\ntrue\n#SBATCH -C gpu\n") == ("SBATCH_WAIT",)


def test_lint_knows_every_option_of_the_table() -> None:
    assert set(VARIABLES) <= DIRECTIVES.known_options
    assert set(SINCE) <= NAMES


@pytest.mark.slurm
def test_the_table_has_what_this_sbatch_reads(slurm: Slurm) -> None:
    program = shutil.which("sbatch")
    assert program is not None
    read = {name.decode() for name in re.findall(rb"\0(SBATCH_[A-Z_0-9]+)(?=\0)", Path(program).read_bytes())}
    version = slurm.run("sbatch", "--version").stdout.split()[-1]
    assert read == {n for n in NAMES if n.startswith("SBATCH_") and SINCE.get(n, "") <= version}


@pytest.fixture
def feature_and_reservation(slurm: Slurm) -> Iterator[Slurm]:
    """The nodes have a feature, and n4 is reserved."""
    made = ("starttime=now", "duration=60", f"user={getpass.getuser()}", "nodes=n4", "flags=ignore_jobs")
    slurm.run("scontrol", "update", "nodename=n[1-4]", "availablefeatures=gpu", "activefeatures=gpu")
    slurm.run("scontrol", "create", "reservation", "reservationname=course", *made)
    yield slurm
    slurm.run("scancel", "--me")
    slurm.run("scontrol", "delete", "reservation=course")
    slurm.run("scontrol", "update", "nodename=n[1-4]", "availablefeatures=", "activefeatures=")


OPTIONS = {
    "-C gpu": ("Features=gpu", "SBATCH_CONSTRAINT=nosuch"),
    "-t 7": ("TimeLimit=00:07:00", "SBATCH_TIMELIMIT=3"),
    "-J mine": ("JobName=mine", "SBATCH_JOB_NAME=other"),
    "-p standard": ("Partition=standard", "SBATCH_PARTITION=dev"),
    "--reservation course": ("Reservation=course", "SBATCH_RESERVATION=nosuch"),
}
"""Option of the script -> what scontrol shows of it, and the variable that would replace it."""


@pytest.mark.slurm
@pytest.mark.parametrize("option", OPTIONS)
def test_a_real_sbatch_obeys_the_script(feature_and_reservation: Slurm, tmp_path: Path, option: str) -> None:
    """With the variable left as it is it does not, so the variable matters."""
    shown, wish = OPTIONS[option]
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH --hold\n#SBATCH -N 1 {option}\ntrue\n")
    name, _, value = wish.partition("=")
    inherited = {**os.environ, **feature_and_reservation.environment(), name: value}
    ours = {key: text for key, text in inherited.items() if key not in SLURM.overriding(script.read_text())}
    for environment, obeyed in ((ours, True), (inherited, False)):
        words = ["sbatch", "--parsable", str(script)]
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False
        )
        job = done.stdout.strip()  # empty where Slurm refuses it
        answer = feature_and_reservation.run("scontrol", "-o", "show", "job", job).stdout if job else ""
        assert (f" {shown} " in answer) == obeyed, done.stderr + answer
