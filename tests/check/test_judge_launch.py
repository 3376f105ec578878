"""Verdicts on plugins, ranks and sums, from what processes print."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from hpclaunch.check.check_report import AllreduceTimes, Check
from hpclaunch.check.facts import BuildFacts, LaunchFacts, Outcome
from hpclaunch.check.judge_build import Remedies, judge_versions
from hpclaunch.check.judge_launch import (
    judge_allreduce,
    judge_launch,
    judge_mpi_list,
    judge_setup,
    open_mpi_at_run_time,
    parse_mpi_list,
    tcp_below_gb_s,
)
from hpclaunch.remote.probe import MARK
from hpclaunch.site.load_profile import load_site
from hpclaunch.software.known_pairs import compatible, linked_mpi, mpi_family
from tests.check.verdicts import DATA
from tests.in_one_test import in_one_test
from tests.profiles import shipped

NEW = (DATA / "mpi-list" / "slurm-22.05-debian.txt").read_text()
OLD = (DATA / "mpi-list" / "slurm-20.11-old-form.txt").read_text()


def test_both_forms_of_the_list() -> None:
    assert parse_mpi_list(NEW) == ("pmix", "none", "cray_shasta", "pmi2", "pmix_v4")
    assert parse_mpi_list(OLD) == ("none", "openmpi", "pmi2", "cray_shasta")
    assert parse_mpi_list("srun: MPI types are... none pmi2\n") == ("none", "pmi2")
    assert parse_mpi_list("srun: error: Could not establish a configuration source\n") == ()


@in_one_test(
    "text, site, status",
    [
        (NEW, "olivia", "have"),
        (NEW.replace("\tpmix\n", ""), "olivia", "have"),  # pmix_v4 is left
        (OLD, "olivia", "missing"),
        (OLD, "lumi-g", "have"),  # the site's default is used
        ("MPI plugin types are...\n\tnone\n", "generic-slurm", "missing"),
        ("srun: error: fetch_config: DNS SRV lookup failed\n", "olivia", "unknown"),
    ],
)
def test_the_plugin_of_the_site(text: str, site: str, status: str) -> None:
    assert judge_mpi_list(text, "srun", load_site(site)).status == status


# --- ranks -------------------------------------------------------------------------------------------------


def said(*places: tuple[int, int], exit_code: int = 0, stderr: str = "", timed_out: bool = False) -> Outcome:
    lines = [
        MARK + json.dumps({"rank": rank, "size": size, "host": "n1", "library": "Open MPI v5.0.11"})
        for rank, size in places
    ]
    return Outcome(
        exit_code=exit_code, stdout="\n".join(lines), stderr=stderr, timed_out=timed_out, limit_s=9
    )


def launch(outcome: Outcome, via: str = "mpi4py", site: str | None = None) -> dict[str, Check]:
    facts = LaunchFacts(ranks={via: outcome}, ranks_started=2)
    found = judge_launch(facts, BuildFacts(), load_site(site) if site else None)
    return {check.name: check for check in found}


def test_ranks_that_are_one_world() -> None:
    assert launch(said((1, 2), (0, 2)))["mpi-launch"].status == "have"


def test_singletons_are_recognised_and_named() -> None:
    found = launch(said((0, 1), (0, 1)), site="olivia")["mpi-launch"]
    assert found.status == "missing"
    assert found.evidence.startswith("singletons: 2 ranks were started and each rank reports rank 0 of 1")
    assert "srun --mpi=list" in found.remedy
    assert "pmix" in found.remedy
    horovod = launch(said((0, 1), (0, 1)), via="pytorch")["horovod-launch"]
    assert horovod.status == "missing"
    assert "not Gloo alone" in horovod.remedy


def test_a_lost_rank_is_not_one_world() -> None:
    found = launch(said((0, 2), exit_code=1))["mpi-launch"]
    assert (found.status, "rank 0 of 2" in found.evidence) == ("missing", True)


def test_the_cause_is_picked_out_of_a_launchers_noise() -> None:
    noise = (
        "Traceback (most recent call last):\n  File x\n"
        "ImportError: /lib/libmpi_cxx.so.40: undefined symbol: ompi_mpi_errors_throw_exceptions\n"
        "-----\nprterun detected that one or more processes exited with non-zero status\n-----\n"
    )
    found = launch(said(exit_code=1, stderr=noise))["mpi-launch"]
    assert found.status == "missing"
    assert "undefined symbol: ompi_mpi_errors_throw_exceptions" in found.evidence


def test_a_launcher_that_refuses_here_may_work_in_jobs() -> None:
    refused = said(exit_code=1, stderr="mpiexec: this must be run in a job\n")
    assert launch(refused)["mpi-launch"].status == "unknown"
    assert launch(refused, site="polaris")["mpi-launch"].status == "missing"


def test_open_mpi_5_under_a_build_for_4_is_a_known_bad_pair() -> None:
    facts = LaunchFacts(ranks={"mpi4py": said((0, 2), (1, 2))}, ranks_started=2)
    assert open_mpi_at_run_time(facts) is None  # the line has no comma: it is cut off
    whole = MARK + json.dumps({"rank": 0, "size": 1, "library": "Open MPI v5.0.11, package: x"})
    facts = LaunchFacts(ranks={"mpi4py": Outcome(exit_code=0, stdout=whole)}, ranks_started=1)
    runtime = open_mpi_at_run_time(facts)
    assert runtime == "5.0.11"
    build = BuildFacts(linked={"pytorch": Outcome(exit_code=0, stdout=LDD)})
    (found,) = judge_versions(build, Remedies(), runtime)
    assert found.status == "missing"
    assert "which Open MPI 5 does not have" in found.evidence
    assert judge_versions(build, Remedies(), "4.1.4")[0].status == "have"


def test_what_proves_nothing_stays_unknown() -> None:
    assert launch(said(exit_code=124, timed_out=True))["mpi-launch"].status == "unknown"
    assert launch(said(exit_code=127))["mpi-launch"].status == "unknown"
    facts = LaunchFacts(not_started="no ranks were started: this is not a job")
    (found,) = judge_launch(facts, BuildFacts(), None)
    assert (found.name, found.status) == ("mpi-launch", "unknown")


# --- which MPI ---------------------------------------------------------------------------------------------


LDD = """\
\tlibmpi_cxx.so.40 => /lib/x86_64-linux-gnu/libmpi_cxx.so.40 (0x00007f20ff21d000)
\tlibmpi.so.40 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f20df21e000)
"""


def test_mpi_libraries_of_ldd() -> None:
    assert linked_mpi(LDD) == (
        ("libmpi_cxx.so.40", "/lib/x86_64-linux-gnu/libmpi_cxx.so.40"),
        ("libmpi.so.40", "not found"),
    )


@in_one_test(
    "text, name",
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI", "Open MPI"),
        ("MPICH Version:      5.0.2", "MPICH"),
        ("MPI VERSION    : CRAY MPICH version 8.1.29.37", "Cray MPICH"),
        ("Intel(R) MPI Library 2021.11 for Linux* OS", "Intel MPI"),
        ("libmpi_gnu_112.so.12 (/opt/cray/pe/lib64/libmpi_gnu_112.so.12)", "Cray MPICH"),
        ("libmpi.so.12 (/usr/lib/libmpi.so.12)", "MPICH"),
        ("libc.so.6", None),
    ],
)
def test_families(text: str, name: str | None) -> None:
    assert mpi_family(text) == name


def test_mpich_and_its_kin_fit_each_other_and_nothing_else() -> None:
    assert compatible("MPICH", "Cray MPICH")
    assert not compatible("Open MPI", "Cray MPICH")


@pytest.mark.parametrize(("site", "status"), [("olivia", "have"), ("lumi-g", "missing")])
def test_horovods_mpi_against_the_sites(site: str, status: str) -> None:
    linked = LDD.replace("not found", "/opt/lib/libmpi.so.40 (0x1)")
    build = BuildFacts(linked={"pytorch": Outcome(exit_code=0, stdout=linked)})
    found = {check.name: check for check in judge_launch(LaunchFacts(), build, load_site(site))}
    assert found["mpi-library"].status == status


# --- setup -------------------------------------------------------------------------------------------------


def test_the_line_of_the_environment_that_failed_is_named() -> None:
    stderr = "ERROR: Unable to locate a modulefile for 'LUMI/99'\n"
    stderr += "HPCLAUNCH-SETUP module load LUMI/99 partition/G\n"
    found = judge_setup(Outcome(exit_code=1, stderr=stderr))
    assert found.status == "missing"
    assert "stops at: module load LUMI/99 partition/G" in found.evidence
    assert "Unable to locate" in found.evidence


# --- sums --------------------------------------------------------------------------------------------------

OLIVIA = shipped("olivia")
DAINT = shipped("daint")


def sums(
    via: str = "horovod", nodes: int = 2, bus_gb_s: float = 90.0, wrong: int = 0, ranks: int = 8
) -> Outcome:
    size = {
        "message_bytes": 134217728,
        "seconds": 0.001,
        "bus_gb_s": bus_gb_s,
        "wrong": wrong,
        "first_wrong": "rank 3 on n2, element 7 of 9: 1.0, not 2.0" if wrong else None,
    }
    document = {
        "via": via,
        "library": "Horovod on cuda, through NCCL",
        "ranks": ranks,
        "hosts": [f"n{i}" for i in range(nodes)],
        "sizes": [size],
    }
    return Outcome(exit_code=int(wrong > 0), stdout="noise\nHPCLAUNCH-ALLREDUCE " + json.dumps(document))


def test_right_sums_at_full_speed() -> None:
    found = judge_allreduce(sums(), OLIVIA)
    assert found.status == "have"
    assert "olivia published 101.7 GB/s for 8 GPUs on 2 nodes" in found.evidence
    assert found.times == AllreduceTimes(ranks=8, seconds={"134217728": 0.001})


def test_tcp_is_named() -> None:
    found = judge_allreduce(sums(bus_gb_s=5.4), DAINT)
    assert found.status == "missing"
    assert "this is TCP, not Slingshot" in found.evidence
    assert "aws-ofi-nccl" in found.remedy


def test_a_site_without_a_figure_for_tcp_has_a_tenth_as_limit() -> None:
    figure = OLIVIA.fabric.allreduce[0]
    assert tcp_below_gb_s(figure) == pytest.approx(10.17)
    assert tcp_below_gb_s(DAINT.fabric.allreduce[0]) == pytest.approx(8.1)
    assert judge_allreduce(sums(bus_gb_s=10.1), OLIVIA).status == "missing"
    assert judge_allreduce(sums(bus_gb_s=10.3), OLIVIA).status == "have"


def test_mpi_between_main_memories_proves_nothing_of_nccl() -> None:
    found = judge_allreduce(sums(via="mpi", bus_gb_s=5), OLIVIA)
    assert found.status == "unknown"
    assert "if Horovod is as slow, this is TCP, not Slingshot" in found.evidence


def test_one_node_says_nothing_of_the_fabric() -> None:
    assert judge_allreduce(sums(nodes=1, bus_gb_s=1), OLIVIA).status == "have"


def test_wrong_sums_fail_however_fast() -> None:
    found = judge_allreduce(sums(bus_gb_s=200, wrong=3), OLIVIA)
    assert found.status == "missing"
    assert found.evidence.startswith("WRONG SUMS")
    assert "element 7 of 9: 1.0, not 2.0" in found.evidence
    assert "NCCL_PROTO=^LL128" in found.remedy


def test_one_rank_summed_nothing() -> None:
    assert judge_allreduce(sums(ranks=1, nodes=1), OLIVIA).status == "unknown"


def test_a_test_that_did_not_run() -> None:
    dead = Outcome(exit_code=1, stderr="ModuleNotFoundError: No module named 'numpy'\n")
    found = judge_allreduce(dead, None)
    assert (found.status, "No module named 'numpy'" in found.evidence) == ("missing", True)
    assert judge_allreduce(replace(dead, timed_out=True, exit_code=124), None).status == "unknown"
