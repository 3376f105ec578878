"""``verify --attach``: jobs that hpclaunch did not submit, with right and wrong bindings, on a real Slurm."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.testbed.cluster import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

# Two NUMA nodes of a core each, and GPUs in the reverse order.
PROFILE = """\
schema: 1
name: two-cores
extends: generic-slurm
description: the first two cores of this machine
node:
  cpu_model: any
  cores: 2
  numa: [{id: 0, cores: '0'}, {id: 1, cores: '1'}]
  gpus: [{numa: 1}, {numa: 0}]
binding: {cpu: mask_cpu, gpu_visible_var: ROCR_VISIBLE_DEVICES}
"""
RIGHT, WRONG = "$((1 - SLURM_LOCALID))", "0"


def script(cpu: str, ready: Path) -> str:
    """A user's own batch script: two nodes, two ranks each, which bind themselves and then work for long."""
    rank = (
        f"export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID NCCL_SOCKET_IFNAME=hsn0;"
        f" taskset -cp {cpu} $$ > /dev/null; touch {ready}.$SLURM_PROCID; exec sleep 600"
    )
    return f"#!/bin/bash\nsrun --mpi=none --cpu-bind=none bash -c '{rank}'\n"


class Jobs:
    """Running jobs by the binding of their ranks."""

    def __init__(self, cluster: Slurm, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        (folder / "two-cores.yaml").write_text(PROFILE)
        self.ids = {name: self._submit(name, cpu) for name, cpu in (("right", RIGHT), ("wrong", WRONG))}
        for name in self.ids:
            while len(list(folder.glob(f"{name}.ready.*"))) < 4:
                assert self.state(name) in ("PENDING", "RUNNING")

    def _submit(self, name: str, cpu: str) -> str:
        file = self.folder / f"{name}.sh"
        file.write_text(script(cpu, self.folder / f"{name}.ready"))
        words = ("--parsable", "--nodes=2", "--ntasks-per-node=2", f"--output={self.folder}/{name}.log")
        answer = self.cluster.run("sbatch", *words, str(file))
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()

    def state(self, name: str) -> str:
        return self.cluster.run("squeue", "-h", "-j", self.ids[name], "-o", "%T").stdout.strip()

    def verify(self, *words: str, code: int) -> str:
        line = [sys.executable, "-m", "hpclaunch", "verify", "--site", str(self.folder / "two-cores.yaml")]
        answer = subprocess.run(
            [*line, *words], env=self.cluster.environment(), capture_output=True, text=True, cwd=self.folder
        )
        assert answer.returncode == code, answer.stderr
        return answer.stdout if code < 3 else answer.stderr


@pytest.fixture(scope="module")
def jobs(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    running = Jobs(slurm, tmp_path_factory.mktemp("attach"))
    yield running
    slurm.run("scancel", *running.ids.values())


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_right_binding_is_seen_on_both_nodes(jobs: Jobs) -> None:
    found = document(jobs.verify("--attach", jobs.ids["right"], "--json", code=0))
    assert (found["ok"], found["finding"]) == (True, "all 4 ranks have a right binding")
    seen = [(one["rank"], one["host"], one["cpus"], one["planned"], one["gpus"]) for one in found["ranks"]]
    hosts = [one[1] for one in seen]
    assert seen == [
        (0, hosts[0], "1", "1", "0"),
        (1, hosts[0], "0", "0", "1"),
        (2, hosts[2], "1", "1", "0"),
        (3, hosts[2], "0", "0", "1"),
    ]
    assert hosts[0] != hosts[2]
    details = found["details"][0]
    assert details["program"] == ["sleep", "600"]
    assert (details["threads"], details["thread_cpus"], details["devices"]) == (1, {"1": 1}, [])
    assert details["variables"]["NCCL_SOCKET_IFNAME"] == "hsn0"


def test_a_wrong_binding_is_named_with_the_rule_and_what_would_be_right(jobs: Jobs) -> None:
    text = jobs.verify("--attach", jobs.ids["wrong"], code=1)
    assert "4 of 4 ranks have a wrong binding" in text
    assert "rule bind-shared-cores: " in text
    assert "right would be: srun --cpu-bind=mask_cpu:0x2,0x1; ROCR_VISIBLE_DEVICES=0,1" in text


def test_nothing_is_left_behind(jobs: Jobs) -> None:
    files = sorted(jobs.folder.iterdir())
    steps = jobs.cluster.run("squeue", "--steps", "-h", "-o", "%i", "-j", jobs.ids["right"]).stdout
    jobs.verify("--attach", jobs.ids["right"], code=0)
    assert jobs.cluster.run("squeue", "--steps", "-h", "-o", "%i", "-j", jobs.ids["right"]).stdout == steps
    assert sorted(jobs.folder.iterdir()) == files
    assert jobs.state("right") == "RUNNING"
    # By this job's number: other tests look at the same time, into the jobs of their own clusters.
    look = f"HPCLAUNCH-LOOK.* SLURM_JOB_ID {jobs.ids['right']}( |$)"
    left = subprocess.run(["pgrep", "-f", look], capture_output=True, text=True)
    assert left.stdout == ""


def test_a_job_that_does_not_run_is_said_so(jobs: Jobs) -> None:
    assert "squeue does not know job 99999" in subprocess_error(jobs, "99999")
    waiting = jobs.cluster.run("sbatch", "--parsable", "--hold", "--wrap", "true").stdout.strip()
    assert f"job {waiting} is PENDING" in jobs.verify("--attach", waiting, code=3)
    jobs.cluster.run("scancel", waiting)


def test_variables_of_the_callers_own_job_are_no_options_of_the_look(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = {"NTASKS_PER_GPU": "1", "EXPORT_ENV": "NONE", "HOSTFILE": "/none", "STDOUTMODE": "/none/out"}
    for name, value in {**inputs, "GPUS": "3", "CONSTRAINT": "none", "DISTRIBUTION": "arbitrary"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    assert "all 4 ranks have a right binding" in jobs.verify("--attach", jobs.ids["right"], code=0)


def test_a_suspended_job_is_said_so(jobs: Jobs, spinning: str) -> None:
    assert jobs.cluster.run("scontrol", "suspend", spinning).returncode == 0
    try:
        said = jobs.verify("--attach", spinning, code=3)
    finally:
        jobs.cluster.run("scontrol", "resume", spinning)
    assert f"job {spinning} is SUSPENDED" in said


def subprocess_error(jobs: Jobs, job: str) -> str:
    line = [sys.executable, "-m", "hpclaunch", "verify", "--site", "generic-slurm", "--attach", job]
    answer = subprocess.run(line, env=jobs.cluster.environment(), capture_output=True, text=True)
    assert answer.returncode == 4
    return answer.stderr


def ready(folder: Path, name: str, count: int) -> None:
    while len(list(folder.glob(f"{name}.ready.*"))) < count:
        time.sleep(0.1)


def started(jobs: Jobs, name: str, text: str, count: int) -> Iterator[str]:
    """The id of a running batch script, once its ranks have said that they are there."""
    file = jobs.folder / f"{name}.sh"
    file.write_text(text)
    job = jobs.cluster.run("sbatch", "--parsable", str(file)).stdout.strip()
    ready(jobs.folder, name, count)
    yield job
    jobs.cluster.run("scancel", job)


def rank(folder: Path, name: str, gpu: str, cpu: str) -> str:
    """What a rank of these scripts does: it binds itself, takes a GPU and sleeps."""
    own = f"export ROCR_VISIBLE_DEVICES={gpu}; taskset -cp {cpu} $$ > /dev/null"
    return f"{own}; touch {folder}/{name}.ready.$SLURM_STEP_ID.$SLURM_PROCID; exec sleep 600"


def two_ranks(jobs: Jobs, name: str, gpus: str) -> Iterator[str]:
    """Two ranks of one node with these GPUs, not bound by Slurm."""
    program = rank(jobs.folder, name, gpus, RIGHT)
    head = f"#!/bin/bash\n#SBATCH --nodes=1 --ntasks=2 --output={jobs.folder}/{name}.log\n"
    yield from started(jobs, name, f"{head}srun --mpi=none --cpu-bind=none bash -c '{program}'\n", 2)


@pytest.fixture
def one_gpu(jobs: Jobs) -> Iterator[str]:
    yield from two_ranks(jobs, "shared", "0")


def test_two_ranks_on_one_gpu_are_named(jobs: Jobs, one_gpu: str) -> None:
    text = jobs.verify("--attach", one_gpu, code=1)
    assert "2 of 2 ranks have a wrong binding: rank 0 (gpu-shared), 1 (gpu-shared)" in text
    assert "rule ranks-share-gpus: " in text
    lines = jobs.verify("--attach", one_gpu, "--summary", code=1).splitlines()
    assert [line.split()[1:] for line in lines[:2]] == [
        ["step", "ranks", "verdict", "which"],
        ["0", "2", "gpu-shared", "0,1"],
    ]


@pytest.fixture
def mixed_sets(jobs: Jobs) -> Iterator[str]:
    yield from two_ranks(jobs, "mixed", "$([ $SLURM_LOCALID = 1 ] && echo 0 || echo 0,1)")


def test_a_rank_with_one_gpu_of_anothers_set_shares_it(jobs: Jobs, mixed_sets: str) -> None:
    text = jobs.verify("--attach", mixed_sets, code=1)
    assert "2 of 2 ranks have a wrong binding: rank 0 (gpu-shared), 1 (gpu-shared)" in text
    assert "share 1 GPU (GPU 0; ROCR_VISIBLE_DEVICES=0,1)" in text


@pytest.fixture
def spinning(jobs: Jobs) -> Iterator[str]:
    """A rank of 7 threads that compute on one core, and one of 7 threads that sleep on the other."""
    program = jobs.folder / "threads.py"
    program.write_text(
        "import hashlib, os, threading, time\n"
        "def spin():\n    while True: hashlib.pbkdf2_hmac('sha256', b'x', b'y', 200000)\n"
        "def wait():\n    time.sleep(600)\n"
        "kind = wait if os.environ['SLURM_PROCID'] == '1' else spin\n"
        "for _ in range(7): threading.Thread(target=kind, daemon=True).start()\n"
        f"open('{jobs.folder}/spin.ready.' + os.environ['SLURM_PROCID'], 'w').close()\n"
        "time.sleep(600)\n"
    )
    line = f"export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; exec taskset -c {RIGHT} {sys.executable} {program}"
    head = f"#!/bin/bash\n#SBATCH --nodes=1 --ntasks=2 --output={jobs.folder}/spin.log\n"
    yield from started(jobs, "spin", f"{head}srun --mpi=none --cpu-bind=none bash -c '{line}'\n", 2)


def test_threads_that_run_on_one_core_are_too_many_and_those_that_sleep_are_not(
    jobs: Jobs, spinning: str
) -> None:
    text = jobs.verify("--attach", spinning, code=1)
    assert "1 of 2 ranks have a wrong binding: rank 0 (more-threads-than-cpus)" in text
    assert "rank 0: 7 threads that run, at two looks 0.2 s apart, on 1 CPUs" in text
    assert "rule threads-over-cpus: " in text
    assert "right would be" not in text, "its cores are right"


@pytest.fixture
def two_steps(jobs: Jobs) -> Iterator[str]:
    steps = [(RIGHT, "$SLURM_LOCALID", 2), ("0", "1", 1)]
    programs = [(rank(jobs.folder, "two", gpu, cpu), count) for cpu, gpu, count in steps]
    srun = "srun --mpi=none --overlap --cpu-bind=none"
    lines = [f"{srun} -n {count} bash -c '{program}' &" for program, count in programs]
    head = f"#!/bin/bash\n#SBATCH --nodes=1 --ntasks=2 --output={jobs.folder}/two.log"
    yield from started(jobs, "two", "\n".join([head, lines[0], "sleep 2", lines[1], "wait", ""]), 3)


def test_steps_that_run_at_once_are_all_named_and_one_can_be_chosen(jobs: Jobs, two_steps: str) -> None:
    text = jobs.verify("--attach", two_steps, code=1)
    assert "step 0:" in text
    assert "rank 1 (gpu-shared), 0 of step 1 (gpu-shared)" in text
    assert "rank 0 of step 1 shares GPU 1 and CPUs 0 of " in text
    chosen = document(jobs.verify("--attach", f"{two_steps}.0", "--json", code=0))
    assert [one["step"] for one in chosen["details"]] == ["0", "0"]
    assert "steps with processes: 0, 1\n" in jobs.verify("--attach", f"{two_steps}.7", code=3)


@pytest.fixture
def components(jobs: Jobs) -> Iterator[str]:
    program = rank(jobs.folder, "het", "1", "0")
    head = f"#!/bin/bash\n#SBATCH --nodes=1 --ntasks=1 --output={jobs.folder}/het.log\n#SBATCH hetjob\n"
    line = f"srun --mpi=none --cpu-bind=none --het-group=0,1 bash -c '{program}'\n"
    yield from started(jobs, "het", f"{head}#SBATCH --nodes=2 --ntasks=2\n{line}", 3)


def test_the_components_of_a_heterogeneous_job_are_one_job(jobs: Jobs, components: str) -> None:
    for name in (components, f"{components}+1"):
        found = document(jobs.verify("--attach", name, "--json", code=0))
        assert [one["rank"] for one in found["ranks"]] == [0, 1, 2]
        assert len({one["host"] for one in found["ranks"]}) == 3
    text = jobs.verify("--attach", str(int(components) + 1), code=3)
    assert f"name that one: {components}+1" in text


def test_a_node_without_an_answer_is_named(jobs: Jobs) -> None:
    """A slurmd that hangs: srun waits for it, and gives up after SLURM's time for messages."""
    node = jobs.cluster.run("squeue", "-h", "-j", jobs.ids["right"], "-o", "%N").stdout.strip()
    name = jobs.cluster.run("scontrol", "show", "hostnames", node).stdout.split()[1]
    daemon = next(
        one for one in psutil.process_iter(["cmdline"])
        if one.info["cmdline"] and one.info["cmdline"][0].endswith("slurmd") and name in one.info["cmdline"]
        and str(jobs.cluster.conf) in one.info["cmdline"]
    )  # fmt: skip
    daemon.suspend()
    try:
        said = jobs.verify("--attach", jobs.ids["right"], code=4)
    finally:
        daemon.resume()
    assert f"1 of 2 nodes of job {jobs.ids['right']} have answered; no answer from {name}" in said
