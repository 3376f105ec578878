"""How to get Horovod for a framework on a site: each way with its steps, or why it does not work. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.json_document import Document
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.job_environment import Environment, JobEasyBuild, JobEessi
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import Container, SiteProfile
from hpclaunch.software import easyconfig
from hpclaunch.software.contradictions import contradictions
from hpclaunch.software.eessi import TOOLCHAINS, accelerator_target, init_lines
from hpclaunch.software.gpu_arch import cuda_addresses, first_cuda
from hpclaunch.software.horovod_facts import CXX17_FROM_TORCH, TESTED_TENSORFLOW, VERSION, build_variables
from hpclaunch.software.shell_quoting import double_quote
from hpclaunch.software.software_lines import environment_lines

GOALS = {"horovod-tensorflow": "tensorflow", "horovod-torch": "pytorch"}
ROUTES = ("site", "easybuild", "eessi", "container", "pip")
VENV = "$HOME/hpclaunch-horovod"
# Generation of foss -> the CUDA that EasyBuild's easyconfigs use with it (easybuild-easyconfigs, develop).
_CUDA_OF_FOSS = {
    "2022a": "11.7.0",
    "2022b": "12.0.0",
    "2023a": "12.1.1",
    "2023b": "12.4.0",
    "2024a": "12.6.0",
}
# What EESSI has to build on (EESSI docs, available software): version -> framework -> module.
_EESSI_MODULES = {
    "2023.06": {"tensorflow": "TensorFlow/2.13.0-foss-2023a", "pytorch": "PyTorch/2.1.2-foss-2023a"},
    "2025.06": {"pytorch": "PyTorch/2.7.1-foss-2024a-CUDA-12.6.0"},
}
_CXX17 = """cat > "$VIRTUAL_ENV/bin/g++17" <<'END'
#!/bin/bash
args=(); for a in "$@"; do [ "$a" = "-std=c++14" ] && a="-std=c++17"; args+=("$a"); done
exec g++ "${args[@]}"
END
chmod +x "$VIRTUAL_ENV/bin/g++17"
export CXX="$VIRTUAL_ENV/bin/g++17\""""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One way to install."""

    name: str
    """site, easybuild, eessi, container or pip."""
    possible: bool
    why: str
    """What it gives, or why it does not work here."""
    steps: tuple[Line, ...] = ()


class InstallPlan(Document, frozen=True, kw_only=True):
    """All ways on one site."""

    site: str
    goal: str
    chosen: str
    """Name of the route to take."""
    routes: tuple[Route, ...]

    def route(self, name: str | None = None) -> Route:
        """Return the chosen route, or the named one. Raises BadInputError for one that is not possible."""
        wanted = name or self.chosen
        found = next(route for route in self.routes if route.name == wanted)
        if not found.possible:
            there = ", ".join(route.name for route in self.routes if route.possible)
            raise BadInputError(f"--route {wanted}: {found.why}", f"possible on {self.site}: {there}")
        return found


DOCUMENTS = {"env-plan": InstallPlan}
"""Name of the schema -> its type."""


def plan_install(profile: SiteProfile, goal: str) -> InstallPlan:
    """Return the ways to get ``horovod-tensorflow`` or ``horovod-torch`` on a site."""
    framework = GOALS[goal]
    routes = (
        _from_site(profile, goal, framework),
        _easybuild(profile, framework),
        _eessi(profile, framework),
        _container(profile, framework),
        _pip(profile, framework),
    )
    # Without the site's EasyBuild this way starts by building compilers: hours instead of minutes with pip.
    liked = [r for r in routes if r.possible and (r.name != "easybuild" or profile.software.easybuild)]
    chosen = liked[0].name
    return InstallPlan(site=profile.name, goal=goal, chosen=chosen, routes=routes)


def script(plan: InstallPlan, route: Route) -> str:
    """Return a bash script of a route's steps, each under its reason."""
    steps = "\n\n".join(f"# {step.reason}\n{step.text}" for step in route.steps)
    head = f"# {plan.goal} on {plan.site}, with the way {route.name}: {route.why}".replace("\n", " ")
    return f"#!/bin/bash\n{head}\nset -eo pipefail\n\n{steps}\n"


