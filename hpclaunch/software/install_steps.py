"""The shell lines of an installation, and the texts that ``software plan`` writes. Pure.

The script exports PREFIX, the folder to install into; its steps run in bash with ``set -eo pipefail``.
"""

import shlex
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from hpclaunch.framework_table import GOALS
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.job_environment import Environment, JobEasyBuild, JobEessi
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import Offer, SiteProfile
from hpclaunch.software import easyconfig
from hpclaunch.software.container_lines import bind_lines, gpu_flag, module_lines
from hpclaunch.software.container_runtimes import RUNTIMES, facts_of, runtime_of
from hpclaunch.software.eessi import IMAGE, SCRIPTS, EessiModule, init_lines
from hpclaunch.software.horovod_facts import CXX17_FROM_TORCH, TESTED_TENSORFLOW, VERSION, build_variables
from hpclaunch.software.install_plan import InstallPlan, Route
from hpclaunch.software.shell_quoting import double_quote
from hpclaunch.software.software_lines import environment_lines
from hpclaunch.software.wheels import WHEELS, Wheels

ACCOUNT = "SLURM_JOB_ACCOUNT"
"""Variable of jobs with the project; an installation runs outside of a job, so it must be set there."""
_CPUS = {"Grace": "aarch64", "POWER": "ppc64le"}
_CXX17 = """cat > "$VIRTUAL_ENV/bin/g++17" <<'END'
#!/bin/bash
args=(); for a in "$@"; do [ "$a" = "-std=c++14" ] && a="-std=c++17"; args+=("$a"); done
exec g++ "${args[@]}"
END
chmod +x "$VIRTUAL_ENV/bin/g++17"
export CXX="$VIRTUAL_ENV/bin/g++17\""""
_OPEN_MPI_4 = """case $(mpiexec --version 2>&1) in
  *"Open MPI"*" 5."* | *prterun*)
    echo "Horovod wants Open MPI 4; this mpiexec is of Open MPI 5" >&2
    exit 1 ;;
esac"""


# --- parts -------------------------------------------------------------------------------------------------


def _head(profile: SiteProfile) -> tuple[Line, ...]:
    """Return the check that the script runs on the kind of CPU that the jobs have."""
    model = profile.node.cpu_model if profile.node else ""
    cpu = next((name for word, name in _CPUS.items() if word in model), None)
    if cpu is None:
        return ()
    text = (
        f'[ "$(uname -m)" = {cpu} ] || {{\n'
        f'  echo "this node is $(uname -m), and the GPU nodes are {cpu}: run this in a job there" >&2\n'
        "  exit 1\n}"
    )
    return (Line(text=text, reason=f"what is installed must be for {cpu}, as the nodes with GPUs are"),)


def _prove(name: str) -> Line:
    text = f"python3 -c {shlex.quote(GOALS[name].prove)}"
    return Line(text=text, reason="fails where it is not installed as wanted")


def _venv(folder: str, *, system: bool) -> tuple[Line, ...]:
    option = "--system-site-packages " if system else ""
    on_top = ", with the packages below it" if system else ""
    return (
        Line(
            text=f"python3 -m venv {option}{double_quote(folder)}", reason=f"a separate environment{on_top}"
        ),
        Line(text=f"source {double_quote(folder + '/bin/activate')}", reason="use its Python from here on"),
    )


def package_on_top(
    profile: SiteProfile, name: str, *, system: bool, venv: str = "$PREFIX"
) -> tuple[Line, ...]:
    """Return the steps that install a goal's package into a venv on top of its base."""
    goal = GOALS[name]
    if goal.package == "horovod":
        build = _horovod(profile, name)
    else:
        build = (
            Line(text=f"pip install {goal.package}", reason=f"{goal.package}, for the framework below it"),
        )
    return (*_venv(venv, system=system), *build, _prove(name))


def _horovod(profile: SiteProfile, name: str) -> tuple[Line, ...]:
    """Return the steps that compile Horovod with the variables of the site."""
    torch = GOALS[name].base == "torch"
    variables = build_variables(profile, "pytorch" if torch else "tensorflow")
    exports = " ".join(
        f"{key}={double_quote(value) if '$' in value else value}" for key, value in variables.items()
    )
    steps = [Line(text=_OPEN_MPI_4, reason="Open MPI 5 lacks the C++ bindings that Horovod is linked with")]
    if torch:
        since = ".".join(map(str, CXX17_FROM_TORCH))
        steps.append(
            Line(text=_CXX17, reason=f"the release sets C++14, torch {since} and newer need C++17 (PR 3998)")
        )
    steps += [
        Line(text=f"export {exports}", reason="what is built in (Horovod docs, install)"),
        Line(
            text=f"pip install --no-build-isolation --no-cache-dir horovod=={VERSION}",
            reason="compile here, some minutes; without isolation the build finds the framework",
        ),
        Line(text="horovodrun --check-build", reason="show what the build contains"),
    ]
    return tuple(steps)


