"""GPUs of this machine, where no site says which variable shows them: made up in a tree of /sys."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.gpu.kit import BUSES, with_gpus
from tests.own_process import hpclaunch

TWO_CPUS = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two ranks need two CPUs")
SHOW = 'echo "rank $RANK sees $CUDA_VISIBLE_DEVICES in $CUDA_DEVICE_ORDER"'


def submit(root: Path, *words: str, **environment: str) -> dict[str, str]:
    env = {**os.environ, "HPCLAUNCH_SYSROOT": str(root), **environment}
    answer = hpclaunch(
        "submit", "--site", "local", *words, "--wait", "--json", "--", "bash", "-c", SHOW, env=env
    )
    assert answer.returncode == 0, answer.stderr
    job: dict[str, str] = json.loads(answer.stdout)
    return job


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with_gpus(tmp_path / "root")
    return tmp_path / "root"


@TWO_CPUS
@pytest.mark.slow
def test_each_rank_sees_the_planned_gpus_and_proves_its_own(root: Path) -> None:
    job = submit(root, "--tasks", "2")
    seen = re.findall(r"rank (\d) sees (\S*) in (\S*)", Path(job["log"]).read_text())
    assert sorted(seen) == [("0", "0,1", "PCI_BUS_ID"), ("1", "0,1", "PCI_BUS_ID")]
    ranks = json.loads(hpclaunch("verify", job["id"], "--json").stdout)["ranks"]
    assert [(rank["gpus"], rank["bus"], rank["verdict"]) for rank in ranks] == [
        ("0", BUSES[0], "ok"),
        ("1", BUSES[1], "ok"),
    ]


@TWO_CPUS
@pytest.mark.slow
def test_a_choice_of_the_shell_holds(root: Path) -> None:
    job = submit(root, "--tasks", "2", CUDA_VISIBLE_DEVICES="1")
    assert set(re.findall(r"sees (\S*) in", Path(job["log"]).read_text())) == {"1"}


@pytest.mark.slow
def test_a_profile_of_the_node_names_vendor_and_variable(root: Path, tmp_path: Path) -> None:
    env = {**os.environ, "HPCLAUNCH_SYSROOT": str(root)}
    made = hpclaunch("sites", "new", "here", "--extends", "generic-slurm", cwd=tmp_path, env=env)
    assert made.returncode == 0, made.stderr
    site = json.loads(hpclaunch("sites", "show", "here", "--json", cwd=tmp_path, env=env).stdout)
    assert (site["node"]["gpu_vendor"], len(site["node"]["gpus"])) == ("nvidia", 2)
    assert site["binding"]["gpu_visible_var"] == "CUDA_VISIBLE_DEVICES"
