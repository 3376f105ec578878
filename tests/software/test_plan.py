"""``hpclaunch software plan``: the ways to a framework on each site; no step in them is known to be wrong."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hpclaunch.api import Job
from hpclaunch.cli.software import plan_software
from hpclaunch.errors import BadInputError
from hpclaunch.framework_table import GOALS
from hpclaunch.site.load_profile import load_site, site_names
from hpclaunch.site.schema import Environment
from hpclaunch.software import easyconfig
from hpclaunch.software.easyconfig import EULAS, recipes
from hpclaunch.software.horovod_facts import build_variables, rebuild_command
from hpclaunch.software.install_plan import InstallPlan, Route, job_text, plan_install, script
from hpclaunch.software.known_pairs import bad_pairs
from tests.how_much import examples
from tests.in_process import hpclaunch_here
from tests.plan.test_golden import ACCOUNTS
from tests.profiles import shipped

pytestmark = pytest.mark.slow  # together

SITES = sorted(site_names())
LIVE = [name for name in SITES if shipped(name).status == "production"]
PAIRS = [(site, goal) for site in SITES for goal in GOALS]
ROUTES = ("site", "easybuild", "eessi", "container", "wrapper", "pip", "eessi-container")


class Plans(dict[tuple[str, str], InstallPlan]):
    """The plan for a site and a goal, made when a test first needs it."""

    def __missing__(self, pair: tuple[str, str]) -> InstallPlan:
        plan = self[pair] = plan_install(shipped(pair[0]), pair[1])
        return plan


PLANS = Plans()


def env(*words: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("env", *words)


def routes(site: str, goal: str = "horovod-tensorflow") -> dict[str, Route]:
    return {route.name: route for route in PLANS[site, goal].routes}


def job_environment(route: Route) -> Environment:
    assert route.job is not None
    return msgspec.convert(route.job.environment, Environment)


def steps(route: Route) -> str:
    return "\n".join(step.text for step in route.steps)


# --- every site and every goal -----------------------------------------------------------------------------


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("goal", GOALS)
def test_there_is_a_way_or_the_reason_why_not(site: str, goal: str) -> None:
    plan = PLANS[site, goal]
    assert [route.name for route in plan.routes] == list(ROUTES)
    assert all(route.why and (route.job is not None) == route.possible for route in plan.routes)
    if plan.chosen is None:
        with pytest.raises(BadInputError, match=f"no way to {goal} on {site} is known"):
            plan.route()
    else:
        assert plan.route().possible


# Few machines document a Horovod, and where nothing can be downloaded there is nothing.
NO_WAY: dict[str, set[str]] = {
    "alps-gh200": {"horovod-tensorflow", "horovod-torch", "tensorflow"},
    "aurora": {"horovod-torch", "jax"},
    "betzy": {"tensorflow"},
    "betzy-accel": {"tensorflow"},
    "clariden": {"horovod-tensorflow", "horovod-torch", "tensorflow"},
    "daint": {"horovod-tensorflow", "horovod-torch", "tensorflow"},
    "frontier": {"horovod-tensorflow", "horovod-torch"},
    "jupiter": {"horovod-torch", "tensorflow"},
    "leonardo": {"tensorflow"},
    "lumi-g": {"horovod-torch"},
    "mn5-acc": {"deepspeed", "horovod-tensorflow", "horovod-torch", "jax", "mpi4py", "tensorflow"},
    "olivia": {"horovod-torch", "mpi4py"},
    "perlmutter": {"horovod-torch"},
    "polaris": {"horovod-tensorflow", "horovod-torch"},
    "santis": {"horovod-tensorflow", "horovod-torch", "tensorflow"},
    "abci-3": {"horovod-torch", "tensorflow"},
    "dardel-gpu": {"horovod-tensorflow", "horovod-torch", "jax", "mpi4py", "tensorflow"},
    "delta": {"horovod-tensorflow", "horovod-torch", "mpi4py", "tensorflow"},
    "deltaai": {"horovod-tensorflow", "horovod-torch", "mpi4py", "tensorflow"},
    "isambard-ai": {"horovod-tensorflow", "horovod-torch", "mpi4py", "tensorflow"},
    "jean-zay": {"horovod-torch", "tensorflow"},
    "juwels-booster": {"tensorflow"},
    "narval": {"tensorflow"},
    "roihu": {"horovod-torch"},
    "setonix-gpu": {"horovod-tensorflow", "horovod-torch", "jax", "mpi4py", "tensorflow"},
    "snellius": {"horovod-torch", "tensorflow"},
    "snellius-a100": {"tensorflow"},
    "tuolumne": {"horovod-tensorflow", "horovod-torch", "jax", "mpi4py", "tensorflow"},
    "vista": {"horovod-torch", "tensorflow"},
}


@pytest.mark.parametrize("site", LIVE)
def test_for_what_no_way_is_known(site: str) -> None:
    assert {goal for goal in GOALS if PLANS[site, goal].chosen is None} == NO_WAY.get(site, set())


@pytest.mark.parametrize("site", [name for name in SITES if shipped(name).status == "historic"])
def test_nothing_is_installed_on_a_machine_that_is_switched_off(site: str) -> None:
    assert all(PLANS[site, goal].chosen is None for goal in GOALS)


def everything(site: str, route: Route) -> str:
    """All texts of a route: its steps, what its jobs load, the site's setup if they load it."""
    setup = load_site(site).software.setup if job_environment(route).site_setup else ()
    text = "\n".join([steps(route), repr(route.job), *(line.text for line in setup)])
    return re.sub("python3 -c .*", "", text)