def _verify(profile: SiteProfile, framework: str) -> Line:
    """Return the check of the site's requirements, for the shell that the steps have set up."""
    names = ["mpi"]
    if profile.node and profile.node.gpus:
        names += {"amd": ["rocm", "nccl"], "nvidia": ["cuda", "nccl"]}.get(profile.node.gpu_vendor or "", [])
    words = ",".join([*names, framework])
    return Line(text=f"hpclaunch check --require {words}", reason="check the requirements of this site")


def _from_site(profile: SiteProfile, goal: str, framework: str) -> Route:
    """What the site itself offers."""
    offer = profile.software.offers.get(goal)
    if offer is None:
        why = f"{profile.name} documents no {goal}"
        return Route(name="site", possible=False, why=why)
    source = f"from the site ({cite(profile, offer.source)})"
    steps = (*(Line(text=text, reason=source) for text in offer.lines), _verify(profile, framework))
    return Route(name="site", possible=True, why=offer.note or source, steps=steps)


# --- EasyBuild ---------------------------------------------------------------------------------------------


def _easybuild(profile: SiteProfile, framework: str) -> Route:
    """The newest easyconfig that exists and works on the site."""
    refused: list[str] = []
    for file in easyconfig.HOROVOD[framework]:
        against = tuple(_against(file, profile))
        if not against:
            why = f"{file} exists ({easyconfig.SOURCE}) and its CUDA supports the GPUs here"
            if not easyconfig.parse_easyconfig(file).cuda:
                why = f"{file} exists ({easyconfig.SOURCE}), for CPUs"
            return Route(
                name="easybuild",
                possible=True,
                why=why + _fabric_note(profile),
                steps=_easybuild_steps(profile, file, framework),
            )
        refused.append(against[0])
    return Route(name="easybuild", possible=False, why=_no_easyconfig(profile, refused))


def _against(file: str, profile: SiteProfile) -> Iterator[str]:
    """Yield why an easyconfig does not work on a site."""
    node = profile.node
    gpus = bool(node and node.gpus)
    parsed = easyconfig.parse_easyconfig(file)
    yield from contradictions(Environment(easybuild=JobEasyBuild(load=(file,))), profile)
    if gpus and not parsed.cuda:
        yield f"{file} is built for CPUs only"
    if not gpus and parsed.cuda:
        yield f"{file} needs CUDA {parsed.cuda}, and this site has no known GPU"
    site = profile.software.easybuild
    if site and site.toolchains and parsed.toolchain not in site.toolchains:
        yield f"{file} has the toolchain {parsed.toolchain}; this site has {', '.join(site.toolchains)}"


def _no_easyconfig(profile: SiteProfile, refused: list[str]) -> str:
    """Return why no easyconfig works, and which toolchain a new one would need."""
    why = "no existing Horovod easyconfig works: " + "; ".join(dict.fromkeys(refused))
    arch = profile.node.gpu_arch if profile.node and profile.node.gpus else None
    fitting = [
        f"foss-{generation} with CUDA {cuda}"
        for generation, cuda in _CUDA_OF_FOSS.items()
        if arch and cuda_addresses(cuda, arch)
    ]
    if fitting and arch and first_cuda(arch):
        why += (
            f". For {arch} (CUDA {first_cuda(arch)} or newer) start a new one from {fitting[0]};"
            " nothing exists for foss 2022b or later"
        )
    return why


def _fabric_note(profile: SiteProfile) -> str:
    """Return a note about Slingshot: EasyBuild's Open MPI uses it only through a libfabric with cxi."""
    if not profile.fabric.kind.startswith("slingshot"):
        return ""
    return (
        ". Its Open MPI uses Slingshot only with a libfabric that has the provider cxi: first run"
        " hpclaunch check --allreduce-test on two nodes"
    )