# --- the site's own ----------------------------------------------------------------------------------------


def of_offer(profile: SiteProfile, offer: Offer, prefix: str) -> tuple[Line, ...]:
    """Return the steps that the site documents; none where it has the software."""
    if not offer.install:
        return ()
    source = f"from the site ({cite(profile, offer.source)})"
    lines = tuple(Line(text=text, reason=source) for text in offer.install)
    return (*_head(profile), *_before(profile, offer), *lines)


def _before(profile: SiteProfile, offer: Offer) -> tuple[Line, ...]:
    """Return what must be set before the lines of an offer: EasyBuild's folder, and the site's setup."""
    lines: tuple[Line, ...] = ()
    site = profile.software.easybuild
    if offer.environment.easybuild is not None and site is not None:
        lines = (Line(text=f'export {site.prefix_variable}="$PREFIX"', reason="where EasyBuild installs"),)
    return (*lines, *(environment_lines(None, profile) if offer.environment.site_setup else ()))


def inside_offer(
    profile: SiteProfile, offer: Offer, prefix: str, inside: tuple[Line, ...]
) -> tuple[Line, ...]:
    """Return the steps that run others where an offer is loaded: here, in its image, or behind ``enter``."""
    first = (
        *_head(profile),
        *(Line(text=text, reason=f"from the site ({cite(profile, offer.source)})") for text in offer.install),
    )
    container = offer.environment.container
    if container is not None:
        runtime = runtime_of(profile)
        words = (runtime, "exec", *gpu_flag(profile, container), double_quote(container.image))
        return (
            *first,
            *module_lines(profile),
            Line(text='mkdir -p "$PREFIX"', reason="it must exist to be seen in the container"),
            *bind_lines(RUNTIMES[runtime].binds, ("$PREFIX",), profile, facts_of(profile)),
            _script(" ".join(words), inside),
        )
    if offer.enter is not None:
        return (*first, _script(offer.enter, inside))
    return (*first, *environment_lines(offer.environment, profile), *inside)


def _script(enter: str, inside: Iterable[Line]) -> Line:
    """Return one step that runs others as a script behind a command."""
    text = "\n".join(["set -eo pipefail", *(f"# {step.cited}\n{step.text}" for step in inside)])
    return Line(
        text=f"{enter} bash <<'HPCLAUNCH_INSIDE'\n{text}\nHPCLAUNCH_INSIDE",
        reason="the rest runs where the framework is",
    )


# --- EasyBuild and EESSI -----------------------------------------------------------------------------------


def eb_command(recipe: easyconfig.Recipe) -> str:
    """Return the words of ``eb`` for a recipe: with its commit, and the licences that CUDA needs."""
    words = ["eb"]
    if recipe.commit:
        words += ["--from-commit", recipe.commit]
    if easyconfig.parse_easyconfig(recipe.file).cuda:
        words.append(f"--accept-eula-for={','.join(easyconfig.EULAS)}")
    return " ".join([*words, recipe.file, "--robot"])


def easybuild(profile: SiteProfile, recipe: easyconfig.Recipe, goal: str | None) -> tuple[Line, ...]:
    """Return the steps of EasyBuild in a separate venv, in the release whose recipes are known.

    ``goal``: what the recipe is for; None: something is installed on top of it.
    """
    load = Environment(site_setup=False, easybuild=JobEasyBuild(prefix="$PREFIX", load=(recipe.file,)))
    accepted = ""
    if easyconfig.parse_easyconfig(recipe.file).cuda:
        accepted = f"; it accepts NVIDIA's licences for {' and '.join(easyconfig.EULAS)}, so read them first"
    return (
        *_head(profile),
        Line(text='python3 -m venv "$PREFIX/easybuild-venv"', reason="EasyBuild in a separate environment"),
        Line(
            text=f'"$PREFIX/easybuild-venv/bin/pip" install easybuild=={easyconfig.RELEASE}',
            reason="the release in which the recipe was found, or which can fetch it",
        ),
        Line(text='export EASYBUILD_PREFIX="$PREFIX"', reason="where EasyBuild installs"),
        Line(
            text=f'"$PREFIX"/easybuild-venv/bin/{eb_command(recipe)}',
            reason=f"with all that it needs{accepted}",
        ),
        *environment_lines(load, _without_easybuild(profile))[1:],
        *((_prove(goal),) if goal else ()),
    )


