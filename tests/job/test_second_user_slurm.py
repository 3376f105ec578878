"""Another user of the same Slurm was on the node first, with a job of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.cluster import Slurm
from tests.testbed.second_user import SecondUser

pytestmark = [pytest.mark.slurm, pytest.mark.slow]
PROFILE = """\
schema: 1
name: caches
description: as LUMI and Alps, whose caches are in the node's memory
extends: generic-slurm
env:
  MIOPEN_USER_DB_PATH: {value: "/tmp/$USER-miopen-$SLURM_JOB_ID", reason: the kernels of a job}
  TRITON_CACHE_DIR: {value: "/dev/shm/$USER-triton", reason: the kernels of a job}
"""
# Numbers of jobs follow one another, so the names of the next ones are known.
HOSTILE = """
for next in $(seq 20); do set -- "$@" "/tmp/$VICTIM-miopen-$((SLURM_JOB_ID + next))"; done
for folder in "$@" "/dev/shm/$VICTIM-triton"; do
  mkdir -m 777 "$folder" || exit 1
  echo evil > "$folder/kernel.so"
done
"""
PROGRAM = """
for folder in "$MIOPEN_USER_DB_PATH" "$TRITON_CACHE_DIR"; do
  echo "GOT $RANK $folder $(stat -c '%u %a' "$folder") $(ls -A "$folder")"
done
"""


@pytest.fixture
def victim() -> Iterator[str]:
    """The name of the user whose folders are foreseen; the nodes have the machine's own /tmp."""
    name = f"victim{os.getpid()}"
    yield name
    for folder in Path("/tmp").glob(f"{name}-miopen-*"):
        shutil.rmtree(folder)


def test_folders_that_another_users_job_has_planted_are_not_used(
    slurm: Slurm, second_user: SecondUser, victim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    monkeypatch.setenv("USER", victim)
    (tmp_path / "caches.yaml").write_text(PROFILE)
    words = ("--wait", "--nodelist=n1", "--output=/dev/null", "--wrap", HOSTILE)
    planted = second_user.run("sbatch", *words, SLURM_CONF=str(slurm.conf), VICTIM=victim)
    assert planted.returncode == 0, planted.stderr
    there = sorted(Path("/tmp").glob(f"{victim}-miopen-*"))
    assert {folder.stat().st_uid for folder in there} == {second_user.uid}

    size = ("--nodes", "1", "--tasks-per-node", "2", "--mpi", "none", "--sbatch-arg=--nodelist=n1")
    submit = (sys.executable, "-m", "hpclaunch", "submit", "--site", str(tmp_path / "caches.yaml"), *size)
    done = subprocess.run([*submit, "--wait", "--", "bash", "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    got = [line.split()[1:] for line in (done.stdout + done.stderr).splitlines() if line.startswith("GOT ")]
    assert sorted(rank for rank, *_ in got) == ["0", "0", "1", "1"]
    assert [each[2:] for each in got] == [[str(os.geteuid()), "700"]] * 4, "the user's own, and empty"
    folders = {folder for _, folder, *_ in got}
    assert len(folders) == 2, "all ranks of a node find the same"
    assert not folders & {*map(str, there), f"/dev/shm/{victim}-triton"}