def possible(site: str) -> Iterator[tuple[str, Route]]:
    """Yield (goal, route) of a site, for those that are possible."""
    for goal in GOALS:
        yield from ((goal, route) for route in PLANS[site, goal].routes if route.possible)


@pytest.mark.parametrize("site", SITES)
def test_no_step_is_known_to_be_wrong(site: str) -> None:
    node = load_site(site).node
    vendor = node.gpu_vendor if node and node.gpus else None
    for goal, route in possible(site):
        text = everything(site, route)
        if vendor != "nvidia":
            assert not re.search(r"cuda|cu12|--nv\b|nccl/", text, re.IGNORECASE), (goal, route.name)
        if vendor != "amd":
            assert not re.search(r"whl/rocm|HOROVOD_GPU=ROCM", text), (goal, route.name)
        if vendor == "amd" and re.search(r"^\s*-? ?torch==|pip install[^\n]* torch", text, re.MULTILINE):
            assert "download.pytorch.org/whl/rocm" in text, (goal, route.name)
            assert " --index-url" in text or "+rocm" in text, (goal, route.name)
        if goal.startswith("horovod"):
            assert not re.search(r"OpenMPI/5|-(foss|gompi)-202(4|5)", text), route.name
            assert "Open MPI 5" not in route.versions.get("mpi", ""), route.name
        if node and "Grace" in node.cpu_model and route.steps and route.name != "eessi-container":
            assert "uname -m" in text, (goal, route.name)
        assert "hpclaunch check" not in steps(route)
        if load_site(site).internet_on_login is False:
            assert not re.search(r"pip|eb |pull|clone|curl", steps(route)), (goal, route.name)


@pytest.mark.parametrize("site", SITES)
def test_no_pair_is_on_the_list_of_bad_pairs(site: str) -> None:
    profile = load_site(site)
    merged = {**profile.fabric.common, **profile.env}
    variables = {name: each.value for name, each in merged.items() if each.value}
    arch = profile.node.gpu_arch if profile.node else None
    features = frozenset(filter(None, (profile.fabric.kind, arch)))
    for goal, route in possible(site):
        assert route.job is not None
        found = bad_pairs(route.versions, features, variables | route.job.env)
        assert [pair.what for pair in found if pair.certain] == [], (goal, route.name)


@pytest.mark.parametrize("site", SITES)
def test_eb_gets_licences_and_the_commit_of_a_recipe_outside_of_the_release(site: str) -> None:
    known = {recipe.file: recipe for each in recipes().values() for recipe in each}
    lines = [
        line
        for _, route in possible(site)
        for line in re.findall(r"(?:^|/)(eb .*)", steps(route), re.MULTILINE)
    ]
    for line in lines:
        file = next(word for word in line.split() if word.endswith(".eb"))
        if file not in known:
            assert load_site(site).software.easybuild is not None  # a recipe of the site's own stack
            continue
        accepted = re.search(r"--accept-eula-for=(\S+)", line)
        wanted = set(EULAS) if "-CUDA-" in file else set()
        assert (set(accepted[1].split(",")) if accepted else set()) == wanted
        assert ("--from-commit" in line) == (known[file].commit is not None)


