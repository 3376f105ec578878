"""The check in the environment that a site's jobs have: real modules, real MPI, real Slurm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpclaunch.check.facts import BuildFacts
from hpclaunch.check.gather import Place, launch_facts, run_probe
from hpclaunch.check.judge_launch import judge_launch
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.scheduler.local import SCHEDULER as LOCAL
from tests.check.horovods import WORKING, make_horovod
from tests.check.verdicts import check_json, names_by_status, one, run_check_command
from tests.testbed.cluster import Slurm
from tests.testbed.kit import alive
from tests.train.mpirun import mpiexec

pytestmark = pytest.mark.slow  # probes that import

MODULEFILES = Path(__file__).parents[1] / "data" / "modulefiles"
FAKES = Path(__file__).parents[1] / "fakes" / "fake_gpu_tools"
PROFILE = """\
schema: 1
name: here
description: a machine for tests
sources: {{page: {{url: https://example.org/page, checked: 2026-11-20}}}}
scheduler: {{kind: {kind}, launcher: {launcher}}}
binding: {{cpu: none, needs_whole_node: false}}
mpi: {{implementation: Open MPI, plugin: {plugin}}}
env:
  HPCLAUNCH_TEST_VARIABLE: {{value: "1", reason: because}}
software:
  setup:
    - {{text: module load {module}, reason: the site's Horovod}}
  python: {python}
"""


def write_site(folder: Path, **changes: str) -> str:
    """Write a site's profile and return its path."""
    words = {
        "kind": "local",
        "launcher": "mpiexec",
        "plugin": "null",
        "module": "made-up-horovod",
        "python": sys.executable,
        **changes,
    }
    path = folder / "here.yaml"
    path.write_text(PROFILE.format(**words))
    return str(path)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A real module system, as non-interactive shells get it, whose module brings a made-up Horovod."""
    assert shutil.which("modulecmd") or Path("/usr/share/modules/init/bash").exists(), "environment-modules"
    monkeypatch.setenv("BASH_ENV", "/usr/share/modules/init/bash")
    monkeypatch.setenv("MODULEPATH", str(MODULEFILES))
    monkeypatch.setenv("HPCLAUNCH_TEST_MADE_UP_HOROVOD", str(tmp_path / "made"))
    return make_horovod(tmp_path / "made", WORKING)


@pytest.mark.mpi
def test_the_sites_modules_are_loaded_as_the_script_would(modules: Path, tmp_path: Path) -> None:
    status, document = check_json("--site", write_site(tmp_path), "--require", "mpi,torch")
    assert status == 0
    assert {"environment", "pytorch", "mpi", "mpi-launch"} <= names_by_status(document)["have"]
    assert str(modules) in one(document, "pytorch")["evidence"]
    # Without the site nothing of it is loaded.
    assert one(check_json("--python", sys.executable)[1], "horovod")["status"] == "missing"


@pytest.mark.mpi
@pytest.mark.usefixtures("modules")
def test_a_module_that_is_not_there_is_named_and_nothing_else_is_asked(tmp_path: Path) -> None:
    status, document = check_json("--site", write_site(tmp_path, module="nosuch/1.0"))
    assert status == 1
    assert names_by_status(document)["missing"] == {"environment"}
    assert "stops at: module load nosuch/1.0" in one(document, "environment")["evidence"]
    assert "nosuch" in one(document, "environment")["evidence"].partition("stops at")[2]
    assert names_by_status(document)["have"] == set()


@pytest.mark.mpi
@pytest.mark.usefixtures("modules")
def test_the_environment_of_the_profile_is_checked(tmp_path: Path) -> None:
    profile = Path(write_site(tmp_path, module="nosuch/1.0"))
    environment = "environment: {modules: [made-up-horovod], site_setup: false}\n"
    profile.write_text(profile.read_text() + environment)
    assert check_json("--site", str(profile), "--require", "torch")[0] == 0


@pytest.mark.mpi
@pytest.mark.usefixtures("modules")
def test_the_environment_of_a_job_file_is_checked(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("site: here\nenvironment:\n  modules: [made-up-horovod]\n  site_setup: false\n")
    words = ("--site", write_site(tmp_path, module="nosuch/1.0"), "--file", str(job), "--require", "torch")
    assert check_json(*words)[0] == 0
    job.write_text("environment:\n  moduls: [made-up-horovod]\n")
    done = run_check_command(*words)
    assert (done.returncode, "job.yaml:2" in done.stderr, "modules" in done.stderr) == (3, True, True)


@pytest.mark.mpi
@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(("gpus", "status"), [("2", "have"), ("1", "missing")])
def test_gpus_that_the_node_should_have(gpus: str, status: str, tmp_path: Path) -> None:
    """With a fake rocm-smi: this machine has no GPU."""
    profile = Path(write_site(tmp_path))
    node = "node:\n  {cpu_model: test, cores: 2, numa: [{id: 0, cores: 0-1}], gpu_vendor: amd,"
    node += " gpu_arch: gfx90a, gpus: [{numa: 0}, {numa: 0}]}\n"
    profile.write_text(profile.read_text() + node)
    path = f"{FAKES}{os.pathsep}{os.environ['PATH']}"
    done, document = check_json("--site", str(profile), PATH=path, FAKE_GPUS=gpus)
    assert done == 1  # no ROCm in this made-up Horovod
    assert one(document, "gpus")["status"] == status
    assert one(document, "rocm")["status"] == "missing"
    assert "HOROVOD_GPU=ROCM" in one(document, "rocm")["remedy"]


# --- the launcher ------------------------------------------------------------------------------------------


def place(*between: str) -> Place:
    """Two ranks of the real MPI, each started through the words ``between``."""
    return Place(
        host=LocalHost(),
        setup=LOCAL.launchers[0].environment(None, ()),
        python=sys.executable,
        launcher=(mpiexec(), "-n", "2", *between),
        ranks=2,
    )


def test_two_ranks_of_a_real_mpi_are_one_world() -> None:
    facts = launch_facts(place(), setup=None, plugin_list=(), mpi4py=True, frameworks=())
    found = {each.name: each for each in judge_launch(facts, BuildFacts(), None)}
    assert found["mpi-launch"].status == "have"


def test_ranks_that_the_launcher_cannot_reach_are_singletons() -> None:
    """What a launcher of another MPI does: the ranks start, and none of them knows about the other ranks."""
    keep = [f"{name}={os.environ[name]}" for name in ("PATH", "HOME") if name in os.environ]
    facts = launch_facts(place("env", "-i", *keep), setup=None, plugin_list=(), mpi4py=True, frameworks=())
    found = {each.name: each for each in judge_launch(facts, BuildFacts(), None)}
    assert found["mpi-launch"].status == "missing"
    assert "each rank reports rank 0 of 1" in found["mpi-launch"].evidence


@pytest.mark.slow
def test_a_probe_that_hangs_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mpi4py.py").write_text(
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(1000)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    outcome = run_probe(Place(host=LocalHost(), python=sys.executable), "ranks", "mpi4py", limit_s=3)
    assert outcome.timed_out
    while alive(int((tmp_path / "pid").read_text())):
        time.sleep(0.05)  # killed, and not yet gone: the tests' own limit ends a child that stays


@pytest.mark.mpi
def test_the_allreduce_test_runs_over_real_ranks() -> None:
    status, document = check_json("--python", sys.executable, "--require", "mpi-launch", "--allreduce-test")
    assert status == 0
    assert "all sums are correct over 2 ranks on 1 node" in one(document, "allreduce")["evidence"]


# --- Slurm -------------------------------------------------------------------------------------------------


@pytest.fixture
def on_slurm(slurm: Slurm, modules: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return slurm


def in_allocation(nodes: int, *words: str) -> tuple[str, ...]:
    return ("salloc", "--quiet", f"--nodes={nodes}", sys.executable, "-m", "hpclaunch", "check", *words)


@pytest.mark.slurm
def test_each_node_of_an_allocation_is_asked(on_slurm: Slurm, tmp_path: Path) -> None:
    words = ("--site", write_site(tmp_path, kind="slurm", launcher="srun", plugin="pmix"), "--nodes", "2")
    done = subprocess.run(
        in_allocation(2, *words, "--require", "mpi,torch", "--json"),
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(done.stdout)
    found = names_by_status(document)
    assert {"nodes", "mpi", "pytorch", "mpi-plugin", "mpi-launch", "environment"} <= found["have"], document
    assert "the same answers from 2 nodes: n1, n2" in one(document, "nodes")["evidence"]
    assert "2 ranks on n1, n2 are one world" in one(document, "mpi-launch")["evidence"]
    assert done.returncode == 0


@pytest.mark.slurm
def test_a_node_without_the_software_is_listed(on_slurm: Slurm, tmp_path: Path) -> None:
    modulefiles = tmp_path / "modulefiles" / "made-up-horovod"
    modulefiles.mkdir(parents=True)
    real = (MODULEFILES / "made-up-horovod" / "0.28.1").read_text()
    (modulefiles / "0.28.1").write_text(f'{real}if {{[info hostname] eq "n2"}} {{ break }}\n')
    profile = write_site(tmp_path, kind="slurm", launcher="srun", plugin="pmix")
    environment = {**os.environ, "MODULEPATH": str(tmp_path / "modulefiles")}
    done = subprocess.run(
        in_allocation(3, "--site", profile, "--nodes", "3", "--require", "mpi", "--json"),
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert one(document, "nodes")["status"] == "missing"
    assert "n2 differs" in one(document, "nodes")["evidence"]
    assert "n1 differs" not in one(document, "nodes")["evidence"]


@pytest.mark.slurm
@pytest.mark.usefixtures("on_slurm")
def test_a_site_that_leaves_the_plugin_open_gets_the_one_that_fits() -> None:
    words = in_allocation(1, "--site", "generic-slurm", "--python", sys.executable, "--json")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = one(json.loads(done.stdout), "mpi-launch")
    assert (found["status"], "2 ranks on n1 are one world" in found["evidence"]) == ("have", True)


@pytest.mark.slurm
@pytest.mark.usefixtures("on_slurm")
def test_the_wrong_plugin_gives_singletons(tmp_path: Path) -> None:
    profile = write_site(tmp_path, kind="slurm", launcher="srun", plugin="none")
    done = subprocess.run(
        in_allocation(1, "--site", profile, "--json"), capture_output=True, text=True, check=False
    )
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert one(document, "mpi-launch")["status"] == "missing"
    assert "singletons" in one(document, "mpi-launch")["evidence"]


@pytest.mark.slurm
@pytest.mark.usefixtures("on_slurm")
def test_outside_of_an_allocation_no_ranks_are_started(tmp_path: Path) -> None:
    profile = write_site(tmp_path, kind="slurm", launcher="srun", plugin="pmix")
    _, document = check_json("--site", profile)
    assert one(document, "mpi-plugin")["status"] == "have"
    assert one(document, "mpi-launch")["status"] == "unknown"
    done = run_check_command("--site", profile, "--nodes", "2")
    assert done.returncode == 4
    assert "salloc, or a batch script" in done.stderr
