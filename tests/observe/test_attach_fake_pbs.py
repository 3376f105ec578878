"""``verify --attach`` on a fake PBS, whose node is this machine: by a fake ssh, and from inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
FAKES = Path(__file__).parents[1] / "fakes"
# Takes the options and the name of the host off and runs the rest here.
FAKE_SSH = """\
#!/bin/bash
while [ "$1" != -- ]; do shift; done
echo "$2" >> "$FAKE_PBS_HOME/ssh"
exec sh -c "$3"
"""
JOB = """\
#!/bin/bash
#PBS -N theirs
#PBS -l select=1:mpiprocs=2
for rank in 0 1; do
  taskset -c 0 env PMI_RANK=$rank PMI_LOCAL_RANK=$rank PMI_SIZE=2 CUDA_VISIBLE_DEVICES=$rank sleep 600 &
done
wait
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user's own job that runs, and its id."""
    home, fake = tmp_path / "home", tmp_path / "fake"
    home.mkdir()
    fake.mkdir()
    (fake / "ssh").write_text(FAKE_SSH)
    (fake / "ssh").chmod(0o755)
    monkeypatch.setenv("FAKE_PBS_HOME", str(home))
    monkeypatch.setenv("PATH", f"{FAKES / 'fake_pbs'}:{fake}:{os.environ['PATH']}")
    (tmp_path / "job.sh").write_text(JOB)
    done = subprocess.run(["qsub", "job.sh"], capture_output=True, text=True, cwd=tmp_path, check=True)
    return done.stdout.strip()


def verify(job: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "hpclaunch", "verify", "--attach", job, "--site", "generic-pbs", "--json"]
    while True:  # until both ranks have begun
        answer = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True)
        if answer.returncode < 3 and "of 2 ranks were seen" not in answer.stdout:
            return answer
        assert "so it has no ranks" in answer.stderr or "no process" in answer.stderr or answer.stdout
        time.sleep(0.1)


@pytest.mark.parametrize("inside", [False, True])
def test_ranks_that_share_a_core_are_seen(job: str, inside: bool, tmp_path: Path) -> None:
    answer = verify(job, **({"PBS_JOBID": job} if inside else {}))
    subprocess.run(["qdel", job], check=True)
    found = json.loads(answer.stdout)
    assert answer.returncode == 1
    assert [(one["rank"], one["cpus"], one["gpus"]) for one in found["ranks"]] == [
        (0, "0", "0"),
        (1, "0", "1"),
    ]
    assert found["rules"] == ["bind-shared-cores"]
    assert "the node of generic-pbs is not described" in found["note"]
    asked = tmp_path / "home" / "ssh"
    assert asked.exists() != inside
    assert inside or asked.read_text().split()[0] == os.uname().nodename
