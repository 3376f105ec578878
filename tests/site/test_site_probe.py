"""Probes: a real Slurm is asked; the answers are compared with profiles, and profiles written from them."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hpclaunch.probes.compare_probe import (
    Answer,
    Names,
    ProbeDocument,
    ProbeFile,
    compare,
    read_probe,
    without_names,
)
from hpclaunch.probes.gather_probe import node_answers, private_names
from hpclaunch.probes.repair_profile import profile_of
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from hpclaunch.scheduler.slurm.slurm_nodes import reduced
from hpclaunch.site.load_profile import load_site
from tests.own_process import hpclaunch
from tests.scheduler.test_slurm_nodes import NODE, USUAL, answer
from tests.testbed.cluster import Slurm

PROBES = sorted((Path(__file__).parents[1] / "data/probes").glob("*.json"))


@pytest.fixture(scope="module")
def probed() -> Iterator[Slurm]:
    """Three nodes with four GPUs and one without; the real Slurm, the hardware made up."""
    cluster = Slurm(
        NODES="4",
        NODEGRES="gpu:a100:4 gpu:a100:4 gpu:a100:4 none",
        GPUFLAGS="nvidia_gpu_env",
        HW="Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=480000",
        PARTITIONS="PartitionName=gpu Nodes=n[1-3] Default=YES MaxTime=2-00:00:00 State=UP\n"
        "PartitionName=cpu Nodes=n4 MaxTime=1-00:00:00 State=UP",
    )
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture
def at_home(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


def run(cluster: Slurm, env: dict[str, str], folder: Path, *words: str, code: int = 0) -> str:
    done = hpclaunch(*words, cwd=folder, env={**env, "SLURM_CONF": str(cluster.conf)})
    assert done.returncode == code, done.stderr
    return done.stdout


RIGHT = """\
schema: 1
name: ours
description: the tests' cluster
extends: generic-slurm
scheduler: {version: '22.05', gpu_request: gpus-per-node}
queues:
  gpu: {max_nodes: 3, max_walltime: 2-00:00:00, whole_node: false}
  cpu: {max_nodes: 1, max_walltime: 1-00:00:00, whole_node: false, gpus: false}
node:
  cpu_model: made up
  cores: 64
  threads_per_core: 2
  memory_gib: 512
  gpu_type: a100
  gpus: [{}, {}, {}, {}]
  count: 3