@pytest.mark.parametrize("site", SITES)
def test_every_script_is_bash(site: str, tmp_path: Path) -> None:
    for goal, route in possible(site):
        if route.steps:
            text = script(PLANS[site, goal], route, "job.yaml")
            (tmp_path / f"{goal}.{route.name}.sh").write_text(text)
    every = 'for file; do bash -n "$file" || exit; done'
    files = map(str, tmp_path.iterdir())
    subprocess.run(["bash", "-c", every, "bash", *files], check=True)


@pytest.mark.parametrize("site", [name for name in SITES if name not in ("alps-gh200", "santis", "clariden")])
def test_every_job_file_renders(site: str, tmp_path: Path) -> None:
    """What is taken for each goal; three sites have the software of a fourth, Daint."""
    sized: dict[str, Any] = {"tasks": 2} if site == "local" else {"nodes": fewest_nodes(site)}
    for goal in GOALS:
        plan = PLANS[site, goal]
        if plan.chosen is None:
            continue
        route, file = plan.route(), tmp_path / f"{goal}.yaml"
        file.write_text(job_text(plan, route, file.name))
        command = ["python3", "train.py"]
        text = Job(file=file, account=ACCOUNTS.get(site), time="30m", command=command, **sized).script()
        environment = job_environment(route)
        assert all(name in text for name in (*environment.modules, environment.venv or "")), goal
        assert route.job is not None
        assert all(f"{name}=" in text for name in route.job.env), goal
        assert all(words in text for words in route.job.directives), goal


def fewest_nodes(site: str) -> int:
    """The least number of nodes that one of the site's queues takes."""
    return min((queue.min_nodes for queue in load_site(site).queues.values()), default=1)


def test_each_job_file_has_only_what_it_needs() -> None:
    plan = PLANS["perlmutter", "torch"]
    document = yaml.safe_load(job_text(plan, plan.route(), "job.yaml"))
    assert document == {"site": "perlmutter", "framework": "torch"}


# --- single facts ------------------------------------------------------------------------------------------


def test_a_recipe_for_grace_hopper_exists_only_outside_of_the_release() -> None:
    route = routes("jupiter")["easybuild"]
    assert route.possible
    assert "eb --from-commit 0422aed1fd86163afa7f0edd23e4bdd656a2c609 --accept-eula-for=CUDA,cuDNN" in steps(
        route
    )
    assert "no report of a build" in " ".join(route.notes)
    torch = routes("jupiter", "horovod-torch")["easybuild"]
    assert "CUDA 11.7.0, which cannot address the GPUs of jupiter (sm_90 needs CUDA 11.8" in torch.why


def test_slingshot_needs_the_sites_stack_for_mpi_and_for_several_nodes() -> None:
    why = routes("olivia", "mpi4py")["eessi"].why
    assert "mpi4py/3.1.5-gompi-2023b: its Open MPI has no libfabric with the provider cxi" in why
    torch = routes("olivia", "torch")
    assert PLANS["olivia", "torch"].chosen == "site"
    job = torch["eessi"].job
    assert job is not None
    assert (job.nodes, job.environment["site_setup"]) == (1, False)
    assert job.environment["eessi"]["accelerator"] == "accel/nvidia/cc90"


def test_polaris_has_no_horovod_since_its_conda_of_2025() -> None:
    for goal in ("horovod-torch", "horovod-tensorflow"):
        assert "cuda 12.9.1 is documented; the newest is 12.4" in routes("polaris", goal)["site"].why
    software = load_site("polaris").software
    assert set(software.lacks) == {"horovod-torch", "horovod-tensorflow"}
    assert "module load conda/2025-09-25" in [line.text for line in software.setup]


def test_auroras_tensorflow_with_horovod_is_its_own_environment() -> None:
    job = routes("aurora")["site"].job
    assert job is not None
    assert job.environment == {
        "site_setup": False,
        "modules": ["tensorflow/2025.2.0", "mpich/opt/develop-git.6037a7a"],
    }
    assert job.env == {"HOROVOD_THREAD_AFFINITY": "4,8,12,16,20,24,56,60,64,68,72,76"}


def test_lumi_builds_images_with_wheels_for_rocm() -> None:
    found = routes("lumi-g", "torch")
    assert PLANS["lumi-g", "torch"].chosen == "site"
    assert "cotainr build" in steps(found["container"])
    assert "pip-containerize new" in steps(found["wrapper"])
    for name in ("container", "wrapper"):
        assert "--extra-index-url https://download.pytorch.org/whl/rocm6.2.4" in steps(found[name])
        assert "torch==2.6.0+rocm6.2.4" in steps(found[name])
        assert "TCP" in " ".join(found[name].notes)
    wrapped = found["wrapper"].job
    assert wrapped is not None
    assert wrapped.environment == {"path": ["/project/$SLURM_JOB_ACCOUNT/$USER/hpclaunch-torch/bin"]}


