"""The ways to get a framework on a site, each a function from what is known to steps and a job. Pure."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from hpclaunch.framework_table import GOALS, Goal
from hpclaunch.site.job_environment import Environment, JobContainer, JobEasyBuild, JobEessi
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import Offer, SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler
from hpclaunch.software import easyconfig, eessi, install_steps
from hpclaunch.software.container_runtimes import RUNTIMES, runtime_of
from hpclaunch.software.contradictions import contradictions
from hpclaunch.software.easyconfig import Recipe, Wheels, parse_easyconfig, provided, wheels_of
from hpclaunch.software.gpu_arch import cuda_addresses, first_cuda, version_numbers
from hpclaunch.software.horovod_facts import DOCUMENTED_GPU_BUILDS
from hpclaunch.software.install_steps import Way
from hpclaunch.software.mpi_families import compatible, mpi_family


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The goal and the machine of a plan."""

    profile: SiteProfile
    name: str
    """Key of ``GOALS``."""
    prefix: str

    @property
    def goal(self) -> Goal:
        """The row of the table."""
        return GOALS[self.name]

    @property
    def vendor(self) -> str | None:
        """The vendor of the site's GPUs; None: it has none."""
        node = self.profile.node
        return node.gpu_vendor if node and node.gpus else None

    @property
    def arch(self) -> str | None:
        """The architecture of its GPUs."""
        node = self.profile.node
        return node.gpu_arch if node and node.gpus else None

    @property
    def slingshot(self) -> bool:
        """Whether its network is Slingshot, which needs a libfabric with cxi and a plugin of NCCL."""
        return self.profile.fabric.kind.startswith("slingshot")

    @property
    def anonymous(self) -> bool:
        """Whether the profile describes no machine: what it has is not known."""
        return self.profile.status == "generic"

    def download(self) -> str | None:
        """Return why nothing can be downloaded; None: it can."""
        if self.profile.internet_on_login is False and not self.profile.internet_on_compute:
            return f"neither login nor compute nodes of {self.profile.name} reach the internet"
        return None


def _starts(target: Target, mpi: str) -> tuple[str | None, str | None]:
    """Return (value of srun --mpi, why its launcher cannot start programs of this MPI)."""
    profile, family = target.profile, mpi_family(mpi) or mpi
    own = mpi_family(profile.mpi.implementation or "")
    if own and compatible(own, family):
        return None, None
    if target.anonymous or profile.mpi.plugin_open:
        return None, None
    plugin = {"Open MPI": "pmix"}.get(family, "pmi2")
    if plugin in profile.mpi.alternatives or profile.mpi.plugin == plugin:
        return plugin, None
    launcher = profile.scheduler.launcher
    return (
        None,
        f"no way to start {mpi} with {launcher} is documented: {profile.name} has {own or 'another MPI'}",
    )


def _for_horovod(target: Target, versions: dict[str, str]) -> str | None:
    """Return why Horovod cannot be built on this base; None: no fact is against it."""
    mpi = versions.get("mpi")
    if mpi is None:
        return "which MPI is in it is not documented, and Horovod is compiled with one"
    if mpi_family(mpi) == "Open MPI" and version_numbers(mpi.rsplit(" ", 1)[-1])[:1] >= (5,):
        return f"it has {mpi}, and no build of Horovod with Open MPI 5 is known (it wants Open MPI 4)"
    if target.vendor is None:
        return None
    kit = {"nvidia": "cuda", "amd": "rocm"}.get(target.vendor)
    if kit is None:
        return f"no build of Horovod for {target.vendor} GPUs is known"
    newest, where = DOCUMENTED_GPU_BUILDS[kit]
    have = version_numbers(versions.get(kit, ""))
    if not have:
        return f"which {kit} is in it is not documented, and Horovod is compiled with one"
    if have[: len(newest)] > newest:
        listed = ".".join(map(str, newest))
        return (
            f"no build of Horovod with {kit} {versions[kit]} is documented; the newest is {listed} ({where})"
        )
    return None


def _foreign_stack(
    target: Target, mpi: str | None
) -> tuple[str | None, str | None, int | None, tuple[str, ...]]:
    """Judge a stack that is not the site's: (srun's plugin, why not, nodes, notes)."""
    plugin, why_not = _starts(target, mpi) if mpi and target.goal.by_mpi else (None, None)
    if why_not:
        return None, why_not, None, ()
    if not target.slingshot:
        return plugin, None, None, ()
    if target.goal.by_mpi:
        why = "its Open MPI has no libfabric with the provider cxi, which Slingshot needs"
        return None, why, None, ()
    if target.vendor is None:
        return plugin, None, None, ()
    note = "one node only: on several NCCL needs a plugin for Slingshot, which this stack does not have"
    return plugin, None, 1, (note,)


