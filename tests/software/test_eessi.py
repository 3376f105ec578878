"""Targets as EESSI's own detection chooses them, and the lines that initialise it."""

from __future__ import annotations

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import JobEessi
from hpclaunch.software.eessi import (
    accelerator_target,
    in_eessi_container,
    init_lines,
    pull_lines,
    with_target,
)
from tests.in_one_test import in_one_test


@in_one_test(
    "arch, target",
    [
        ("sm_90", "accel/nvidia/cc90"),
        ("sm_80", "accel/nvidia/cc80"),
        ("gfx90a", "accel/amd/gfx90a"),
        (None, None),
    ],
)
def test_accelerator_targets(arch: str | None, target: str | None) -> None:
    assert accelerator_target(arch) == target


def texts(eessi: JobEessi, *site: str) -> list[str]:
    return [line.text for line in init_lines(eessi, site)]


def test_the_sites_module_is_used_where_there_is_one() -> None:
    assert texts(JobEessi(version="2025.06"), "EESSI/2025.06")[-1] == "module load EESSI/2025.06"
    assert not any("module use" in text for text in texts(JobEessi(version="2025.06"), "EESSI/2025.06"))
    own = texts(JobEessi(version="2023.06"), "EESSI/2025.06")
    assert own[-2:] == ["module use /cvmfs/software.eessi.io/init/modules", "module load EESSI/2023.06"]
    assert texts(JobEessi(version="2023.06", init="shell"))[-1] == (
        "source /cvmfs/software.eessi.io/versions/2023.06/init/lmod/bash"
    )


def test_overrides_come_before_the_initialisation() -> None:
    eessi = JobEessi(version="2023.06", cpu_target="aarch64/nvidia/grace", accelerator="accel/nvidia/cc90")
    assert texts(eessi)[:2] == [
        "export EESSI_SOFTWARE_SUBDIR_OVERRIDE=aarch64/nvidia/grace",
        "export EESSI_ACCELERATOR_TARGET_OVERRIDE=accel/nvidia/cc90",
    ]


@in_one_test(
    "eessi",
    [
        JobEessi(version="latest; rm -rf x"),
        JobEessi(version="2023.06", cpu_target="x86_64/amd/zen9"),
        JobEessi(version="2023.06", accelerator="nvidia/cc90"),
    ],
)
def test_what_eessi_does_not_know_is_refused(eessi: JobEessi) -> None:
    with pytest.raises(BadInputError):
        init_lines(eessi, ())


def test_its_container_gets_the_flag_of_the_site() -> None:
    eessi = JobEessi(version="2023.06")
    assert " --nvidia run " in in_eessi_container(eessi, ("--nv",), ("x",))[2]
    assert " --pass-through --rocm " in in_eessi_container(eessi, ("--rocm",), ("x",))[2]
    assert in_eessi_container(eessi, (), ("python", "x y.py"))[-2:] == ("python", "x y.py")


def test_overrides_hold_in_its_container_too() -> None:
    eessi = JobEessi(version="2023.06", init="container", accelerator="accel/amd/gfx90a")
    assert pull_lines(eessi)[0].text == "export EESSI_ACCELERATOR_TARGET_OVERRIDE=accel/amd/gfx90a"
    with pytest.raises(BadInputError):
        pull_lines(JobEessi(version="latest", init="container"))


def test_the_target_is_that_of_the_sites_gpus_unless_the_job_names_one() -> None:
    eessi = JobEessi(version="2025.06")
    assert with_target(eessi, load_site("olivia")).accelerator == "accel/nvidia/cc90"
    assert with_target(eessi, load_site("lumi-g")).accelerator == "accel/amd/gfx90a"
    assert with_target(eessi, load_site("betzy")).accelerator is None
    named = JobEessi(version="2025.06", accelerator="accel/nvidia/cc80")
    assert with_target(named, load_site("olivia")) == named


def test_software_on_top_is_found_by_eessi_extend() -> None:
    lines = texts(JobEessi(version="2023.06", extend="$HOME/my software"), "EESSI/2023.06")
    assert lines.index('export EESSI_USER_INSTALL="$HOME/my software"') < lines.index(
        "module load EESSI/2023.06"
    )
    assert lines[-1] == "module load EESSI-extend/2023.06-easybuild"


def test_the_script_of_the_container_may_be_anywhere() -> None:
    eessi = JobEessi(version="2023.06", script="$HOME/my scripts/eessi_container.sh")
    start = in_eessi_container(eessi, (), ("x",))[2]
    assert '"$HOME/my scripts/eessi_container.sh" --mode exec' in start