def _without_easybuild(profile: SiteProfile) -> SiteProfile:
    """Return the profile with EasyBuild's own variable: the recipe is not that of the site's stack."""
    return replace(profile, software=replace(profile.software, easybuild=None))


def eessi(
    profile: SiteProfile, name: str, module: EessiModule, job: JobEessi, prefix: str
) -> tuple[Line, ...]:
    """Return the steps of a module of EESSI; none where it is there already."""
    if job.init == "container":
        return (*module_lines(profile), *_eessi_container())
    if not module.extend and not module.package:
        return ()
    site = profile.software.eessi
    folder = Line(text='mkdir -p "$PREFIX"', reason="EESSI-extend wants its folder to exist")
    steps = [*_head(profile), folder, *init_lines(job, site.modules if site else ())]
    if module.extend:
        steps += [
            Line(text=eb_command(module.extend), reason=f"on top of EESSI's {module.name}"),
            Line(text=f"module load {module.extend_module}", reason="the module of that recipe"),
            _prove(name),
        ]
    else:
        steps += [
            Line(text=f"module load {module.name}", reason="the framework, from EESSI"),
            *package_on_top(profile, name, system=True),
        ]
    return tuple(steps)


def _eessi_container() -> tuple[Line, ...]:
    return (
        Line(text='mkdir -p "$PREFIX"', reason="for the scripts and the image"),
        Line(
            text='[ -d "$PREFIX/software-layer-scripts" ] ||\n'
            f'  git clone --depth 1 {SCRIPTS} "$PREFIX/software-layer-scripts"',
            reason="eessi_container.sh is in this repository now, no longer in software-layer",
        ),
        Line(
            text='if [ ! -x "$PREFIX/build-node_debian12.sif" ]; then\n'
            "  runtime=$(command -v apptainer || command -v singularity)\n"
            f'  "$runtime" pull "$PREFIX/part.sif" {IMAGE}\n'
            '  chmod +x "$PREFIX/part.sif"\n'
            '  mv "$PREFIX/part.sif" "$PREFIX/build-node_debian12.sif"\n'
            "fi",
            reason="the image of eessi_container.sh, once for all ranks and jobs",
        ),
    )


# --- containers and pip ------------------------------------------------------------------------------------


def _requirements(name: str, wheels: Wheels) -> tuple[str, ...]:
    goal = GOALS[name]
    return (*wheels.words, *((goal.package,) if goal.package else ()))


def cotainr(profile: SiteProfile, name: str, wheels: Wheels, image: str) -> tuple[Line, ...]:
    """Return the steps that build an image with cotainr from a conda environment with pip's wheels."""
    site = profile.software.container
    system = site.cotainr if site else ""
    index = [f"    - --extra-index-url {wheels.index}"] if wheels.index else []
    packages = [f"    - {each}" for each in _requirements(name, wheels)]
    above = [
        f"name: {name}",
        "channels: [conda-forge]",
        "dependencies:",
        "  - python=3.11",
        "  - pip",
        "  - pip:",
    ]
    file = "\n".join([*above, *index, *packages])
    return (
        Line(text='mkdir -p "$PREFIX"', reason="for the image"),
        Line(
            text=f"cat > \"$PREFIX/{name}.yml\" <<'END'\n{file}\nEND",
            reason=f"the packages ({wheels.source}); the index has the wheels for this site's GPUs",
        ),
        Line(text="module load LUMI cotainr", reason="cotainr of the site's stack"),
        Line(
            text=f"cotainr build {double_quote(image)} --system={system}"
            f' --conda-env="$PREFIX/{name}.yml" --accept-licenses',
            reason="some minutes; no root is needed",
        ),
    )