def _with_prefix(value: Any, prefix: str) -> Any:
    """Return data with $PREFIX replaced in every text."""
    if isinstance(value, str):
        return value.replace("$PREFIX", prefix)
    if isinstance(value, dict):
        return {key: _with_prefix(each, prefix) for key, each in value.items()}
    return [_with_prefix(each, prefix) for each in value] if isinstance(value, list | tuple) else value


def from_site(target: Target) -> Way | str:
    """The software that the site has or documents, or a small package on top of it."""
    profile, offers = target.profile, target.profile.software.offers
    offer = offers.get(target.name)
    if offer is not None:
        if offer.install and (offline := target.download()):
            return offline
        steps = install_steps.of_offer(profile, offer, target.prefix)
        return Way(why=_why(target, offer), steps=steps, **_job_of(offer, target.prefix))
    base = offers.get(target.goal.base or "")
    if base is None:
        return _unknown(target)
    found = _on_top(target, base)
    return f"{_unknown(target)}; on its {target.goal.base}: {found}" if isinstance(found, str) else found


def _unknown(target: Target) -> str:
    """Return that the site has no such software, as its page says, or that the profile knows of none."""
    profile = target.profile
    if lack := profile.software.lacks.get(target.name):
        return f"{lack.why} ({cite(profile, lack.source)})"
    return f"our profile of {profile.name} knows no {target.name}"


def _why(target: Target, offer: Offer) -> str:
    return f"{offer.note or 'what the site documents'} ({cite(target.profile, offer.source)})"


def _job_of(offer: Offer, prefix: str) -> dict[str, Any]:
    environment = _with_prefix(msgspec.to_builtins(offer.environment), prefix)
    return {
        "environment": msgspec.convert(environment, Environment),
        "directives": offer.directives,
        "env": _with_prefix(dict(offer.env), prefix),
        "mpi": offer.mpi,
        "versions": dict(offer.versions),
    }


def _on_top(target: Target, base: Offer) -> Way | str:
    """Install a package into a venv on top of the site's framework."""
    if why := target.download() or target.profile.software.no_venv:
        return why
    if target.goal.package == "horovod" and (why := _for_horovod(target, base.versions)):
        return why
    job = _job_of(base, target.prefix)
    environment: Environment = job.pop("environment")
    if environment.container is not None:
        if RUNTIMES[runtime_of(target.profile)].start != "exec":
            return "its images start by srun only, so a venv inside is made by hand in a job"
        venv = replace(environment, container=replace(environment.container, venv=target.prefix))
    else:
        venv = replace(environment, venv=target.prefix)
    inside = install_steps.package_on_top(target.profile, target.name, system=True)
    steps = install_steps.inside_offer(target.profile, base, target.prefix, inside)
    why = f"{target.goal.package} in a venv on top of the site's {target.goal.base}: {_why(target, base)}"
    notes = (f"{target.goal.package} on top of it was not tried there",)
    return Way(why=why, steps=steps, environment=venv, notes=notes, **job)


def easybuild(target: Target) -> Way | str:
    """The first recipe that exists and works on the site."""
    if offline := target.download():
        return offline
    if re.search(r"\s", target.prefix):
        return "EasyBuild cannot install into a folder with a blank in its name (its modules have no quotes)"
    own = target.name in easyconfig.recipes()
    recipes = easyconfig.recipes().get(target.name if own else target.goal.base or "", ())
    if not recipes:
        return f"no easyconfig of {target.name} is in release {easyconfig.RELEASE}"
    refused: list[str] = []
    for recipe in recipes:
        against = next(_against(recipe, target), None)
        if against is None:
            return _easybuild_way(target, recipe, own)
        refused.append(against)
    return _no_recipe(target, refused)


def _against(recipe: Recipe, target: Target) -> Iterator[str]:
    profile, parsed, versions = target.profile, parse_easyconfig(recipe.file), provided(recipe)
    alone = Environment(site_setup=False, easybuild=JobEasyBuild(load=(recipe.file,)))
    yield from contradictions(alone, profile)
    if target.vendor and not parsed.cuda and target.goal.framework != "mpi4py":
        yield f"{recipe.file} is built for CPUs only"
    if parsed.cuda and target.vendor != "nvidia":
        has = f"has {target.vendor} GPUs" if target.vendor else "has no known GPU"
        yield f"{recipe.file} needs CUDA {parsed.cuda}, and {profile.name} {has}"
    site = profile.software.easybuild
    if site and site.toolchains and parsed.toolchain not in site.toolchains:
        listed = ", ".join(site.toolchains)
        yield f"{recipe.file} has the toolchain {parsed.toolchain}; this site has {listed}"
    if target.goal.package == "horovod" and (why := _for_horovod(target, versions)):
        yield f"{recipe.file}: {why}"
    if why := _foreign_stack(target, versions.get("mpi"))[1]:
        yield f"{recipe.file}: {why}"


