"""A script for a machine that is ported to it: its own modules in place of the profile's."""

from __future__ import annotations

from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import rendered
from tests.port.test_port_lines import port

HEAD = "#!/bin/bash -l\n#PBS -A p -q debug\n#PBS -l select=1:system=polaris\n#PBS -l walltime=0:10:00\n"


def script(body: str) -> str:
    ported = port(f"{HEAD}cd $PBS_O_WORKDIR\n{body}\nmpiexec -n 4 python a.py\n", "polaris", "polaris")
    _, text = rendered(ported)
    return text


@in_one_test(
    "activate, activated",
    [("conda activate base", "base"), ("conda activate", "base"), ("conda activate mine", "mine"), ("", "")],
)
def test_an_own_version_of_the_site_s_module_takes_its_place(activate: str, activated: str) -> None:
    text = script(f"module use /soft/modulefiles; module load conda/2024-04-29\n{activate}")
    assert "2025" not in text.partition("# Sources")[0].replace("read 2025", "")
    order = [
        text.index(f"module use {quote}/soft/modulefiles") for quote in '"' if f"use {quote}/soft" in text
    ]
    order += [text.index("module load conda/2024-04-29")]
    order += [text.index(f"conda activate {activated}")] if activated else []
    assert order == sorted(order)
    assert text.count("\nconda activate") == bool(activated)


@in_one_test(
    "body",
    [
        "module load conda/2025-09-25\nconda activate base",
        "module load cray-hdf5/1.14",
        "module load condaforge",
    ],
)
def test_other_modules_come_behind_the_site_s_setup(body: str) -> None:
    text = script(f"module use /soft/modulefiles\n{body}")
    assert "conda/2025-09-25" in text
    assert "conda activate base" in text
    assert all(name in text for name in body.split() if "/" in name)


def test_an_own_version_behind_a_setup_that_stays_is_a_thing_to_do() -> None:
    head = "#!/bin/bash\n#SBATCH -A abc123 -p batch -N 1 -t 10\n#SBATCH --ntasks-per-node=8\n"
    said = "software: the setup of frontier loads rocm/7.1.1, and the script's own version comes behind it"
    for name, named in (("rocm/6.2.4", True), ("rocm/7.1.1", False), ("cray-hdf5/1.14", False)):
        ported = port(f"{head}module load {name}\nsrun ./a\n", "frontier", "frontier")
        assert (said in str(ported.to_do)) is named