def _easybuild_steps(profile: SiteProfile, file: str, framework: str) -> tuple[Line, ...]:
    site = profile.software.easybuild
    variable = site.prefix_variable if site else "EASYBUILD_PREFIX"
    prefix = site.prefix if site and site.prefix and "<" not in site.prefix else "$HOME/easybuild"
    steps = [
        Line(
            text=f"export {variable}={double_quote(prefix)}", reason="the folder that EasyBuild installs into"
        )
    ]
    if site and site.modules:
        steps.append(Line(text=f"module load {' '.join(site.modules)}", reason="EasyBuild of the site"))
    else:
        steps += [
            Line(
                text='python3 -m venv "$HOME/easybuild-venv"', reason="no EasyBuild of the site is documented"
            ),
            Line(text='source "$HOME/easybuild-venv/bin/activate"', reason="use the venv of EasyBuild"),
            Line(text="pip install easybuild", reason="EasyBuild and its easyconfigs"),
        ]
    module = easyconfig.module_of(file)
    steps.append(Line(text=f"eb {file} --robot", reason="with all dependencies; the first build takes hours"))
    if variable == "EASYBUILD_PREFIX":
        steps.append(
            Line(
                text=f"module use {double_quote(prefix + '/modules/all')}",
                reason="the folder with its modules",
            )
        )
    steps += [
        Line(text=f"module load {module}", reason="the module of that easyconfig"),
        _verify(profile, framework),
    ]
    return tuple(steps)


# --- EESSI -------------------------------------------------------------------------------------------------


def _eessi(profile: SiteProfile, framework: str) -> Route:
    """EESSI has no Horovod, but pip can build it on EESSI's framework."""
    fact = "EESSI has no Horovod in any version, so `module load Horovod/...` from it fails"
    chains = "; ".join(f"{version}: foss {', '.join(these)}" for version, these in TOOLCHAINS.items())
    fact += f" (it has {chains}, and no Horovod easyconfig exists for these)"
    site, node = profile.software.eessi, profile.node
    if site is None:
        return Route(name="eessi", possible=False, why=f"{fact}; {profile.name} documents no EESSI")
    if node and node.gpus and node.gpu_vendor != "nvidia":
        return Route(
            name="eessi", possible=False, why=f"{fact}; it has no framework for {node.gpu_vendor} GPUs"
        )
    module, version = _eessi_module(profile, framework, site.versions)
    if module is None or version is None:
        why = f"{fact}; it has no {framework} for the GPUs of {profile.name} either"
        return Route(name="eessi", possible=False, why=why)
    target = accelerator_target(node.gpu_arch if node and node.gpus else None)
    eessi = JobEessi(version=version, accelerator=target)
    steps = (
        *init_lines(eessi, site.modules),
        Line(text=f"module load {module}", reason="the framework, from EESSI"),
        *_venv(),
        *_build(profile, framework),
        _verify(profile, framework),
    )
    return Route(name="eessi", possible=True, why=f"{fact}; pip builds it on EESSI's {module}", steps=steps)


def _eessi_module(
    profile: SiteProfile, framework: str, versions: tuple[str, ...]
) -> tuple[str | None, str | None]:
    """Return (module, EESSI version) of a framework that can use this site's GPUs, the newest first."""
    gpus = bool(profile.node and profile.node.gpus)
    for version in sorted(versions or tuple(_EESSI_MODULES), reverse=True):
        module = _EESSI_MODULES.get(version, {}).get(framework)
        if module and bool(easyconfig.cuda_in(module)) == gpus:
            return module, version
    return None, None


# --- containers --------------------------------------------------------------------------------------------


def _container(profile: SiteProfile, framework: str) -> Route:
    """The site's image of a framework, with Horovod in a venv."""
    site = profile.software.container
    if site is None or site.runtime in ("none", "container-engine"):
        what = "runs containers by srun --environment only" if site else "documents no containers"
        elsewhere = "build an image with Horovod on another machine, with the steps of the way pip"
        why = f"{profile.name} {what}: {elsewhere}"
        return Route(name="container", possible=False, why=why)
    image = next((each for each in site.images if each.endswith(".sif")), None)
    if image is None:
        where = f" in {', '.join(site.images)}" if site.images else ""
        why = f"choose an image with {framework}{where}; none with Horovod is documented"
        return Route(name="container", possible=False, why=why)
    if not _fits_image(image, framework):
        why = f"the image that the site documents, {image}, is not for {framework}"
        return Route(name="container", possible=False, why=why)
    steps = (
        *environment_lines(None, profile),
        *(Line(text=text, reason="what the site's containers need") for text in site.modules),
        *_container_steps(site, image, (*_venv(system=True), *_build(profile, framework))),
    )
    why = f"the site's image {image}, with Horovod in a venv: environment: container: venv: {VENV}"
    return Route(name="container", possible=True, why=why, steps=steps)


