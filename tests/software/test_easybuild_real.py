"""A real EasyBuild and a real module system: names as EasyBuild makes them, and one small installation."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tarfile
from itertools import chain
from pathlib import Path

import pytest

from hpclaunch.site.job_environment import Environment, JobEasyBuild
from hpclaunch.site.load_profile import load_site
from hpclaunch.software.easyconfig import RECIPES, EasyConfig, parse_easyconfig
from hpclaunch.software.software_lines import environment_lines

pytestmark = pytest.mark.slow

NAMES = [
    *sorted({each.file for each in chain.from_iterable(RECIPES.values())}),
    "zlib-1.2.12.eb",
    "PyTorch-bundle-2.1.2-foss-2023a.eb",
]
EASYCONFIG = """\
easyblock = 'Tarball'
name = 'toy-tool'
version = '1.0'
versionsuffix = '-CUDA-11.7.0'
homepage = 'https://example.org/toy'
description = "A package of the tests' own"
toolchain = SYSTEM
sources = ['toy-1.0.tar.gz']
sanity_check_paths = {'files': ['toy'], 'dirs': []}
modextrapaths = {'PATH': ''}
moduleclass = 'tools'
"""
FILE = "toy-tool-1.0-CUDA-11.7.0.eb"


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


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the real ``eb`` installed a package of our own, from a source next to its easyconfig."""
    folder = tmp_path_factory.mktemp("easybuild")
    source = folder / "toy-1.0"
    source.mkdir()
    (source / "toy").write_text("#!/bin/bash\necho a toy\n")
    (source / "toy").chmod(0o755)
    with tarfile.open(folder / "toy-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, "toy-1.0")
    (folder / FILE).write_text(EASYCONFIG)
    words = [
        f"--prefix={folder}/prefix", f"--sourcepath={folder}", "--modules-tool=EnvironmentModules",
        "--module-syntax=Tcl", "--allow-use-as-root-and-accept-consequences",
    ]  # fmt: skip
    eb = str(Path(sys.executable).with_name("eb"))
    done = subprocess.run(
        ["bash", "-c", '. /usr/share/modules/init/bash && exec "$@"', "eb", eb, FILE, *words],
        cwd=folder,
        env={**os.environ, "EB_PYTHON": sys.executable, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "prefix"


def test_the_module_has_the_name_that_we_say(prefix: Path) -> None:
    assert (prefix / "modules" / "all" / parse_easyconfig(FILE).module).is_file()


def test_our_lines_load_what_easybuild_installed(prefix: Path) -> None:
    environment = Environment(easybuild=JobEasyBuild(prefix="$PREFIX", load=(FILE,)))
    lines = [line.text for line in environment_lines(environment, load_site("local"))]
    text = "\n".join(["set -eo pipefail", ". /usr/share/modules/init/bash", *lines, "toy"])
    done = subprocess.run(
        ["bash", "-c", text],
        env={"PATH": "/usr/bin:/bin", "PREFIX": str(prefix)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "a toy\n"
