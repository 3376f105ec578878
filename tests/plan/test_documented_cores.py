"""Cores and threads that a site documents for the ranks of one framework."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.in_process import hpclaunch_here
from tests.scripts import bare

AURORA = ("--site", "aurora", "--account", "MyProject", "--nodes", "1", "--software", "none")
DAINT = ("--site", "daint", "--account", "g123", "--software", "none")
PROFILE = """\
schema: 1
name: ours
description: a machine of ours
scheduler: {kind: slurm, launcher: srun, source: page}
sources: {page: {url: 'https://site.example/cores', checked: 2026-11-01}}
node:
  cpu_model: made up
  cores: 8
  threads_per_core: 2
  numa: [{id: 0, cores: 0-3}, {id: 1, cores: 4-7}]
  gpus: [{numa: 0}, {numa: 1}]
  gpu_vendor: nvidia
  source: page
binding:
  cpu: mask_cpu
  gpu_visible_var: CUDA_VISIBLE_DEVICES
  source: page
  cores_for: {torch: {cores: ['CORES', 6-7], reason: the rest is for workers, source: page}}
  threads_for: {jax: {value: 1, reason: as the page has it, source: page}}
"""


def script(*words: str, framework: str, folder: Path) -> str:
    answer = hpclaunch_here(
        "submit", *words, "--framework", framework, "--dry-run", "--", "./train", folder=folder
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_torch_on_aurora_leaves_cores_to_oneccl(tmp_path: Path) -> None:
    """ALCF's page on PyTorch, "When using all 12 PVC tiles"."""
    assert "--cpu-bind list:4-7:8-11:12-15:" in script(*AURORA, framework="torch", folder=tmp_path)
    assert "--cpu-bind list:1-8:9-16:" in script(*AURORA, framework="mpi4py", folder=tmp_path)
    asked = script(*AURORA, "--cpus-per-task", "8", framework="torch", folder=tmp_path)
    assert "--cpu-bind list:1-8:" in asked
    six = script(*AURORA, "--tasks-per-node", "6", framework="torch", folder=tmp_path)
    assert "--cpu-bind list:4-7:" not in six


def test_fewer_threads_where_the_site_says_so(tmp_path: Path) -> None:
    torch = script(*DAINT, framework="torch", folder=tmp_path)
    assert "export OMP_NUM_THREADS=8\n" in bare(torch)
    assert "OMP_NUM_THREADS=72" in script(*DAINT, framework="jax", folder=tmp_path)
    assert "OMP_NUM_THREADS=4" in script(*DAINT, "--cpus-per-task", "4", framework="torch", folder=tmp_path)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    (tmp_path / "ours.yaml").write_text(PROFILE.replace("CORES", "2-3"))
    return tmp_path


def test_masks_and_the_head_of_the_script_follow(ours: Path) -> None:
    text = script("--site", "./ours.yaml", framework="torch", folder=ours)
    assert "--cpu-bind=mask_cpu:0xc,0xc0" in bare(text)
    assert "#   rank 0: CPUs 2-3  GPU 0  NUMA node 0" in text
    assert (
        "Cores as the site documents them for torch: the rest is for workers (https://site.example/cores"
        in text
    )
    assert "0xf,0xf0" in script("--site", "./ours.yaml", framework="mpi4py", folder=ours)
    assert "export OMP_NUM_THREADS=1" in script("--site", "./ours.yaml", framework="jax", folder=ours)


@pytest.mark.parametrize(
    ("cores", "said"), [("7-9", "not cores of the node"), ("5-6", "belong to a rank before")]
)
def test_cores_that_the_node_has_not_are_a_mistake(cores: str, said: str, ours: Path) -> None:
    (ours / "ours.yaml").write_text(PROFILE.replace("CORES", cores))
    answer = hpclaunch_here("sites", "validate", "./ours.yaml", folder=ours)
    assert answer.returncode == 3
    assert said in answer.stderr