def _no_recipe(target: Target, refused: list[str]) -> str:
    why = "no recipe works: " + "; ".join(dict.fromkeys(refused))
    first = first_cuda(target.arch) if target.arch else None
    if first and any("cannot address" in each for each in refused):
        why += f". For {target.arch} a recipe needs CUDA {first} or newer"
    return why


def _easybuild_way(target: Target, recipe: Recipe, own: bool) -> Way | str:
    """Return the way with one recipe, and with a package on top where the recipe is only the base."""
    plugin, _, nodes, notes = _foreign_stack(target, provided(recipe).get("mpi"))
    prefix = target.prefix
    environment = Environment(easybuild=JobEasyBuild(prefix=prefix, load=(recipe.file,)))
    if target.profile.software.setup:
        environment = replace(environment, site_setup=False)
    steps = install_steps.easybuild(target.profile, recipe, target.name if own else None)
    why = f"{recipe.file} is in release {easyconfig.RELEASE} of EasyBuild's recipes ({easyconfig.SOURCE})"
    if recipe.commit:
        commit = f"{easyconfig.SOURCE}, {recipe.commit}"
        why = f"{recipe.file} is in no release: it is that of a pull request ({commit})"
        notes = (*notes, "no report of a build of this recipe was read")
    if not own:
        if target.profile.software.no_venv:
            return target.profile.software.no_venv
        environment = replace(environment, venv=f"{prefix}/venv")
        steps = (
            *steps,
            *install_steps.package_on_top(target.profile, target.name, system=True, venv=f"{prefix}/venv"),
        )
        why = f"{target.goal.package} in a venv on top of EasyBuild's: {why}"
    notes = (*notes, "the first build takes hours; build on a node with the CPU of the compute nodes")
    return Way(
        why=why, steps=steps, environment=environment, mpi=plugin, nodes=nodes,
        versions=provided(recipe), notes=notes, slow=True,
    )  # fmt: skip


def eessi_native(target: Target) -> Way | str:
    """A module of EESSI where the site has it, or a recipe or package on top of one."""
    site = target.profile.software.eessi
    if site is None:
        return f"our profile of {target.profile.name} knows no EESSI{_no_horovod(target)}"
    return _eessi(target, site.versions or tuple(eessi.eessi_modules()), "module")


def eessi_container(target: Target) -> Way | str:
    """A module of EESSI in its container, where nodes have no CernVM-FS but reach the internet."""
    profile = target.profile
    container = profile.software.container
    if container is None and not target.anonymous:
        return f"our profile of {profile.name} knows no containers"
    if container is not None and container.runtime not in ("singularity", "apptainer"):
        return f"{profile.name} has no Singularity or Apptainer, which eessi_container.sh starts"
    if profile.internet_on_compute is False:
        return f"compute nodes of {profile.name} do not reach the internet, from which its CernVM-FS reads"
    if target.goal.by_mpi:
        return "the MPI in EESSI's container is not known to reach the launcher outside of it"
    return _eessi(target, tuple(eessi.eessi_modules()), "container")


def _eessi(target: Target, versions: tuple[str, ...], init: str) -> Way | str:
    if target.vendor not in (None, "nvidia"):
        return f"EESSI has no framework for {target.vendor} GPUs{_no_horovod(target)}"
    refused: list[str] = []
    for version in sorted(versions, reverse=True):
        for module in eessi.eessi_modules().get(version, {}).get(target.name, ()):
            found = _eessi_way(target, version, module, init)
            if not isinstance(found, str):
                return found
            refused.append(f"{module.name}: {found}")
    gpus = f" for {target.arch}" if target.arch else ""
    nothing = f"EESSI has no {target.name}{gpus} in {' or '.join(versions)}{_no_horovod(target)}"
    return "; ".join(refused) or nothing


def _no_horovod(target: Target) -> str:
    return "; it has no Horovod in any version" if target.goal.package == "horovod" else ""


