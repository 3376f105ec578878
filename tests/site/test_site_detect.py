"""Detection: strong evidence decides, weak evidence never, contradictions are unknown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpclaunch.site.detect import Detection, Facts, detect, gather
from hpclaunch.site.load_profile import load_all, site_names
from tests.in_one_test import in_one_test
from tests.profiles import shipped
from tests.site.conftest import Write

PROFILES = {name: shipped(name) for name in site_names()}


def look(
    environ: dict[str, str] | None = None,
    hostname: str = "laptop",
    cluster: str | None = None,
    gpus: tuple[str, ...] = (),
) -> Detection:
    facts = Facts(environ=environ or {}, hostname=hostname, cluster_name=cluster, gpu_models=gpus)
    return detect(facts, PROFILES)


@pytest.mark.parametrize("name", ["lumi", "LUMI"])
def test_slurms_cluster_name_decides(name: str) -> None:
    found = look({"SLURM_CLUSTER_NAME": name}, "nid001234", name, ("gfx90a",))
    assert found.site == "lumi-g"
    assert found.reason == f"SLURM_CLUSTER_NAME is {name}"
    weak = {item.site for item in found.evidence if item.strength == "weak"}
    assert weak == {"lumi-g", "alps-gh200", "daint", "clariden", "santis", "frontier", "perlmutter"}


def test_shared_host_names_and_gpus_never_decide() -> None:
    found = look(hostname="nid001234", gpus=("NVIDIA GH200 120GB",) * 4)
    assert found.site is None
    names = "alps-gh200, clariden, daint, jupiter, lumi-g, olivia, perlmutter, santis"
    assert found.reason.startswith(f"only weak evidence ({names})")
    assert {item.strength for item in found.evidence} == {"weak"}


def test_unique_host_names_decide_with_or_without_domain() -> None:
    assert look(hostname="daint-ln002").site == "daint"
    assert look(hostname="polaris-login-02.hsn.cm.polaris.alcf.anl.gov").site == "polaris"
    assert look(hostname="x3006c0s13b0n0.hsn.cm.polaris.alcf.anl.gov").site == "polaris"
    assert look(hostname="x3006c0s13b0n0").site is None
    assert look(hostname="xdaint-ln002").site is None


@in_one_test(
    "hostname, site",
    [
        ("login12.frontier.olcf.ornl.gov", "frontier"),
        ("frontier00042", "frontier"),
        ("login01.leonardo.local", "leonardo"),
        ("alogin1", "mn5-acc"),
        ("alogin2.bsc.es", "mn5-acc"),
        ("glogin1.bsc.es", None),
        ("jpbo-028-25", "jupiter"),
        ("login04.jupiter.fz-juelich.de", "jupiter"),
        ("login-1.betzy.sigma2.no", "betzy"),
        ("login12", None),
        ("login40", None),
    ],
)
def test_host_names_of_the_sites(hostname: str, site: str | None) -> None:
    assert look(hostname=hostname).site == site


def test_variables_decide_when_their_whole_value_matches() -> None:
    assert look({"PBS_JOBID": "7186680.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov"}).site == "polaris"
    assert look({"PBS_JOBID": "7186680.aurora-pbs-0001.hsn.cm.aurora.alcf.anl.gov"}).site is None
    assert look({"CLUSTER_NAME": "clariden"}).site == "clariden"
    assert look({"CLUSTER_NAME": "clariden-2"}).site is None
    assert look({"NERSC_HOST": "perlmutter"}, "nid001234").site == "perlmutter"


def test_contradictions_are_unknown_and_name_both() -> None:
    found = look({"CLUSTER_NAME": "daint"}, cluster="lumi")
    assert found.site is None
    assert found.reason == "strong evidence contradicts itself: it names daint and lumi-g"
    assert [item.what for item in found.evidence if item.site == "lumi-g"] == [
        "scontrol show config: ClusterName is lumi"
    ]


@pytest.mark.slow
def test_the_extending_profile_wins_over_its_base(write: Write) -> None:
    write("mine", text="schema: 1\nname: mine\npart_of: lumi-g\n")
    write("theirs", text="schema: 1\nname: theirs\npart_of: mine\n")
    profiles, _ = load_all()
    facts = Facts(hostname="x", cluster_name="lumi")
    assert detect(facts, profiles).site == "theirs"
    write("cousin", text="schema: 1\nname: cousin\npart_of: mine\n")
    profiles, _ = load_all()
    found = detect(facts, profiles)
    assert (found.site, "names cousin and theirs" in found.reason) == (None, True)


def test_nothing_known() -> None:
    assert look() == Detection(site=None, reason="no evidence for any site")


@pytest.fixture
def scontrol(tmp_path: Path) -> Path:
    """A folder for a program that plays scontrol."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder / "scontrol"


def script(path: Path, text: str) -> dict[str, str]:
    path.write_text(f"#!/bin/sh\necho called >> {path}.calls\n{text}\n")
    path.chmod(0o755)
    return {"PATH": f"{path.parent}:{os.environ['PATH']}", "HPCLAUNCH_SYSROOT": str(path.parent)}


def test_scontrol_is_asked_where_the_environment_is_silent(scontrol: Path) -> None:
    environ = script(scontrol, "echo 'Configuration data'; echo 'ClusterName             = lumi'")
    assert gather(environ).cluster_name == "lumi"
    assert (scontrol.parent / "scontrol.calls").exists()


def test_scontrol_is_not_asked_where_the_environment_answers(scontrol: Path) -> None:
    environ = script(scontrol, "echo 'ClusterName = other'")
    assert gather({**environ, "SLURM_CLUSTER_NAME": "lumi"}).cluster_name == "lumi"
    assert not (scontrol.parent / "scontrol.calls").exists()


@pytest.mark.parametrize(
    ("body", "note"),
    [
        (
            "echo 'slurm_load_ctl_conf error: no way' >&2; exit 1",
            "scontrol show config: slurm_load_ctl_conf error",
        ),
        ("exit 0", "no ClusterName in its answer"),
    ],
)
def test_a_scontrol_that_fails_is_noted(scontrol: Path, body: str, note: str) -> None:
    facts = gather(script(scontrol, body))
    assert facts.cluster_name is None
    assert note in facts.notes[0]


def test_a_scontrol_that_does_not_answer_is_noted(scontrol: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpclaunch.site.detect.SCONTROL_LIMIT_S", 0.2)
    facts = gather(script(scontrol, "exec sleep 60"))
    assert facts.cluster_name is None
    assert "did not answer within 0.2 s" in facts.notes[0]


def test_gpus_are_read_below_the_root(tmp_path: Path) -> None:
    for number in range(2):
        folder = tmp_path / f"proc/driver/nvidia/gpus/000{number}:01:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text("Model: \t\t NVIDIA GH200 120GB\nIRQ:   \t\t 5\nGPU UUID: \t ?\n")
    for number, version in enumerate((0, 90010, 110000, 120001)):
        folder = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{number}"
        folder.mkdir(parents=True)
        (folder / "properties").write_text(
            f"cpu_cores_count 0\ngfx_target_version {version}\nvendor_id 4098\n"
        )
    facts = gather({"HPCLAUNCH_SYSROOT": str(tmp_path), "PATH": ""})
    assert facts.gpu_models == ("NVIDIA GH200 120GB", "NVIDIA GH200 120GB", "gfx90a", "gfx1100", "gfx1201")
    assert facts.hostname