def wrapper(profile: SiteProfile, name: str, wheels: Wheels, prefix: str) -> tuple[Line, ...]:
    """Return the steps of the container wrapper with pip's requirements."""
    index = [f"--extra-index-url {wheels.index}"] if wheels.index else []
    file = "\n".join([*index, *_requirements(name, wheels)])
    return (
        *_head(profile),
        *environment_lines(None, profile),
        Line(text='mkdir -p "$PREFIX"', reason="for the wrapper's image and programs"),
        Line(
            text=f"cat > \"$PREFIX/requirements.txt\" <<'END'\n{file}\nEND",
            reason=f"the packages ({wheels.source}); the index has the wheels for this site's GPUs",
        ),
        Line(text=f"module load {profile.software.wrapper}", reason="the site's container wrapper"),
        Line(
            text='pip-containerize new --prefix "$PREFIX" "$PREFIX/requirements.txt"',
            reason="one image instead of many small files",
        ),
        Line(text='export PATH="$PREFIX/bin:$PATH"', reason="the programs of the image"),
        _prove(name),
    )


def pip(profile: SiteProfile, name: str, vendor: str | None) -> tuple[Line, ...]:
    """Return the steps of a venv with what pip installs."""
    goal = GOALS[name]
    venv = _venv("$PREFIX", system=False)
    if name == "mpi4py":
        return (
            *venv,
            Line(text="pip install mpi4py", reason="it finds the MPI that is loaded"),
            _prove(name),
        )
    if goal.base == "tensorflow":
        newest = ".".join(map(str, TESTED_TENSORFLOW))
        text = f"pip install 'tensorflow-cpu=={newest}.*'"
        first = Line(
            text=text, reason="the newest TensorFlow that Horovod was tested with; Python 3.8 to 3.11"
        )
    else:
        wheels = WHEELS[goal.base or name, vendor or "cpu"]
        index = f" --index-url {wheels.index}" if wheels.index else ""
        words = " ".join(map(shlex.quote, wheels.words))
        first = Line(text=f"pip install{index} {words}", reason=f"the wheels ({wheels.source})")
    if goal.package is None:
        return (*venv, first, _prove(name))
    if goal.package == "horovod":
        tools = Line(text="pip install wheel 'setuptools<81'", reason="what Horovod's build imports")
        return (*venv, first, tools, *_horovod(profile, name), _prove(name))
    more = Line(text=f"pip install {goal.package}", reason=f"{goal.package}, for the framework below it")
    return (*venv, first, more, _prove(name))


def pip_notes(name: str) -> tuple[str, ...]:
    """Return what is worth knowing about a goal from pip."""
    if GOALS[name].package != "horovod":
        return ()
    notes = [f"Horovod {VERSION} is published as source only: it is compiled with the loaded MPI"]
    if GOALS[name].base == "torch":
        since = ".".join(map(str, CXX17_FROM_TORCH))
        notes.append(f"torch from {since} on needs C++17; a wrapper of the compiler sets it")
    return tuple(notes)


# --- texts -------------------------------------------------------------------------------------------------


def script(plan: InstallPlan, route: Route, job_file: str) -> str:
    """Return a bash script of a route's steps, each under its reason."""
    about = _about(plan, route)
    steps = "\n\n".join(f"# {step.cited}\n{step.text}" for step in route.steps)
    check = f"hpclaunch check --site {plan.site} --file {shlex.quote(job_file)} {GOALS[plan.goal].check}"
    project = f': "${{{ACCOUNT}:?set it to your project: {ACCOUNT}=... bash $0}}"\n' * (
        ACCOUNT in plan.prefix
    )
    return (
        f"#!/bin/bash\n{about}set -eo pipefail\n{project}"
        f"export PREFIX={double_quote(plan.prefix)}\n\n{steps}\n\n"
        f"echo {shlex.quote(f'installed; check it with: {check}')}\n"
    )


def job_text(plan: InstallPlan, route: Route, job_file: str) -> str:
    """Return the job file that uses what a route installs."""
    check = f"# hpclaunch check --site {plan.site} --file {shlex.quote(job_file)} {GOALS[plan.goal].check}\n"
    submit = f"# hpclaunch submit --file {shlex.quote(job_file)} --nodes 1 --time 30m -- python3 train.py\n"
    return f"{_about(plan, route)}{check}{submit}{settings_text(route)}"


def settings_text(route: Route) -> str:
    """Return the settings of the job that uses a route, as YAML."""
    import yaml  # seldom needed

    settings = {key: value for key, value in msgspec.to_builtins(route.job).items() if value}
    text: str = yaml.safe_dump(settings, sort_keys=False, width=110)
    return text


def _about(plan: InstallPlan, route: Route) -> str:
    parts = [f"{plan.goal} on {plan.site}, the way {route.name}: {route.why}", *route.notes]
    if route.versions:
        parts.append(
            "versions: " + ", ".join(f"{name} {version}" for name, version in route.versions.items())
        )
    return "".join(f"# {' '.join(part.split())}\n" for part in parts)