def _eessi_way(target: Target, version: str, module: eessi.EessiModule, init: str) -> Way | str:
    if bool(module.cuda) != (target.vendor == "nvidia") and target.goal.framework != "mpi4py":
        return "it is built for CPUs only" if target.vendor else "it is built for NVIDIA GPUs"
    if module.cuda and target.arch and cuda_addresses(module.cuda, target.arch) is False:
        return f"its CUDA {module.cuda} cannot address {target.arch}"
    mpi = f"Open MPI {module.mpi}" if module.mpi else None
    plugin, why_not, nodes, notes = _foreign_stack(target, mpi)
    if why_not:
        return why_not
    if module.package and (why := target.profile.software.no_venv):
        return why
    if (module.extend or module.package) and init == "container":
        return "nothing can be added to EESSI in its container here"
    cache = target.prefix if init == "container" else None
    job = JobEessi(
        version=version,
        init=init,  # type: ignore[arg-type]
        accelerator=eessi.accelerator_target(target.arch),
        load=(module.extend_module or module.name,),
        extend=target.prefix if module.extend else None,
        cache=cache,
        script=f"{target.prefix}/software-layer-scripts/eessi_container.sh" if cache else None,
    )
    environment = Environment(site_setup=False, eessi=job, venv=target.prefix if module.package else None)
    steps = install_steps.eessi(target.profile, target.name, module, job, target.prefix)
    where = "in its container" if init == "container" else "of the site"
    return Way(
        why=f"{module.what} of EESSI {version} {where} ({eessi.SOURCE})", steps=steps,
        environment=environment, mpi=plugin, nodes=nodes, versions=module.versions, notes=notes,
    )  # fmt: skip


def container(target: Target) -> Way | str:
    """An image that is built for the site with cotainr."""
    site = target.profile.software.container
    if site is None or site.runtime == "none":
        return f"our profile of {target.profile.name} knows no containers"
    if site.cotainr is None:
        return f"our profile of {target.profile.name} knows no tool that builds images of Python packages"
    wheels = _wheels(target)
    if isinstance(wheels, str):
        return wheels
    image = f"{target.prefix}/{target.name}.sif"
    return Way(
        why=f"an image built with cotainr --system={site.cotainr}, with wheels for {target.vendor} GPUs",
        steps=install_steps.cotainr(target.profile, target.name, wheels, image),
        environment=Environment(site_setup=False, container=JobContainer(image=image)),
        versions=wheels.versions,
        notes=_no_plugin(target),
    )


def wrapper(target: Target) -> Way | str:
    """The site's container wrapper around pip: few files, and programs as if they were not in a container."""
    if target.profile.software.wrapper is None:
        return f"our profile of {target.profile.name} knows no container wrapper"
    wheels = _wheels(target)
    if isinstance(wheels, str):
        return wheels
    return Way(
        why=f"pip in an image with {target.profile.software.wrapper}, with wheels for {target.vendor} GPUs",
        steps=install_steps.wrapper(target.profile, target.name, wheels, target.prefix),
        environment=Environment(path=(f"{target.prefix}/bin",)),
        versions=wheels.versions,
        notes=("the site calls the wrapper experimental", *_no_plugin(target)),
    )


def _no_plugin(target: Target) -> tuple[str, ...]:
    if not target.slingshot:
        return ()
    return ("on several nodes RCCL uses TCP: the wheels have no plugin for Slingshot (aws-ofi-rccl)",)


def _wheels(target: Target) -> Wheels | str:
    """Return the wheels of the goal, or of its base, for the site's GPUs; text: why there are none."""
    if target.goal.by_mpi:
        return "wheels are not compiled with the site's MPI"
    if offline := target.download():
        return offline
    name = target.goal.base or target.name
    return wheels_of(name, target.vendor) or f"no index of {name} for {target.vendor} GPUs is known"


def pip(target: Target) -> Way | str:
    """A venv with what pip installs."""
    profile = target.profile
    if why := target.download() or profile.software.no_venv:
        return why
    python = profile.software.offers.get("python")
    if python is None and not target.anonymous:
        return f"our profile of {profile.name} knows no Python for virtual environments"
    if target.goal.by_mpi and not target.anonymous:
        return f"nothing is known about compiling {target.name} with the MPI of {profile.name}"
    name = target.goal.base or target.name
    wheels = wheels_of(name, target.vendor)
    if not target.goal.by_mpi and wheels is None:
        return f"no index of {name} for {target.vendor} GPUs is known"
    offer = python or Offer()
    job = _job_of(offer, target.prefix)
    inside = install_steps.pip(profile, target.name, target.vendor)
    job["environment"] = replace(job["environment"], venv=target.prefix)
    job["versions"] = {**job["versions"], **(wheels.versions if wheels and not target.goal.by_mpi else {})}
    notes = install_steps.pip_notes(target.name)
    if target.anonymous and not site_scheduler(profile).starts_at_once:
        notes = (
            *notes,
            "this profile describes no machine: whether Python, MPI and GPUs fit is not known",
        )
    steps = install_steps.inside_offer(profile, offer, target.prefix, inside)
    return Way(why="a virtual environment with pip", steps=steps, notes=notes, **job)


WAYS: dict[str, Callable[[Target], Way | str]] = {
    "site": from_site,
    "easybuild": easybuild,
    "eessi": eessi_native,
    "container": container,
    "wrapper": wrapper,
    "pip": pip,
    "eessi-container": eessi_container,
}
"""Name of a route -> the function that finds it, in the order of preference."""
