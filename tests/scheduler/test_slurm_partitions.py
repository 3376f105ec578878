"""The partitions that scontrol prints, and a profile made from those of a real Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.slurm_partitions import parse_partitions
from hpclaunch.site.load_profile import load_site
from tests.testbed.cluster import Slurm

# Keys as Slurm 22.05 prints them, the lines made up.
LINES = """\
PartitionName=debug AllowGroups=ALL Default=NO MaxNodes=2 MaxTime=00:30:00 MinNodes=0 RootOnly=NO \
OverSubscribe=NO State=UP TotalCPUs=64 TotalNodes=4 TRES=cpu=64,mem=1000M,node=4
PartitionName=gpu AllowGroups=ALL Default=YES MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=2 RootOnly=NO \
OverSubscribe=EXCLUSIVE State=UP TotalCPUs=640 TotalNodes=10 TRES=cpu=640,node=10,gres/gpu=40
PartitionName=long Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED RootOnly=NO State=DOWN TotalNodes=9
PartitionName=admin Default=NO MaxTime=UNLIMITED RootOnly=YES State=UP TotalNodes=9
"""


def answer(text: str, exit_code: int = 0, stderr: str = "") -> CommandResult:
    return CommandResult(exit_code=exit_code, stdout=text, stderr=stderr)


def test_the_default_partition_is_first_and_closed_ones_are_left_out() -> None:
    gpu, debug = parse_partitions(answer(LINES))
    assert (gpu.name, gpu.min_nodes, gpu.max_nodes, gpu.max_walltime) == ("gpu", 2, 10, "2-00:00:00")
    assert (gpu.whole_node, gpu.has_gpus) == (True, True)
    assert (debug.name, debug.min_nodes, debug.max_nodes, debug.max_walltime) == ("debug", 1, 2, "00:30:00")
    assert (debug.whole_node, debug.has_gpus) == (False, False)


def test_what_slurm_does_not_say_stays_open() -> None:
    (only,) = parse_partitions(answer("PartitionName=p MaxNodes=UNLIMITED MaxTime=UNLIMITED TRES=(null)\n"))
    assert (only.max_nodes, only.max_walltime, only.has_gpus) == (None, None, None)
    assert parse_partitions(answer("No partitions in the system\n")) == ()


def test_a_controller_that_does_not_answer_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match="Unable to contact"):
        parse_partitions(answer("", 1, "slurm_load_partitions error: Unable to contact slurm controller\n"))


@pytest.mark.slurm
def test_a_profile_of_a_real_slurm_plans_and_submits_there(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))

    def hpclaunch(*words: str) -> str:
        command = [sys.executable, "-m", "hpclaunch", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = hpclaunch("sites", "new", "here", "--extends", "generic-slurm", "--output", "here.yaml")
    assert "with 2 queues of Slurm" in made
    queues = load_site(str(tmp_path / "here.yaml")).queues
    assert list(queues) == ["standard", "dev"]
    assert (queues["standard"].max_walltime, queues["dev"].max_walltime) == ("2-00:00:00", "00:30:00")
    assert queues["dev"].max_nodes == 1
    usual = ("--site", "./here.yaml", "--binding", "off", "--mpi", "none", "--time", "40m")
    assert "#SBATCH --partition=standard" in hpclaunch("submit", *usual, "--dry-run", "--", "hostname")
    state = hpclaunch("submit", *usual, "--tasks", "1", "--wait", "--json", "--", "hostname")
    assert json.loads(state)["state"] == "done"


@pytest.mark.slurm
def test_captured_files_of_a_real_slurm_give_a_profile_that_plans_checks_and_submits_there(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the cluster the files are captured; the profile is written elsewhere, without its scheduler."""

    def hpclaunch(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "hpclaunch", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ,
        )
        assert done.returncode == code, done.stderr
        return done

    hpclaunch("topology", "--save", "node")
    (tmp_path / "partitions").write_text(slurm.run("scontrol", "show", "partition", "--oneliner").stdout)
    captured = ("--extends", "generic-slurm", "--from", "node", "--queues", "partitions")
    made = hpclaunch("sites", "new", "there", *captured, "--output", "there.yaml")
    assert "with 2 queues of Slurm" in made.stdout

    job = ("--site", "./there.yaml", "--nodes", "2", "--mpi", "none", "--time", "40m")
    script = hpclaunch("submit", *job, "--dry-run", "--", "hostname").stdout
    assert "#SBATCH --partition=standard" in script
    assert "--cpu-bind=mask_cpu:" in script
    (tmp_path / "job.sh").write_text(script)
    hpclaunch("lint", "--site", "./there.yaml", "job.sh")
    hpclaunch("sites", "validate", "./there.yaml")
    refused = hpclaunch("submit", *job, "--partition", "dev", "--dry-run", "--", "hostname", code=3)
    assert "partition dev" in refused.stderr  # its limits are those that scontrol printed
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    done = hpclaunch("submit", *job, "--wait", "--json", "--", "hostname")
    assert json.loads(done.stdout)["state"] == "done"
    hpclaunch("verify", "last")


def test_a_file_without_queues_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lscpu.txt").write_text("CPU(s): 2\nNUMA node0 CPU(s): 0-1\n")
    (tmp_path / "wrong").write_text("no such file\n")
    command = [sys.executable, "-m", "hpclaunch", "sites", "new", "x", "--extends", "generic-slurm"]
    command += ["--from", str(tmp_path), "--output", str(tmp_path / "x.yaml")]
    done = subprocess.run(
        [*command, "--queues", str(tmp_path / "wrong")], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 3
    assert "no queue that takes jobs is in it" in done.stderr
    assert not (tmp_path / "x.yaml").exists()
