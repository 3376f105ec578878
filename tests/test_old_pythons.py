"""What a Python that is too old is told: bootstrap.sh and the file of zipapp.sh name a way to a newer one."""

from __future__ import annotations

import ast
import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpclaunch.site.load_profile import load_all

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "packaging" / "python_modules.tsv"
UPDATE = bool(os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"))


def rows() -> Iterator[tuple[str, str, str]]:
    """Signs of the sites whose profile loads a Python by modules: (cluster or host, pattern, commands)."""
    for profile in load_all()[0].values():
        modules = [line.text for line in profile.software.setup if line.text.startswith("module ")]
        named = [at for at, text in enumerate(modules) if "python" in text or "conda" in text]
        commands = " && ".join(modules[: named[0] + 1]) if named else ""
        for sign, patterns in (
            ("cluster", profile.detect.cluster_names),
            ("host", profile.detect.hostnames_unique),
        ):
            for pattern in patterns if commands else ():
                yield sign, pattern.replace(r"\d", "[0-9]"), commands


def test_the_table_is_that_of_the_profiles() -> None:
    """After a change of a profile: HPCLAUNCH_TEST_UPDATE_GOLDEN=1 pytest tests/test_old_pythons.py."""
    text = "".join("\t".join(row) + "\n" for row in rows())
    if UPDATE:
        TABLE.write_text(text)
    assert TABLE.read_text() == text
    assert "cluster\tlumi\tmodule load LUMI/24.03 partition/G && module load cray-python/3.11.7\n" in text
    assert "\\d" not in text.replace("[0-9]", "")


AT_SITES = [
    ({"SLURM_CLUSTER_NAME": "lumi"}, "login", "module load cray-python/3.11.7"),
    ({}, "polaris-login-02", "module use /soft/modulefiles && module load conda/2025-09-25"),
    ({}, "login1.vista.tacc.utexas.edu", "module load gcc cuda && module load python3"),
    ({"SLURM_CLUSTER_NAME": "unknown"}, "polaris-login-x", None),
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What bootstrap.sh needs of a checkout, and a system whose only Python is 3.6."""
    (tmp_path / "packaging").mkdir()
    shutil.copy(TABLE, tmp_path / "packaging")
    shutil.copy(ROOT / "bootstrap.sh", tmp_path)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "constraints.txt").touch()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "cat", "cksum", "dirname", "grep", "sed"):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    command(tmp_path / "bin" / "python3", "echo old 3.6.15")
    return tmp_path


def command(path: Path, shell: str) -> None:
    path.write_text(f"#!/bin/sh\n{shell}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(("variables", "host", "expected"), AT_SITES)
def test_bootstrap_names_the_module_of_the_site(
    checkout: Path, variables: dict[str, str], host: str, expected: str | None
) -> None:
    command(checkout / "bin" / "uname", f"echo {host}")
    done = subprocess.run(
        ["sh", checkout / "bootstrap.sh", "mnist"],
        env={"PATH": str(checkout / "bin"), **variables},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert "3.10 or newer is needed; found only" in done.stderr
    assert "version 3.6.15" in done.stderr
    if expected:
        assert done.stderr.rstrip().endswith(expected)
        assert "uv" not in done.stderr
    else:
        assert "module load NAME" in done.stderr
        assert "uv python install 3.12" in done.stderr


def test_bootstrap_asks_slurm_for_the_name_of_its_cluster(checkout: Path) -> None:
    command(checkout / "bin" / "uname", "echo uan01")
    command(checkout / "bin" / "scontrol", "echo 'ClusterName             = lumi'")
    done = subprocess.run(
        ["sh", checkout / "bootstrap.sh", "tests"],
        env={"PATH": str(checkout / "bin")},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.stderr.rstrip().endswith("module load cray-python/3.11.7")


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The start of a zipapp that was made for a Python that this is not."""
    file = tmp_path_factory.mktemp("zipapp") / "hpclaunch.pyz"
    with file.open("wb") as out:
        out.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("__main__.py", "import nothing_of_this_name\n")
    runpy.run_path(str(ROOT / "packaging" / "zipapp_start.py"))["main"](str(file))
    with zipfile.ZipFile(file) as archive:
        return archive.read("__main__.py").decode().replace(str(tuple(sys.version_info[:2])), "(3, 99)")


def test_pythons_from_3_6_on_can_read_the_check(start: str) -> None:
    tree = ast.parse(start, feature_version=(3, 6))
    first, check, *_ = tree.body
    assert ast.unparse(first) == "import sys"
    assert isinstance(check, ast.If), "nothing is imported before the check"


@pytest.mark.parametrize(("variables", "host", "expected"), AT_SITES)
def test_the_file_names_the_module_of_the_site(
    start: str, tmp_path: Path, variables: dict[str, str], host: str, expected: str | None
) -> None:
    elsewhere = f"import os; os.uname = lambda: ('', {host!r}); "
    (tmp_path / "start.py").write_text(elsewhere + start)
    done = subprocess.run(
        [sys.executable, "start.py"],
        cwd=tmp_path,
        env={"PATH": "/nowhere", **variables},
        text=True,
        capture_output=True,
        check=False,
    )
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (done.returncode, done.stdout) == (1, "")
    assert f"start.py is made for Python {version}, and this is" in done.stderr
    assert (expected or "module avail python, module load NAME") in done.stderr
    assert done.stderr.endswith(f"or uv python install {version}\n")
