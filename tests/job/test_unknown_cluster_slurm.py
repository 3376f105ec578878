"""A cluster that no profile describes: Slurm is asked for its nodes, and jobs get GPUs and cores at once.

The GPUs are made up (files in place of devices), the Slurm is real.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.cpuset import parse_cpu_list
from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("unknown_cluster")]


def _first_threads() -> list[int]:
    """The first CPU of each core that this process may use."""
    mine = os.sched_getaffinity(0)
    folder = Path("/sys/devices/system/cpu")
    siblings = (
        parse_cpu_list((folder / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip())
        for cpu in mine
    )
    return sorted({min(each & mine) for each in siblings})


CORES = _first_threads()
CPUS = len(CORES)


@pytest.fixture(scope="module")
def many_kinds() -> Iterator[Slurm]:
    """Nodes with 1, 2, 4 and 8 GPUs of four types, one with MIG instances, one without GPUs."""
    cluster = Slurm(
        NODES="6",
        NODEGRES="gpu:t4:1 gpu:v100:2 gpu:a100:4 gpu:h100:8 gpu:a30:1,gpu:1g.6gb:4 none",
        GPUFLAGS="nvidia_gpu_env",
        HW="Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=480000",
        PARTITIONS="PartitionName=gpu Nodes=n[1-5] Default=YES MaxTime=1-00:00:00 State=UP\n"
        "PartitionName=cpu Nodes=n6 MaxTime=2-00:00:00 State=UP",
    )
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def as_here() -> Iterator[Slurm]:
    """Two nodes that have this machine's cores, so ranks can bind themselves, and a GPU for each core."""
    cluster = Slurm(
        NODES="2",
        NODEGRES=f"gpu:a100:{CPUS} gpu:a100:{CPUS}",
        GPUFLAGS="nvidia_gpu_env",
        HW=f"Sockets=1 CoresPerSocket={CPUS} ThreadsPerCore=1 RealMemory=4000",
        EXTRA="SelectTypeParameters=CR_Core_Memory",
    )
    try:
        yield cluster.start()
    finally:
        cluster.stop()


def submit(cluster: Slurm, folder: Path, *options: str, program: str) -> dict[str, Any]:
    """Submit a program of one's own without naming a site, wait for it, and return the job with its log."""
    (folder / "train.py").write_text(program)
    env = {**os.environ, "SLURM_CONF": str(cluster.conf)}
    answer = hpclaunch(
        "submit", *options, "--wait", "--json", "--", "python3", "train.py", cwd=folder, env=env
    )
    assert answer.returncode == 0, answer.stderr
    job: dict[str, Any] = json.loads(answer.stdout)
    return {**job, "said": answer.stderr, "text": Path(job["log"]).read_text()}


SHOWS = """
import os
print("rank", os.environ["RANK"], "sees", os.environ.get("CUDA_VISIBLE_DEVICES", "none"),
      "cpus", os.environ.get("SLURM_CPUS_PER_TASK", "none"), flush=True)
if False:
    import torch
"""


@pytest.mark.parametrize(
    ("options", "ranks", "sees", "cpus"),
    [
        ((), 8, "0,1,2,3,4,5,6,7", 16),
        (("--gpu-type", "a100"), 4, "0,1,2,3", 32),
        (("--gpu-type", "v100"), 2, "0,1", 64),
        (("--gpu-type", "t4"), 1, "0", 128),
        (("--gpu-type", "H100", "--tasks-per-node", "2"), 2, "[0-7],[0-7]", 16),
        (("--gpu-type", "1g.6gb"), 1, "[0-9]", 32),
        (("--gpus-per-task", "0"), 1, "none", 128),
        (("--gpus-per-task", "0", "--no-exclusive", "--cpus-per-task", "2"), 1, "none", 4),
        (("--partition", "cpu", "--gpus-per-task", "0"), 1, "none", 128),
    ],
)
def test_a_torch_job_gets_gpus_and_its_part_of_the_cores(
    many_kinds: Slurm, tmp_path: Path, options: tuple[str, ...], ranks: int, sees: str, cpus: int
) -> None:
    job = submit(many_kinds, tmp_path, *options, program=SHOWS)
    found = re.findall(r"^rank (\d+) sees (\S+) cpus (\S+)$", job["text"], re.MULTILINE)
    assert sorted(int(rank) for rank, _, _ in found) == list(range(ranks)), job["text"]
    assert all(re.fullmatch(sees, seen) for _, seen, _ in found), found
    assert {each for _, _, each in found} == {str(cpus)}
    assert "no profile describes lab" in job["said"]


def test_ranks_bind_themselves_and_prove_it(as_here: Slurm, tmp_path: Path) -> None:
    program = SHOWS + "print('bound to', sorted(os.sched_getaffinity(0)), flush=True)\n"
    job = submit(as_here, tmp_path, "--nodes", "2", program=program)
    bound = re.findall(r"bound to \[(\d+)\]", job["text"])
    assert sorted(map(int, bound)) == sorted([*CORES, *CORES])
    assert job["binding"]["finding"] == f"all {2 * CPUS} ranks got their binding"
    shown = json.loads(hpclaunch("verify", job["id"], "--json").stdout)
    assert {rank["planned"] for rank in shown["ranks"]} == set(map(str, CORES))


def test_what_no_node_has_is_refused_before_the_queue(many_kinds: Slurm, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SHOWS)

    def refused(*options: str) -> str:
        words = ("submit", *options, "--", "python3", "train.py")
        answer = hpclaunch(*words, cwd=tmp_path, env={**os.environ, "SLURM_CONF": str(many_kinds.conf)})
        assert answer.returncode == 3, answer.stderr
        return answer.stderr

    assert "no node has such GPUs" in refused("--gpu-type", "b200")
    assert "there are t4, v100, a100, h100, a30, 1g.6gb" in refused("--gpu-type", "b200")
    assert "1 node such as n3 with 4 x a100" in refused("--gpu-type", "a100", "--nodes", "2")
    assert "shows gpu, cpu, not gpus" in refused("--partition", "gpus")
    assert "it has no node with GPUs" in refused("--partition", "cpu")
    assert "between them" in refused("--gpu-type", "1g.6gb", "--tasks-per-node", "2")


def test_without_an_answer_a_gpu_program_is_refused_with_what_to_say(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SHOWS)
    words = ("submit", "--site", "generic-slurm", "--dry-run", "--", "python3", "train.py")
    answer = hpclaunch(*words, cwd=tmp_path, env={**os.environ, "SLURM_CONF": "/nonexistent"})
    assert "submitting this job is refused" in answer.stderr
    assert "torch uses GPUs; the GPUs per node are not known" in answer.stderr
    assert "--gpus-per-task 1 --tasks-per-node 4 --cpus-per-task 16" in answer.stderr