def _container_steps(site: Container, image: str, inside: tuple[Line, ...]) -> Iterator[Line]:
    """Yield the lines that run the steps ``inside`` a container."""
    if site.binds:
        variable = {"singularity": "SINGULARITY_BIND", "apptainer": "APPTAINER_BIND"}[site.runtime]
        binds = f"${{{variable}:+${variable},}}{','.join(site.binds)}"
        yield Line(text=f"export {variable}={double_quote(binds)}", reason="MPI and fabric, in addition")
    flags = f"{site.gpu_flag} " if site.gpu_flag else ""
    script = "\n".join(["set -eo pipefail", *(step.text for step in inside)])
    yield Line(
        text=f"{site.runtime} exec {flags}{image} bash <<'HPCLAUNCH_INSIDE'\n{script}\nHPCLAUNCH_INSIDE",
        reason="build Horovod inside the image, in a venv with access to the image's packages",
    )


def _fits_image(image: str, framework: str) -> bool:
    return {"pytorch": "torch", "tensorflow": "tensorflow"}[framework] in image.lower()


# --- pip ---------------------------------------------------------------------------------------------------


def _pip(profile: SiteProfile, framework: str) -> Route:
    """From source with pip: Horovod publishes no wheels."""
    node = profile.node
    notes = [f"Horovod {VERSION} is published as source only: it is compiled with the loaded MPI"]
    if framework == "pytorch":
        notes.append(f"torch from {'.'.join(map(str, CXX17_FROM_TORCH))} on needs C++17; a wrapper sets it")
    else:
        newest = ".".join(map(str, TESTED_TENSORFLOW))
        notes.append(f"tested with TensorFlow up to {newest}, which needs Python 3.8 to 3.11")
        if node and "Grace" in node.cpu_model:
            notes.append("pip has no TensorFlow with CUDA for aarch64: take the framework from a container")
    steps = (
        *environment_lines(None, profile),
        *_venv(),
        _framework(profile, framework),
        *_build(profile, framework),
        _verify(profile, framework),
    )
    return Route(name="pip", possible=True, why="; ".join(notes), steps=steps)


def _venv(*, system: bool = False) -> tuple[Line, ...]:
    option = "--system-site-packages " if system else ""
    return (
        Line(text=f"python3 -m venv {option}{double_quote(VENV)}", reason="a separate environment"),
        Line(text=f"source {double_quote(VENV + '/bin/activate')}", reason="use its Python from here on"),
    )


def _framework(profile: SiteProfile, framework: str) -> Line:
    """Return the step that installs the framework; the user chooses a wheel for the site's GPUs."""
    node = profile.node
    vendor = node.gpu_vendor if node and node.gpus else None
    build = {"amd": "ROCm", "nvidia": "CUDA"}.get(vendor or "", "CPU")
    if framework == "tensorflow":
        newest = ".".join(map(str, TESTED_TENSORFLOW))
        name = {"amd": "tensorflow-rocm", "nvidia": "tensorflow"}.get(vendor or "", "tensorflow-cpu")
        text = f"pip install '{name}=={newest}.*' wheel 'setuptools<81'"
        return Line(
            text=text, reason=f"TensorFlow for {build}, the newest version that Horovod was tested with"
        )
    text = "pip install torch numpy wheel 'setuptools<81'"
    hint = f"torch; make sure that it is the build for {build} (torch's installation page names the index)"
    return Line(text=text, reason=hint)


def _build(profile: SiteProfile, framework: str) -> tuple[Line, ...]:
    """Return the steps that compile Horovod with the variables of the site."""
    variables = build_variables(profile, framework)
    exports = " ".join(
        f"{name}={double_quote(value) if '$' in value else value}" for name, value in variables.items()
    )
    steps = []
    if framework == "pytorch":
        steps.append(
            Line(text=_CXX17, reason="the release sets C++14, torch 2.1 and newer need C++17 (PR 3998)")
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