def test_horovod_is_not_built_with_what_nobody_documents() -> None:
    assert "rocm 7.0 is documented; the newest is 6.2" in routes("lumi-g", "horovod-torch")["site"].why
    assert "cuda 12.9 is documented; the newest is 12.4" in routes("daint", "horovod-torch")["site"].why


def test_eessis_container_is_got_once_from_where_it_is_now() -> None:
    route = routes("generic-slurm", "torch")["eessi-container"]
    assert "software-layer-scripts.git" in steps(route)
    assert "software-layer.git" not in steps(route)
    assert steps(route).count(" pull ") == 1
    assert route.job is not None
    assert route.job.environment["eessi"]["cache"] == "$HOME/hpclaunch-torch"


def test_a_package_goes_into_a_venv_inside_the_image_of_its_base() -> None:
    lumi = load_site("lumi-g")
    offers = {name: offer for name, offer in lumi.software.offers.items() if name != "deepspeed"}
    profile = replace(lumi, software=replace(lumi.software, offers=offers))
    route = plan_install(profile, "deepspeed", "/project/p1/it's").route("site")
    text = steps(route)
    assert text.index('_BIND+=",$PREFIX"') < text.index("singularity exec")
    assert text.index("singularity exec") < text.index('python3 -m venv --system-site-packages "$PREFIX"')
    assert "pip install deepspeed" in text.partition("<<'HPCLAUNCH_INSIDE'")[2]
    assert job_environment(route).container is not None
    assert route.job is not None
    assert route.job.environment["container"]["venv"] == "/project/p1/it's"


def test_the_folder_can_be_named() -> None:
    plan = plan_install(load_site("lumi-g"), "jax", "/project/project_465000001/EasyBuild")
    job = plan.route().job
    assert job is not None
    assert job.environment["easybuild"]["prefix"] == "/project/project_465000001/EasyBuild"
    assert 'export PREFIX="/project/project_465000001/EasyBuild"' in script(plan, plan.route(), "job.yaml")


def test_easybuild_takes_no_folder_with_a_blank() -> None:
    """As EasyBuild 5.4.1 with modules in Tcl: ``set root`` gets two words."""
    plan = plan_install(load_site("betzy"), "torch", "/cluster/my software")
    (route,) = [each for each in plan.routes if each.name == "easybuild"]
    assert "folder with a blank" in route.why


