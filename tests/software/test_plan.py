"""``hpclaunch env plan``: the ways to Horovod on each site."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.cli import env as env_cli
from hpclaunch.errors import BadInputError
from hpclaunch.site.load_profile import load_site, site_names
from hpclaunch.software.horovod_facts import build_variables, rebuild_command
from hpclaunch.software.install_plan import GOALS, ROUTES, InstallPlan, Route, plan_install, script


def env(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hpclaunch", "env", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def planned(site: str, goal: str = "horovod-tensorflow") -> InstallPlan:
    return plan_install(load_site(site), goal)


def routes(site: str, goal: str = "horovod-tensorflow") -> dict[str, Route]:
    return {route.name: route for route in planned(site, goal).routes}


def steps(route: Route) -> list[str]:
    return [step.text for step in route.steps]


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("site", sorted(site_names()))
def test_every_site_has_a_way_and_its_script_is_bash(site: str, goal: str) -> None:
    found = planned(site, goal)
    assert [route.name for route in found.routes] == list(ROUTES)
    for route in found.routes:
        assert route.why
        assert bool(route.steps) == route.possible
        if route.possible:
            text = script(found, route)
            assert text.startswith("#!/bin/bash\n# ")
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    assert found.route().possible


def test_no_easyconfig_fits_grace_hopper() -> None:
    route = routes("daint")["easybuild"]
    assert not route.possible
    assert "CUDA 11.7.0, which cannot address the GPUs of daint (sm_90 needs CUDA 11.8" in route.why
    assert "foss-2022b with CUDA 12.0.0" in route.why
    with pytest.raises(BadInputError, match="cannot address"):
        planned("daint").route("easybuild")


def test_polaris_can_take_the_easyconfig_with_cuda_11_7() -> None:
    found = steps(routes("polaris")["easybuild"])
    assert "eb Horovod-0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0.eb --robot" in found
    assert "module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0" in found
    assert found.index('export EASYBUILD_PREFIX="$HOME/easybuild"') == 0
    assert planned("polaris").chosen == "site"


def test_lumi_takes_its_own_container_and_no_cuda() -> None:
    found = routes("lumi-g")
    assert planned("lumi-g").chosen == "site"
    assert any("horovod-0.28.1-singularity" in step for step in steps(found["site"]))
    assert "has AMD GPUs" in found["easybuild"].why
    assert planned("lumi-g", "horovod-torch").chosen == "pip"


def test_eessi_has_no_horovod_but_may_carry_a_build() -> None:
    found = routes("olivia", "horovod-torch")["eessi"]
    assert "EESSI has no Horovod in any version" in found.why
    assert "module load PyTorch/2.7.1-foss-2024a-CUDA-12.6.0" in steps(found)
    assert "export EESSI_ACCELERATOR_TARGET_OVERRIDE=accel/nvidia/cc90" in steps(found)
    assert not routes("olivia")["eessi"].possible  # its TensorFlow is for CPUs
    assert not routes("lumi-g")["eessi"].possible


def test_the_container_way_builds_inside_the_image() -> None:
    (inside,) = [s for s in steps(routes("olivia", "horovod-torch")["container"]) if "exec --nv" in s]
    assert inside.startswith(
        "apptainer exec --nv /cluster/work/support/container/pytorch_nvidia_25.06_arm64.sif"
    )
    assert "--system-site-packages" in inside
    assert "HOROVOD_WITH_PYTORCH=1" in inside


def test_pip_wraps_the_compiler_for_torch_only() -> None:
    torch, tensorflow = routes("local", "horovod-torch")["pip"], routes("local")["pip"]
    assert any("-std=c++17" in step for step in steps(torch))
    assert not any("-std=c++17" in step for step in steps(tensorflow))
    assert "pip install 'tensorflow-cpu==2.12.*' wheel 'setuptools<81'" in steps(tensorflow)


def test_the_wrapper_turns_14_into_17(tmp_path: Path) -> None:
    """The step is run as it stands; a stand-in for g++ prints what it is given."""
    (step,) = [s for s in steps(routes("local", "horovod-torch")["pip"]) if "g++17" in s]
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "g++").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (binaries / "g++").chmod(0o755)
    text = f'set -eo pipefail\n{step}\n"$CXX" -O2 -std=c++14 "a b.cc"'
    environment = {"PATH": f"{binaries}:/usr/bin:/bin", "VIRTUAL_ENV": str(tmp_path)}
    done = subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "-O2\n-std=c++17\na b.cc\n"


def test_variables_of_each_site() -> None:
    lumi = build_variables(load_site("lumi-g"), "pytorch")
    assert (lumi["HOROVOD_GPU"], lumi["HOROVOD_GPU_OPERATIONS"]) == ("ROCM", "NCCL")
    assert (lumi["HOROVOD_WITH_PYTORCH"], lumi["HOROVOD_WITHOUT_TENSORFLOW"]) == ("1", "1")
    assert build_variables(load_site("daint"), "tensorflow")["HOROVOD_BUILD_CUDA_CC_LIST"] == "90"
    local = build_variables(load_site("local"), "pytorch")
    assert local["HOROVOD_WITH_GLOO"] == "1"
    assert "HOROVOD_GPU" not in local
    assert 'HOROVOD_ROCM_HOME="$ROCM_PATH"' in rebuild_command(load_site("lumi-g"), "pytorch")


# --- the command -------------------------------------------------------------------------------------------


def test_choices_are_the_real_ones() -> None:
    assert tuple(GOALS) == env_cli.GOALS
    assert env_cli.ROUTES == ROUTES


def test_the_command_prints_json_and_writes_a_script(tmp_path: Path) -> None:
    file = tmp_path / "install.sh"
    words = ("plan", "--site", "local", "--for", "horovod-torch", "--json", "--write", str(file))
    done = env(*words)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["chosen"] == "pip"
    assert [route["name"] for route in document["routes"]] == list(ROUTES)
    assert "wrote" in done.stderr
    assert file.stat().st_mode & 0o100
    assert "HOROVOD_WITH_PYTORCH=1" in file.read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--site", "daint", "--for", "horovod-torch", "--route", "easybuild"), 3, "possible on daint: pip"),
        (("--site", "nosuch", "--for", "horovod-torch"), 3, "nosuch"),
        (("--site", "daint", "--for", "horovod-mxnet"), 2, "horovod-mxnet"),
        (("--site", "local", "--for", "horovod-torch", "--write", "/nowhere/x.sh"), 3, "/nowhere"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], code: int, message: str) -> None:
    done = env("plan", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
