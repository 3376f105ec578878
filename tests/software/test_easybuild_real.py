"""A real EasyBuild, a real module system and a real Slurm: names, and a planned installation that runs."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tarfile
import zipfile
from itertools import chain
from pathlib import Path

import pytest

from hpclaunch.site.load_profile import load_site
from hpclaunch.software import easyconfig
from hpclaunch.software.easyconfig import RELEASE, EasyConfig, Recipe, parse_easyconfig, recipes
from hpclaunch.software.install_plan import job_text, plan_install, script
from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm

pytestmark = pytest.mark.slow

NAMES = [
    *sorted({each.file for each in chain.from_iterable(recipes().values())}),
    "zlib-1.2.12.eb",
    "PyTorch-bundle-2.1.2-foss-2023a.eb",
]
EASYCONFIG = """\
easyblock = 'Tarball'
name = 'jax'
version = '0.1'
versionsuffix = '-toy'
homepage = 'https://example.org/toy'
description = "A package of the tests, which has no more of JAX than its name"
toolchain = SYSTEM
sources = ['jax-0.1.tar.gz']
sanity_check_paths = {'files': ['jax.py'], 'dirs': []}
modextrapaths = {'PYTHONPATH': ''}
moduleclass = 'lib'
"""
RECIPE = Recipe(file="jax-0.1-toy.eb")
MODULES_INIT = "/usr/share/modules/init/bash"


def easybuilds_name(parsed: EasyConfig) -> str:
    """Return the module's name by EasyBuild's own naming scheme."""
    scheme = importlib.import_module("easybuild.tools.module_naming_scheme.easybuild_mns").EasyBuildMNS()
    toolchain = {"name": parsed.toolchain or "system", "version": parsed.toolchain_version or "system"}
    name: str = scheme.det_full_module_name(
        {
            "name": parsed.name,
            "version": parsed.version,
            "toolchain": toolchain,
            "versionprefix": "",
            "versionsuffix": parsed.suffix,
        }
    )
    return name


@pytest.mark.parametrize("file", NAMES)
def test_names_are_those_that_easybuild_makes(file: str) -> None:
    parsed = parse_easyconfig(file)
    assert easybuilds_name(parsed) == parsed.module


def make_recipe(folder: Path) -> None:
    """Write our package and its easyconfig, the source next to it."""
    source = folder / "jax-0.1"
    source.mkdir(parents=True)
    (source / "jax.py").write_text('__version__ = "0.1"\nprint("a toy, loaded from", __file__)\n')
    with tarfile.open(folder / "jax-0.1.tar.gz", "w:gz") as archive:
        archive.add(source, "jax-0.1")
    (folder / RECIPE.file).write_text(EASYCONFIG)


def make_wheel(folder: Path) -> None:
    """Write a wheel ``easybuild``: the real one only lists packages, and the tests' venv has those."""
    name = f"easybuild-{RELEASE}"
    script = (
        f'#!/bin/bash\nexport EB_PYTHON={sys.executable}\nexec {Path(sys.executable).with_name("eb")} "$@"\n'
    )
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        program = zipfile.ZipInfo(f"{name}.data/scripts/eb")
        program.external_attr = 0o100755 << 16
        wheel.writestr(program, script)
        wheel.writestr(
            f"{name}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: easybuild\nVersion: {RELEASE}\n"
        )
        wheel.writestr(
            f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{name}.dist-info/RECORD", "")


@pytest.mark.slurm
def test_a_planned_installation_ends_in_a_job_that_runs_with_it(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan's script with a real EasyBuild and real modules; its job file on a real Slurm."""
    monkeypatch.setitem(easyconfig.recipes(), "jax", (RECIPE,))
    make_recipe(tmp_path / "recipes")
    make_wheel(tmp_path)
    plan = plan_install(load_site("generic-slurm"), "jax", str(tmp_path / "software"))
    route = plan.route("easybuild")
    (tmp_path / "install.sh").write_text(script(plan, route, "job.yaml"))
    (tmp_path / "job.yaml").write_text(job_text(plan, route, "job.yaml"))
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "BASH_ENV": MODULES_INIT,  # as sites do it for scripts
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "EASYBUILD_ROBOT_PATHS": str(tmp_path / "recipes"),
        "EASYBUILD_SOURCEPATH": str(tmp_path / "recipes"),
        "EASYBUILD_MODULES_TOOL": "EnvironmentModules",
        "EASYBUILD_MODULE_SYNTAX": "Tcl",
        "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES": "1",
    }
    done = subprocess.run(
        ["bash", "install.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    module = tmp_path / "software" / "modules" / "all" / parse_easyconfig(RECIPE.file).module
    assert module.is_file()
    assert "installed; check it with: hpclaunch check --site generic-slurm --file job.yaml" in done.stdout

    words = (
        "submit",
        "--file",
        "job.yaml",
        "--tasks-per-node",
        "1",
        "--nodes",
        "1",
        "--time",
        "5m",
        "--wait",
    )
    program = ("--", "python3", "-c", "import jax; print(jax.__version__)")
    job = hpclaunch(*words, *program, cwd=tmp_path, env={**environment, "SLURM_CONF": str(slurm.conf)})
    assert job.returncode == 0, job.stdout + job.stderr
    assert f"a toy, loaded from {tmp_path}/software/software/jax/0.1-toy/jax.py\n0.1" in job.stdout