@settings(max_examples=examples(15), deadline=None)
@given(prefix=st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_any_folder_is_quoted(prefix: str) -> None:
    plan = plan_install(load_site("local"), "torch", prefix)
    text = script(plan, plan.route(), "job.yaml")
    assert yaml.safe_load(job_text(plan, plan.route(), "j"))["environment"]["venv"] == prefix
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_variables_of_each_site() -> None:
    lumi = build_variables(load_site("lumi-g"), "pytorch")
    assert (lumi["HOROVOD_GPU"], lumi["HOROVOD_GPU_OPERATIONS"]) == ("ROCM", "NCCL")
    assert (lumi["HOROVOD_WITH_PYTORCH"], lumi["HOROVOD_WITHOUT_TENSORFLOW"]) == ("1", "1")
    assert build_variables(load_site("daint"), "tensorflow")["HOROVOD_BUILD_CUDA_CC_LIST"] == "90"
    local = build_variables(load_site("local"), "pytorch")
    assert local["HOROVOD_WITH_GLOO"] == "1"
    assert "HOROVOD_GPU" not in local
    assert 'HOROVOD_ROCM_HOME="$ROCM_PATH"' in rebuild_command(load_site("lumi-g"), "pytorch")


def test_names_of_recipes_tell_their_versions() -> None:
    recipe = recipes()["horovod-tensorflow"][1]
    assert easyconfig.provided(recipe) == {
        "horovod": "0.28.1",
        "tensorflow": "2.15.1",
        "cuda": "12.1.1",
        "mpi": "Open MPI 4.1.5",
    }


# --- pip on this machine -----------------------------------------------------------------------------------


def test_pip_wraps_the_compiler_for_torch_only() -> None:
    torch, tensorflow = routes("local", "horovod-torch")["pip"], routes("local")["pip"]
    assert "-std=c++17" in steps(torch)
    assert "-std=c++17" not in steps(tensorflow)
    assert "pip install 'tensorflow-cpu==2.12.*'\n" in steps(tensorflow)
    assert steps(tensorflow).count("setuptools") == 1


def run_step(text: str, folder: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run a step with stand-ins for programs in PATH, and this folder as the active venv."""
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    for name, body in programs.items():
        (binaries / name.replace("_", "+")).write_text(f"#!/bin/bash\n{body}\n")
        (binaries / name.replace("_", "+")).chmod(0o755)
    environment = {"PATH": f"{binaries}:/usr/bin:/bin", "VIRTUAL_ENV": str(folder)}
    command = ["bash", "-c", f"set -eo pipefail\n{text}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_wrapper_turns_14_into_17(tmp_path: Path) -> None:
    (step,) = [s.text for s in routes("local", "horovod-torch")["pip"].steps if "g++17" in s.text]
    done = run_step(f'{step}\n"$CXX" -O2 -std=c++14 "a b.cc"', tmp_path, g__='printf "%s\\n" "$@"')
    assert done.stdout == "-O2\n-std=c++17\na b.cc\n", done.stderr


@pytest.mark.parametrize(
    ("version", "code"),
    [("mpiexec (Open MPI) 4.1.4", 0), ("mpiexec (Open MPI) 5.0.11", 1), ("HYDRA build details: 5.0.2", 0)],
)
def test_open_mpi_5_stops_a_build_of_horovod(version: str, code: int, tmp_path: Path) -> None:
    (step,) = [s.text for s in routes("local", "horovod-torch")["pip"].steps if "mpiexec --version" in s.text]
    done = run_step(step, tmp_path, mpiexec=f"echo '{version}'")
    assert done.returncode == code
    assert ("wants Open MPI 4" in done.stderr) == bool(code)


# --- the command -------------------------------------------------------------------------------------------


def test_choices_are_the_real_ones() -> None:
    choices = {option.name: getattr(option.type, "choices", ()) for option in plan_software.params}
    assert sorted(choices["goal"]) == sorted(GOALS)
    assert tuple(choices["route"]) == ROUTES


def test_the_command_writes_a_script_and_a_job_file(tmp_path: Path) -> None:
    file = tmp_path / "install.sh"
    words = ("plan", "--site", "local", "--for", "horovod-torch", "--json", "--write", str(file))
    done = env(*words)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["chosen"] == "pip"
    assert [route["name"] for route in document["routes"]] == list(ROUTES)
    assert file.stat().st_mode & 0o100
    assert "HOROVOD_WITH_PYTORCH=1" in file.read_text()
    job = yaml.safe_load(file.with_suffix(".yaml").read_text())
    assert job["environment"]["venv"] == "$HOME/hpclaunch-horovod-torch"
    assert done.stderr.count("wrote") == 2


def test_where_nothing_is_installed_only_the_job_file_is_written(tmp_path: Path) -> None:
    done = env("plan", "--site", "lumi-g", "--for", "torch", "--write", str(tmp_path / "x.sh"))
    assert done.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.yaml"]
    assert "nothing has to be installed" in done.stderr
    assert "lumi-multitorch-full" in done.stdout


def test_a_step_from_the_profile_has_its_source() -> None:
    done = env("plan", "--site", "frontier", "--for", "torch")
    page = "https://docs.olcf.ornl.gov/software/analytics/pytorch_frontier.html"
    assert f"the compilers, Python and ROCm of the site's PyTorch page ({page}, read " in done.stdout


def test_where_no_way_is_known_the_reasons_are_printed() -> None:
    done = env("plan", "--site", "frontier", "--for", "horovod-torch")
    assert done.returncode == 1
    assert "no way to horovod-torch on frontier is known" in done.stdout
    assert "software plan --site frontier --for torch" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--site", "daint", "--for", "torch", "--route", "eessi"), 3, "possible on daint: site"),
        (("--site", "frontier", "--for", "horovod-torch", "--write", "x.sh"), 3, "no way to horovod-torch"),
        (("--site", "nosuch", "--for", "horovod-torch"), 3, "nosuch"),
        (("--site", "daint", "--for", "horovod-mxnet"), 3, "horovod-mxnet"),
        (("--site", "local", "--for", "horovod-torch", "--write", "/nowhere/x.sh"), 3, "/nowhere"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], code: int, message: str) -> None:
    done = env("plan", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert isinstance(PLANS["local", "torch"], InstallPlan)