binding: {cpu: cores}
mpi: {plugin: none, plugin_open: false}
"""
MISTAKES = {
    "queues.gpu.max_walltime": ("max_walltime: 2-00:00:00", "max_walltime: 7-00:00:00"),
    "queues.gpu.max_nodes": ("max_nodes: 3", "max_nodes: 30"),
    "node.memory_gib": ("memory_gib: 512", "memory_gib: 1024"),
    "node.gpus": ("gpus: [{}, {}, {}, {}]", "gpus: [{}, {}, {}, {}, {}, {}, {}, {}]"),
    "mpi.plugin": ("plugin: none,", "plugin: pspmix,"),
}


def facts(text: str) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in json.loads(text)["facts"]}


@pytest.mark.slurm
@pytest.mark.xdist_group("site_probe")
def test_five_planted_mistakes_are_found_and_repaired(
    probed: Slurm, at_home: dict[str, str], tmp_path: Path
) -> None:
    sites = tmp_path / "config/hpclaunch/sites"
    sites.mkdir(parents=True, exist_ok=True)
    usual = ("sites", "probe", "--yes", "--json", "--output", "probe.json", "--site")
    (tmp_path / "ours.yaml").write_text(RIGHT)
    right = facts(run(probed, at_home, tmp_path, *usual, "./ours.yaml"))
    assert not [key for key, row in right.items() if row["verdict"] == "wrong"]
    wrong = RIGHT
    for before, after in MISTAKES.values():
        assert before in wrong
        wrong = wrong.replace(before, after)
    (tmp_path / "ours.yaml").write_text(wrong)
    found = facts(run(probed, at_home, tmp_path, *usual, "./ours.yaml", code=1))
    assert {key for key, row in found.items() if row["verdict"] == "wrong"} == set(MISTAKES)
    (sites / "faulty.yaml").write_text(wrong.replace("name: ours", "name: faulty"))
    run(probed, at_home, tmp_path, *usual, "faulty", "--write", "faulty", code=1)
    text = (sites / "faulty.yaml").read_text()
    (kept,) = sites.glob("faulty.yaml.before-*")
    assert kept.read_text() == wrong.replace("name: ours", "name: faulty")
    assert "evidence: measured" in text
    assert "note: Slurm 22.05" in text
    repaired = facts(run(probed, at_home, tmp_path, *usual, "faulty"))
    assert not [key for key, row in repaired.items() if row["verdict"] == "wrong"]
    assert {repaired[key]["verdict"] for key in MISTAKES if key in repaired} == {"right"}
    assert "mpi.plugin" not in repaired, "left open: which one fits is looked up for each job"


@pytest.mark.slurm
@pytest.mark.xdist_group("site_probe")
def test_a_machine_without_a_profile_gets_a_right_one(
    probed: Slurm, at_home: dict[str, str], tmp_path: Path
) -> None:
    words = ("sites", "probe", "--yes", "--json", "--output", "probe.json", "--write", "newlab")
    run(probed, at_home, tmp_path, *words)
    file = tmp_path / "probe.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert run(probed, at_home, tmp_path, "sites", "validate", "newlab") == "newlab: ok\n"
    again = facts(run(probed, at_home, tmp_path, *words[:4], "--output", "again.json", "--site", "newlab"))
    verdicts = {key: row["verdict"] for key, row in again.items()}
    assert "wrong" not in verdicts.values()
    assert verdicts["node.gpus"] == verdicts["queues.gpu.max_walltime"] == "right"
    (tmp_path / "train.py").write_text("import torch\n")
    script = run(
        probed, at_home, tmp_path, "submit", "--site", "newlab", "--dry-run", "--", "python", "train.py"
    )
    assert "--gpus-per-node=a100:4" in script
    assert "--partition=gpu" in script
    counted = run(probed, at_home, tmp_path, "sites", "facts", "newlab", "--json")
    assert json.loads(counted)["sites"]["newlab"]["by_evidence"]["measured"] >= 3
    kept = run(probed, at_home, tmp_path, "sites", "import", "probe.json", "--into", "kept", "--as", "lab")
    assert "facts" in kept
    assert read_probe(tmp_path / "kept/lab.json").scheduler == "slurm"


@pytest.mark.slurm
@pytest.mark.xdist_group("site_probe")
def test_a_node_is_asked_by_two_ranks(probed: Slurm, at_home: dict[str, str], tmp_path: Path) -> None:
    words = ("sites", "probe", "--yes", "--json", "--output", "probe.json", "--on-a-node")
    found = facts(run(probed, at_home, tmp_path, *words))
    assert found["scheduler.launcher, rank"]["verdict"] == "right"
    assert found["scheduler.launcher, local rank"]["measured"] == "SLURM_LOCALID"
    node = read_probe(tmp_path / "probe.json").node
    assert "CPU(s):" in node["lscpu.txt"].stdout
    assert "SLURM_PROCID=0" in node["environment"].stdout
    assert "HOME" not in node["environment"].stdout, "other variables are the user's own affair"


def probe_of(**texts: str) -> ProbeFile:
    answers = {name: Answer(command=name, exit_code=0, stdout=text) for name, text in texts.items()}
    return ProbeFile(hpclaunch="0", day=dt.date(2026, 11, 23), site="aurora", scheduler="pbs", node=answers)


def test_variables_that_a_launcher_does_not_set_are_found() -> None:
    """Of several variables that a launcher may set, one is enough."""
    polaris = load_site("polaris")
    there = compare(probe_of(environment="PALS_RANKID=0\nPALS_LOCAL_RANKID=0\nHOME\n"), polaris)
    assert {row.key: row.verdict for row in there if row.key.startswith("scheduler.launcher")} == {
        "scheduler.launcher, rank": "right",
        "scheduler.launcher, local rank": "right",
    }
    missing = compare(probe_of(environment="PMIX_RANK=0\nHOME\n"), polaris)
    assert {row.verdict for row in missing if row.key.startswith("scheduler.launcher")} == {"wrong"}


def test_a_fallback_of_nccl_is_found() -> None:
    said = "n1:1:1 [0] NCCL INFO Using network Socket\nsum 2 of 2 ranks by torch 2.8, nccl\n"
    rows = {row.key: row for row in compare(probe_of(**{"two ranks": said}), load_site("clariden"))}
    assert (rows["two ranks"].verdict, rows["fabric.plugin"].verdict) == ("right", "wrong")


def test_the_answers_of_a_node_are_cut_out_of_its_log() -> None:
    log = "noise\nhpclaunch-probe begin limits\na\nb\n\nhpclaunch-probe end limits 0\n"
    log += "hpclaunch-probe begin cut\nx\n"
    assert node_answers(log) == {"limits": Answer(command="limits", exit_code=0, stdout="a\nb\n\n")}


def test_no_secret_of_a_variable_is_kept_even_with_names() -> None:
    log = "hpclaunch-probe begin environment\nSLURM_JWT=eyJhbGc\nSLURM_PROCID=0\nMPI_TOKEN=abc\n\n"
    kept = node_answers(log + "hpclaunch-probe end environment 0\n")["environment"].stdout
    assert kept == "SLURM_JWT=...\nSLURM_PROCID=0\nMPI_TOKEN=...\n\n"


def test_nodes_that_are_alike_are_one_line() -> None:
    lines = [NODE.format(**{**USUAL, "name": f"n{number}"}) for number in range(500)]
    lines += [NODE.format(**{**USUAL, "name": "m1", "gres": "gpu:v100:2"})]
    short = reduced("\n".join(lines) + "\n")
    assert len(short.splitlines()) == 2
    assert "Reason" not in short
    assert [kind.nodes for kind in SLURM.parse_facts({"nodes": answer(short)}).nodes] == [500, 1]


def test_names_are_found_in_the_answers() -> None:
    shown = "PartitionName=p AllowGroups=physics,chem AllowAccounts=proj77 DenyAccounts=ALL\n"
    probe = probe_of(queues=shown, environment="SLURM_JOB_ACCOUNT=proj42\nSLURM_JOB_USER=somebody\n")
    clean = without_names(probe, private_names(probe))
    left = clean.node["queues"].stdout + clean.node["environment"].stdout
    assert not re.search("physics|chem|proj77|proj42|somebody", left), left
    assert "DenyAccounts=ALL" in left


SECRET = st.from_regex(r"[a-z]{3,8}[0-9]{0,3}", fullmatch=True).filter(
    lambda name: not re.search("node|host|user|project|example|home|probe|org|alloc|gres|state", name)
)
GLUE = st.sampled_from([" ", "=", ",", "/", "|", '"', "@", ":", "\n", ";"])


@pytest.mark.slow
@given(
    st.lists(SECRET, min_size=4, max_size=4, unique=True),
    st.lists(st.tuples(GLUE, st.integers(0, 5)), max_size=20),
)
def test_no_private_name_survives(secrets: list[str], pieces: list[tuple[str, int]]) -> None:
    user, account, login, node = secrets
    names = Names(
        users=(user,),
        homes=(f"/home/{user}",),
        hosts=(f"{login}.{account}.edu", f"{node}-0012"),
        accounts=(account,),
    )
    words = [user, account, f"{login}.{account}.edu", f"{node}-0012", f"{node}-[1-4,7]", f"/home/{user}"]
    text = "".join(f"{glue}{words[number]}" for glue, number in pieces)
    found = without_names(probe_of(config=text), names).node["config"].stdout
    left = re.findall(r"[a-z]+[0-9]*", found.replace("example.org", ""))
    assert not set(secrets) & set(left), found


@pytest.mark.parametrize("file", PROBES, ids=lambda path: path.stem)
def test_each_kept_probe_makes_a_profile_in_which_nothing_is_wrong(file: Path, tmp_path: Path) -> None:
    """Those of PBS and Flux are recorded answers of single commands, and their files say so."""
    probe = read_probe(file)
    generic = load_site(probe.site)
    assert ProbeDocument(facts=compare(probe, generic)).facts
    assert (probe.origin == "measured") == (probe.scheduler == "slurm")
    path = tmp_path / "new.yaml"
    path.write_text(profile_of(probe, "new", file.name, generic, None))
    verdicts = {row.key: row.verdict for row in compare(probe, load_site(str(path)))}
    assert "wrong" not in verdicts.values(), verdicts
    assert verdicts["node.gpus"] == verdicts["scheduler.version"] == "right"


def test_cores_that_are_not_confined_are_a_wrong_fact() -> None:
    """A profile that says so lets ranks bind themselves on parts of nodes, to cores of other jobs."""
    text = "SelectType = select/cons_tres\nTaskPlugin = task/affinity\n"
    probe = ProbeFile(
        hpclaunch="0",
        day=dt.date(2026, 11, 23),
        site="generic-slurm",
        scheduler="slurm",
        login={"config": Answer(command="scontrol show config", exit_code=0, stdout=text)},
    )
    generic = load_site("generic-slurm")
    confined = replace(generic, binding=replace(generic.binding, confined=True))
    verdicts = [
        {row.key: row.verdict for row in compare(probe, profile)}.get("binding.confined")
        for profile in (generic, confined)
    ]
    assert verdicts == [None, "wrong"]
